package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/worker"
)

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// never fails the test if the handler is called.
func never(t *testing.T) worker.Handler {
	return func(context.Context, *worker.Job) error { t.Error("called"); return nil }
}

func TestConcurrencyIsKeptAndUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const jobs, concurrency, ahead = 100, 4, 4
		s := newSource(numbers(jobs)...)
		s.takes = 10 * time.Millisecond
		var now, most atomic.Int64
		w := run(t, s, worker.Config{Concurrency: concurrency, Ahead: ahead}, func(context.Context, *worker.Job) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return nil
		})
		begin := time.Now()
		time.Sleep(500 * time.Millisecond)
		if got := s.states(); got[api.JobActive] != concurrency+ahead {
			t.Errorf("%v, want %d active", got, concurrency+ahead)
		}
		// Fetched ahead: no handler waits between two jobs.
		time.Sleep(jobs / concurrency * time.Second)
		if got := s.states(); got[api.JobCompleted] != jobs {
			t.Errorf("got states %v after %s, want %d completed", got, time.Since(begin), jobs)
		}
		if most.Load() != concurrency {
			t.Errorf("%d at once, want %d", most.Load(), concurrency)
		}
		w.end(t)
		// The first of those that end together goes alone, the others behind it.
		if s.calls > 2*jobs/concurrency+5 {
			t.Errorf("got %d settling calls for %d jobs, want at most %d", s.calls, jobs, 2*jobs/concurrency+5)
		}
		for _, f := range s.fetched {
			if f.Count < 1 || f.Count > concurrency+ahead || f.WorkerID != w.ID() || f.LeaseMS != 30_000 || f.WaitMS != 20_000 && f.WaitMS != 0 {
				t.Errorf("got fetch %+v, want 1 to %d jobs for the worker %s, a lease of 30000 ms and a wait of 20000 or 0 ms", f, concurrency+ahead, w.ID())
			}
		}
	})
}

// While fetches bring all that they ask for, two are under way, of which the second
// asks for a quarter of the room at least. Where the queue is empty, one waits.
func TestASecondFetchWhileThereIsMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const jobs, concurrency, ahead = 400, 4, 12
		s := newSource(numbers(jobs)...)
		s.finds = time.Second
		w := run(t, s, worker.Config{Concurrency: concurrency, Ahead: ahead}, func(context.Context, *worker.Job) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		time.Sleep(time.Minute + 50*time.Millisecond) // no fetch begins or ends at that moment
		if got := s.states(); got[api.JobCompleted] != jobs {
			t.Errorf("got states %v, want %d completed", got, jobs)
		}
		s.mu.Lock()
		for _, f := range s.fetched {
			if f.WaitMS == 0 && f.Count < (concurrency+ahead)/4 {
				t.Errorf("the second fetch asked for %d jobs, want at least %d", f.Count, (concurrency+ahead)/4)
			}
		}
		twice := 0
		for _, asks := range s.asks {
			sum := 0
			for _, n := range asks {
				sum += n
			}
			if len(asks) > 2 || sum > concurrency+ahead {
				t.Errorf("got concurrent fetches for %v jobs, want at most 2 for at most %d jobs together", asks, concurrency+ahead)
			}
			if len(asks) == 2 {
				twice++
			}
		}
		if twice < 5 {
			t.Errorf("%d of %d fetches began beside another, want at least 5", twice, len(s.asks))
		}
		if len(s.asked) != 1 {
			t.Errorf("fetches for %v jobs wait at an empty queue, want 1 fetch", s.asked)
		}
		s.mu.Unlock()
		w.end(t)
	})
}

// A handler that has become free gets a job at once, though the second fetch waits for
// room for several.
func TestAFreeHandlerWaitsForNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const jobs, concurrency = 400, 16
		s := newSource(numbers(jobs)...)
		begin := time.Now()
		w := run(t, s, worker.Config{Concurrency: concurrency, Ahead: -1}, func(_ context.Context, j *worker.Job) error {
			var n int
			if err := j.Decode(&n); err != nil {
				return err
			}
			time.Sleep(time.Second + time.Duration(n%concurrency)*time.Millisecond) // no two end together
			return nil
		})
		for s.states()[api.JobCompleted] < jobs {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begin); took > jobs/concurrency*(time.Second+concurrency*time.Millisecond) {
			t.Errorf("%d jobs took %s, want at most %s", jobs, took, jobs/concurrency*(time.Second+concurrency*time.Millisecond))
		}
		w.end(t)
	})
}

func TestHeartbeatsKeepTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource(numbers(3)...)
		// Two of them wait for a handler for two leases.
		w := run(t, s, worker.Config{Concurrency: 1, Ahead: 2, Lease: 2 * time.Second}, func(ctx context.Context, j *worker.Job) error {
			if err := j.Keep(map[string]string{"page": string(j.Payload)}); err != nil {
				return err
			}
			j.Progress(1, 3, strings.Repeat("é", api.MaxProgressMessage))
			time.Sleep(4 * time.Second)
			return ctx.Err()
		})
		time.Sleep(13 * time.Second)
		w.end(t)
		if got := s.states(); got[api.JobCompleted] != 3 {
			t.Errorf("got states %v, want 3 completed", got)
		}
		told := map[string]int{}
		for _, h := range s.beats {
			if h.Progress == nil {
				continue
			}
			told[h.ID]++
			if string(h.Checkpoint) != `{"page":"`+h.ID+`"}` || h.Progress.Current != 1 || h.Progress.Total != 3 || len(h.Progress.Message) > api.MaxProgressMessage || len(h.Progress.Message) < api.MaxProgressMessage-2 {
				t.Errorf("got progress %+v and checkpoint %s, want 1 of 3, a truncated message and the job's own page", h.Progress, h.Checkpoint)
			}
		}
		if diff := cmp.Diff(map[string]int{"0": 1, "1": 1, "2": 1}, told); diff != "" {
			t.Errorf("difference (-want +got):\n%s", diff)
		}
		for id, e := range s.jobs {
			if e.LeaseEpoch != 1 {
				t.Errorf("job %s was leased %d times, want once", id, e.LeaseEpoch)
			}
		}
	})
}

// What a heartbeat did not deliver goes with the next.
func TestProgressOutlivesALostHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("0")
		var told atomic.Int64
		onError := func(err error) {
			if strings.Contains(err.Error(), "heartbeat") {
				told.Add(1)
			}
		}
		w := run(t, s, worker.Config{Lease: 3 * time.Second, OnError: onError}, func(_ context.Context, j *worker.Job) error {
			j.Progress(5, 0, "")
			time.Sleep(6 * time.Second)
			return nil
		})
		time.Sleep(500 * time.Millisecond)
		s.goAway(errAway)
		time.Sleep(time.Second)
		s.goAway(nil)
		time.Sleep(6 * time.Second)
		w.end(t)
		if told.Load() != 1 || len(s.acks) != 1 || len(s.beats) == 0 || s.beats[0].Progress == nil || s.beats[0].Progress.Current != 5 {
			t.Errorf("got %d errors, %d acks and heartbeats %+v, want 1 error, 1 ack and progress 5 in the first heartbeat", told.Load(), len(s.acks), s.beats)
		}
	})
}

func TestCancelledAndLost(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*source)
		want error
	}{
		"cancelled": {func(s *source) { s.jobs["0"].state = api.JobCancelled }, worker.ErrCancelled},
		"another's": {func(s *source) { s.jobs["0"].LeaseEpoch++ }, worker.ErrLeaseLost},
		"deleted":   {func(s *source) { delete(s.jobs, "0") }, worker.ErrLeaseLost},
		// The same worker has it again, before any heartbeat could say so.
		"fetched again": {func(s *source) { s.jobs["0"].reclaimed++; s.put(s.jobs["0"]) }, worker.ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSource("0")
				causes := make(chan error, 1)
				w := run(t, s, worker.Config{Concurrency: 2, Lease: 3 * time.Second}, func(ctx context.Context, j *worker.Job) error {
					if j.Attempt > 1 {
						return j.Return("again")
					}
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return j.Return("late")
				})
				time.Sleep(500 * time.Millisecond)
				s.with(func() { test.do(s) })
				begin := time.Now()
				select {
				case cause := <-causes:
					if !errors.Is(cause, test.want) || time.Since(begin) > time.Second {
						t.Errorf("%v after %s, want %v", cause, time.Since(begin), test.want)
					}
				case <-time.After(time.Minute):
					t.Fatal("the handler was not told")
				}
				time.Sleep(time.Second)
				w.end(t)
				for _, a := range s.acks {
					if string(a.Result) != `"again"` {
						t.Errorf("got ack with result %s, want \"again\"", a.Result)
					}
				}
				if len(s.fails) > 0 {
					t.Errorf("got fails %+v, want none", s.fails)
				}
			})
		})
	}
}

// A job that is lost before its handler was called is not begun.
func TestLostBeforeItBegan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource(numbers(2)...)
		var begun []string
		w := run(t, s, worker.Config{Concurrency: 1, Ahead: 1, Lease: 3 * time.Second}, func(_ context.Context, j *worker.Job) error {
			begun = append(begun, j.ID)
			time.Sleep(5 * time.Second)
			return nil
		})
		time.Sleep(500 * time.Millisecond)
		s.with(func() { s.jobs["1"].state = api.JobCancelled })
		time.Sleep(8 * time.Second)
		w.end(t)
		if diff := cmp.Diff([]string{"0"}, begun); diff != "" {
			t.Errorf("difference (-want +got):\n%s", diff)
		}
	})
}

func TestUnansweredSettlesAreRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("0", "1")
		var told atomic.Int64
		w := run(t, s, worker.Config{Lease: 30 * time.Second, OnError: func(error) { told.Add(1) }}, func(_ context.Context, j *worker.Job) error {
			time.Sleep(time.Second)
			if j.ID == "1" {
				return errors.New("no")
			}
			return nil
		})
		time.Sleep(500 * time.Millisecond)
		s.goAway(errAway)
		time.Sleep(10 * time.Second)
		s.goAway(nil)
		time.Sleep(10 * time.Second)
		if got := s.states(); got[api.JobCompleted] != 1 || got[api.JobDead] != 1 || told.Load() < 5 || told.Load() > 30 {
			t.Errorf("got states %v and %d errors, want 1 completed, 1 dead and 5 to 30 errors", got, told.Load())
		}
		w.end(t)
	})
}

// If the server does not answer for the time of a lease, the worker drops the job and
// can still be stopped.
func TestSettlingIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("0")
		w := run(t, s, worker.Config{Lease: 10 * time.Second, OnError: func(error) {}}, func(context.Context, *worker.Job) error {
			s.goAway(errAway)
			return nil
		})
		time.Sleep(time.Second)
		begin := time.Now()
		w.end(t)
		if took := time.Since(begin); took < 5*time.Second || took > 15*time.Second {
			t.Errorf("got an end after %s, want it after 5 to 15 s", took)
		}
	})
}

func TestAHangingFetchIsBroken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource()
		s.hang = true
		w := run(t, s, worker.Config{Wait: 20 * time.Second, OnError: func(error) {}}, never(t))
		time.Sleep(time.Minute)
		s.with(func() {
			if len(s.fetched) != 2 {
				t.Errorf("got %d fetches in a minute, want 2", len(s.fetched))
			}
		})
		w.end(t)
	})
}

// While the source is away it is asked ever less often, and at once when it is back.
func TestFetchBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("0")
		s.away = errAway
		w := run(t, s, worker.Config{OnError: func(error) {}}, func(context.Context, *worker.Job) error { return nil })
		time.Sleep(time.Minute)
		var n int
		s.with(func() { s.away, n = nil, len(s.fetched) })
		if n < 12 || n > 40 {
			t.Errorf("got %d fetches in a minute, want 12 to 40", n)
		}
		time.Sleep(6 * time.Second)
		if got := s.states(); got[api.JobCompleted] != 1 {
			t.Errorf("got states %v, want 1 completed", got)
		}
		w.end(t)
	})
}

func TestQueuesInTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource()
		w, err := worker.New(s, worker.Config{ID: "me", Version: "v1"})
		if err != nil {
			t.Fatalf("worker.New: %v", err)
		}
		for _, q := range []string{"urgent", "work", "urgent"} {
			w.Handle(q, never(t))
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
		if f := s.fetched[0]; !cmp.Equal(f.Queues, []string{"urgent", "work"}) || f.WorkerID != "me" || f.Version != "v1" || f.Hostname == "" {
			t.Errorf("got fetch %+v, want the queues urgent and work, worker me, version v1 and a host name", f)
		}
		if err := w.Run(t.Context()); err == nil {
			t.Error("ran twice")
		}
	})
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]worker.Config{
		"concurrency": {Concurrency: -1}, "short lease": {Lease: time.Millisecond}, "long lease": {Lease: 13 * time.Hour},
		"long wait": {Wait: time.Hour}, "no wait": {Wait: -1}, "id": {ID: "a b"},
	} {
		if _, err := worker.New(newSource(), c); err == nil {
			t.Errorf("New with a bad %s: got no error, want one", name)
		}
	}
	if _, err := worker.New(nil, worker.Config{}); err == nil {
		t.Error("no source: accepted")
	}
	many := make([]string, api.MaxFetchQueues+1)
	for i := range many {
		many[i] = fmt.Sprint("queue-", i)
	}
	for _, queues := range [][]string{nil, {"No Queue"}, {"fn.hello"}, many} {
		w, err := worker.New(newSource(), worker.Config{})
		if err != nil {
			t.Fatalf("worker.New: %v", err)
		}
		for _, q := range queues {
			w.Handle(q, never(t))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Run(ctx); err == nil {
			t.Errorf("Run with %d queues (%.1v): got no error, want one", len(queues), queues)
		}
	}
}
