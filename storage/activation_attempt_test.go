package storage_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// at is a as it stands in an attempt, under the lease of epoch.
func at(a *activations.Record, status api.Status, attempt int, epoch int64) *activations.Record {
	b := *a
	b.Status, b.Attempt, b.LeaseEpoch = status, attempt, epoch
	return &b
}

func TestAttemptsOfAnActivation(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.queued()
		f.start(t, a)
		turn := func(status api.Status, attempt int, epoch int64, want bool) {
			t.Helper()
			write := f.activations.Requeue
			if status == api.StatusRunning {
				write = f.activations.Begin
			}
			won, current, err := write(t.Context(), at(a, status, attempt, epoch))
			if err != nil || won != want || current == nil {
				t.Fatalf("%s, attempt %d, epoch %d: got won %v, record %+v and error %v, want won %v", status, attempt, epoch, won, current, err, want)
			}
		}
		turn(api.StatusRunning, 1, 1, true)
		turn(api.StatusRunning, 1, 1, true) // a repeat of the same write
		turn(api.StatusQueued, 1, 1, true)
		turn(api.StatusRunning, 2, 2, true)
		turn(api.StatusQueued, 1, 1, false) // the first lease's worker, late
		turn(api.StatusQueued, 1, 2, true)  // the second attempt was given up, and does not count
		turn(api.StatusRunning, 2, 3, true) // so it comes again
		turn(api.StatusRunning, 3, 5, true) // the fourth lease's worker died
		turn(api.StatusRunning, 3, 4, false)
		turn(api.StatusQueued, 0, 5, true) // the run sleeps: its attempts begin again
		turn(api.StatusRunning, 1, 6, true)
		turn(api.StatusQueued, 1, 1, false) // an attempt of the same number, of the first lease
		if won, current, err := f.activations.Finish(t.Context(), succeeded(at(a, api.StatusRunning, 1, 1), f.NowMS(), "1")); err != nil || won || current.Status != api.StatusRunning {
			t.Errorf("Finish under the first lease: got won %v, record %+v and error %v, want false and status %s", won, current, err, api.StatusRunning)
		}
		other := at(a, api.StatusRunning, 9, 9)
		other.JobID = "another"
		if won, _, err := f.activations.Begin(t.Context(), other); err != nil || won {
			t.Errorf("Begin for another job: got won %v and error %v, want false", won, err)
		}
		done := succeeded(at(a, api.StatusRunning, 1, 6), f.NowMS(), "1")
		if won, _, err := f.activations.Finish(t.Context(), done); err != nil || !won {
			t.Fatalf("Finish: got won %v and error %v, want true", won, err)
		}
		turn(api.StatusRunning, 2, 7, false)
		if ended, current, err := f.activations.End(t.Context(), a.Tenant, a.ActivationID, func(*activations.Record) { t.Error("asked") }); ended || err != nil || current.Status != api.StatusSuccess {
			t.Errorf("End of an activation that has ended: got ended %v, record %+v and error %v, want false and status %s", ended, current, err, api.StatusSuccess)
		}
	})
}

// The record of a run lives for as long as the run sleeps, and for api.ActivationTTLMS after that.
func TestRecordOutlivesTheSleepOfItsRun(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.queued()
		f.start(t, a)
		const days = 30 * 24 * 3600_000
		asleep := at(a, api.StatusQueued, 0, 1)
		asleep.AsleepUntilMS = f.NowMS() + days
		if won, _, err := f.activations.Requeue(t.Context(), asleep); err != nil || !won {
			t.Fatalf("Requeue: got won %v and error %v, want true", won, err)
		}
		ttl, err := s.Client().PTTL(t.Context(), s.Keys().ActivationMeta(a.Tenant, a.ActivationID)).Result()
		if want := int64(days + api.ActivationTTLMS - 60_000); err != nil || ttl.Milliseconds() < want {
			t.Errorf("time-to-live of the record: got %v and error %v, want at least %d ms", ttl, err, want)
		}
	})
}

// Of two workers that take one attempt for theirs, one has it.
func TestOneWorkerBeginsAnAttempt(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.queued()
		var won atomic.Int32
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				mine := at(a, api.StatusRunning, 1, 1)
				mine.DeadlineMS = int64(n) // no two workers' records are the same
				ok, _, err := f.activations.Begin(t.Context(), mine)
				if err != nil {
					t.Errorf("Begin: %v", err)
				}
				if ok {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("got %d attempts that began, want 1", won.Load())
		}
	})
}
