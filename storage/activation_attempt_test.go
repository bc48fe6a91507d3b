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

// at is a as it stands in an attempt.
func at(a *activations.Record, status api.Status, attempt int) *activations.Record {
	b := *a
	b.Status, b.Attempt = status, attempt
	return &b
}

func TestAttemptsOfAnActivation(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.queued()
		f.start(t, a)
		turn := func(status api.Status, attempt, upTo int, want bool) {
			t.Helper()
			won, current, err := f.activations.Attempt(t.Context(), at(a, status, attempt), upTo)
			if err != nil || won != want || current == nil {
				t.Fatalf("%s %d: %v %+v %v, want %v", status, attempt, won, current, err, want)
			}
		}
		turn(api.StatusRunning, 1, 0, true)
		turn(api.StatusRunning, 1, 0, true) // a repeat of the same write
		turn(api.StatusQueued, 1, 1, true)
		turn(api.StatusRunning, 2, 1, true)
		turn(api.StatusQueued, 1, 1, false)  // the first attempt's worker, late
		turn(api.StatusQueued, 1, 2, true)   // the second was given up, and does not count
		turn(api.StatusRunning, 2, 1, true)  // so it comes again
		turn(api.StatusRunning, 4, 3, true)  // the third's worker died
		turn(api.StatusRunning, 3, 2, false) // and was not dead
		other := at(a, api.StatusRunning, 9)
		other.JobID = "another"
		if won, _, err := f.activations.Attempt(t.Context(), other, 8); err != nil || won {
			t.Errorf("Attempt for another job: got won %v and error %v, want false", won, err)
		}
		done := succeeded(at(a, api.StatusRunning, 4), f.NowMS(), "1")
		if won, _, err := f.activations.Finish(t.Context(), done, 4); err != nil || !won {
			t.Fatalf("Finish: got won %v and error %v, want true", won, err)
		}
		turn(api.StatusRunning, 5, 4, false)
		if ended, current, err := f.activations.End(t.Context(), a.Tenant, a.ActivationID, func(*activations.Record) { t.Error("asked") }); ended || err != nil || current.Status != api.StatusSuccess {
			t.Errorf("End of an activation that has ended: got ended %v, record %+v and error %v, want false and status %s", ended, current, err, api.StatusSuccess)
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
				mine := at(a, api.StatusRunning, 1)
				mine.DeadlineMS = int64(n) // no two workers' records are the same
				ok, _, err := f.activations.Attempt(t.Context(), mine, 0)
				if err != nil {
					t.Errorf("activations.Attempt: %v", err)
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
