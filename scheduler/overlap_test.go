package scheduler_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// TestQueuedRunsNeverOverlap, though one that waits is cancelled, and though a run by
// hand, of a replica whose clock is ahead, is dated later than ticks that come after it.
func TestQueuedRunsNeverOverlap(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "queues", func(s *api.Schedule) { s.OverlapPolicy, s.QueueLimit = api.OverlapQueue, 10 })
		tick := func() {
			t.Helper()
			fired := f.load(t, path).State.Fired
			f.advance(time.Second)
			f.round(t)
			if now := f.load(t, path).State.Fired; now != fired+1 {
				t.Fatalf("schedule %s: got %d ticks fired, want 1 more", path.Name, now-fired)
			}
		}
		tick() // runs
		tick() // waits, and is cancelled
		cancelled := f.load(t, path).State.LastJobID
		tick() // is behind that
		running := f.take(t)
		if _, err := f.broker.Cancel(t.Context(), f.tenant, cancelled); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		f.round(t)
		if other := f.take(t); other != nil {
			t.Fatalf("Fetch: got the job of tick %d while that of tick %d runs, want none", other.Spec.Schedule.TickMS, running.Spec.Schedule.TickMS)
		}
		f.ms.Add(3_000)
		if _, err := f.Run(t.Context(), path, api.NewJobID(), anybody); err != nil {
			t.Fatalf("Run: %v", err)
		}
		f.ms.Add(-3_000)
		tick()
		tick()
		for want := 4; ; want-- {
			f.ack(t, running)
			f.round(t)
			running = f.take(t)
			if running == nil {
				if want != 0 {
					t.Errorf("got %d runs that never began, want 0", want)
				}
				return
			}
			if other := f.take(t); other != nil {
				t.Fatalf("Fetch: got the job of tick %d while that of tick %d runs, want none", other.Spec.Schedule.TickMS, running.Spec.Schedule.TickMS)
			}
		}
	})
}

// TestATickThatComesTooLateTakesNoMark: what it saw to have ended may have begun since.
func TestATickThatComesTooLateTakesNoMark(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "skips", func(s *api.Schedule) { s.OverlapPolicy = api.OverlapSkip })
		before := f.load(t, path).State.Turn
		f.advance(time.Second)
		f.round(t)
		now := f.load(t, path)
		late := &queue.Tick{Path: path, Turn: strconv.FormatInt(before, 10), NextMS: now.State.NextTickMS, Ended: now.InFlight}
		if outcomes, err := f.broker.Tick(t.Context(), []*queue.Tick{late}); err != nil || outcomes[0] != queue.TickMoved {
			t.Errorf("Tick of an old turn = %v, %v, want %s", outcomes, err, queue.TickMoved)
		}
		if left := f.load(t, path).InFlight; len(now.InFlight) != 1 || len(left) != 1 {
			t.Errorf("jobs in flight: got %v before and %v after, want one each", now.InFlight, left)
		}
	})
}
