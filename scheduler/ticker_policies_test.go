package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
)

func TestTickerSkipsWhileARunIsUnderWay(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "skips", func(s *api.Schedule) { s.OverlapPolicy = api.OverlapSkip })
		second := func(fired, skipped int64, why string) {
			t.Helper()
			f.advance(time.Second)
			f.round(t)
			s := f.load(t, path)
			if s.State.Fired != fired || s.State.Skipped != skipped {
				t.Fatalf("%s: %d fired, %d skipped; want %d, %d", why, s.State.Fired, s.State.Skipped, fired, skipped)
			}
		}
		second(1, 0, "nothing runs")
		second(1, 1, "it waits for a worker")
		if s := f.load(t, path); s.State.LastSkip.Reason != api.SkipOverlap || len(s.InFlight) != 1 {
			t.Errorf("Load = %+v, want a tick skipped for %s and one job in flight", s, api.SkipOverlap)
		}
		j := f.take(t)
		second(1, 2, "it runs")
		f.fail(t, j, false)
		second(1, 3, "it waits for its retry")
		f.advance(10 * time.Second) // the ticks until then are passed over
		f.round(t)
		s := f.load(t, path)
		j = f.take(t)
		if j == nil || j.Attempt != 2 {
			t.Fatalf("Fetch = %+v, want attempt 2", j)
		}
		f.ack(t, j)
		if left := f.load(t, path).InFlight; len(left) != 0 {
			t.Fatalf("jobs in flight: got %v, want none", left)
		}
		skipped := s.State.Skipped
		second(2, skipped, "it has completed")
		f.fail(t, f.take(t), true)
		second(3, skipped, "it is dead")
		if _, err := f.broker.Cancel(t.Context(), f.tenant, f.load(t, path).State.LastJobID); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		second(4, skipped, "it was cancelled")
		// The process that ended the job died before it removed the mark: the job's state decides.
		j = f.take(t)
		f.ack(t, j)
		_, inFlight := f.store.ScheduleKeys(path)
		f.store.Client().ZAdd(t.Context(), inFlight, redisZ(1, j.ID), redisZ(2, api.NewJobID()))
		second(5, skipped, "the marks are of jobs that ended, or never were")
		if left := f.load(t, path).InFlight; len(left) != 1 {
			t.Errorf("jobs in flight: got %v, want one", left)
		}
	})
}

func TestTickerQueuesRuns(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "queues", func(s *api.Schedule) { s.OverlapPolicy = api.OverlapQueue })
		for range 6 {
			f.advance(time.Second)
			f.round(t)
		}
		s := f.load(t, path)
		if s.State.Fired != 3 || s.State.Skipped != 3 || s.State.LastSkip.Reason != api.SkipQueueFull || len(s.InFlight) != 3 {
			t.Fatalf("Load = %+v, want 3 ticks fired, 3 skipped for %s, and 3 jobs in flight", s, api.SkipQueueFull)
		}
		var ran []int64
		for range 3 {
			j := f.take(t)
			if j == nil {
				t.Fatalf("Fetch after ticks %v: got no job, want one", ran)
			}
			if other := f.take(t); other != nil {
				t.Fatal("Fetch: got a second job while the first runs, want none")
			}
			ran = append(ran, j.Spec.Schedule.TickMS)
			if len(ran) == 2 {
				f.fail(t, j, true) // the next one starts nevertheless
			} else {
				f.ack(t, j)
			}
		}
		if !slices.IsSorted(ran) || f.take(t) != nil || len(f.load(t, path).InFlight) != 0 {
			t.Errorf("order of runs: got %v, want it ascending, and no job left", ran)
		}
		f.advance(time.Second)
		f.round(t)
		if f.take(t) == nil {
			t.Error("after all runs: got no further tick fired, want one")
		}
	})
}

func TestTickerCatchesUp(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		all := f.add(t, "all", func(s *api.Schedule) { s.MaxCatchupTicks = 7; s.Queue.Name = "all" })
		latest := f.add(t, "latest", func(s *api.Schedule) { s.Catchup = api.CatchupLatest; s.Queue.Name = "latest" })
		f.advance(30 * time.Minute)
		f.round(t)
		onTime := int64(api.CatchupGraceMS / 1000) // and one more, by the phase
		for path, late := range map[storage.SchedulePath]int64{all: 7, latest: 0} {
			s := f.load(t, path).State
			jobs := f.jobs(t, path.Name)
			if over := int64(len(jobs)) - late - onTime; over < 0 || over > 1 || s.Fired != int64(len(jobs)) || s.Fired+s.Missed != s.TickSeq {
				t.Errorf("schedule %s: got %d jobs with state %+v, want %d or one more, one each tick fired", path.Name, len(jobs), s, late+onTime)
			}
			for i, j := range jobs[1:] {
				if j.Schedule.TickMS != jobs[i].Schedule.TickMS+1000 || j.Schedule.TickSeq != jobs[i].Schedule.TickSeq+1 {
					t.Errorf("schedule %s: got tick %+v behind %+v, want the next one", path.Name, j.Schedule, jobs[i].Schedule)
				}
			}
		}
		none := f.add(t, "none", func(s *api.Schedule) { s.Catchup = api.CatchupNone; s.EverySeconds = 3600; s.Queue.Name = "none" })
		f.ms.Store(f.load(t, none).State.NextTickMS + 5*3_600_000 + 60_000)
		f.round(t)
		if s := f.load(t, none).State; s.Fired != 0 || s.Missed != 6 || s.NextTickMS <= f.ms.Load() || len(f.jobs(t, "none")) != 0 {
			t.Errorf("catch-up none: got state %+v, want 6 ticks missed and none fired", s)
		}
	})
}

func TestTickerRespectsTheQueue(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "unique", func(s *api.Schedule) { s.Queue.UniqueKey = "one" })
		tick := func(fired, skipped int64, reason string) {
			t.Helper()
			f.advance(time.Second)
			f.round(t)
			s := f.load(t, path).State
			if s.Fired != fired || s.Skipped != skipped || reason != "" && s.LastSkip.Reason != reason {
				t.Fatalf("%+v, want %d fired, %d skipped, %s", s, fired, skipped, reason)
			}
		}
		tick(1, 0, "")
		tick(1, 1, api.SkipDuplicate)
		f.ack(t, f.take(t))
		tick(2, 1, "")
		f.ack(t, f.take(t))
		on, off := true, false
		if _, err := f.broker.Configure(t.Context(), f.tenant, namespace, "work", queue.Change{Draining: &on}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		tick(2, 2, api.SkipDraining)
		if _, err := f.broker.Configure(t.Context(), f.tenant, namespace, "work", queue.Change{Draining: &off}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		tick(3, 2, "")
		// A holder that a crash left: the key names a job that is not there.
		f.ack(t, f.take(t))
		key := f.store.JobKeys(f.tenant).Unique(namespace, "work", "one")
		if err := f.store.Client().Set(t.Context(), key, api.NewJobID(), time.Hour).Err(); err != nil {
			t.Fatalf("Set: %v", err)
		}
		tick(4, 2, "")
	})
}
