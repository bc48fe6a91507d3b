package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/worker"
)

// A worker that stops finishes what runs, and returns the rest back uncounted.
func TestStopGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource(numbers(10)...)
		w := run(t, s, worker.Config{Concurrency: 2, Ahead: 4, Lease: 3 * time.Second}, func(ctx context.Context, _ *worker.Job) error {
			time.Sleep(8 * time.Second)
			return ctx.Err()
		})
		time.Sleep(500 * time.Millisecond)
		w.stop()
		time.Sleep(10 * time.Millisecond)
		begin := time.Now()
		w.end(t)
		if took := time.Since(begin); took > 8*time.Second {
			t.Errorf("got an end after %s, want it within 8 s", took)
		}
		if got, want := s.states(), map[api.JobState]int{api.JobCompleted: 2, api.JobPending: 8}; !cmp.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if n := len(s.fails); n != 4 {
			t.Errorf("got %d jobs returned, want 4", n)
		}
		for _, e := range s.jobs {
			if e.reclaimed > 0 || e.Attempt > 1 || e.state == api.JobPending && e.Attempt != 0 {
				t.Errorf("got job %+v, want no reclaim, at most 1 attempt, and attempt 0 if it is pending", e)
			}
		}
	})
}

// Handlers that go on past StopTimeout are told, and what they break off is given
// back with its checkpoint; what they finish counts.
func TestStopTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource(`"breaks off"`, `"finishes"`, `"fails"`)
		s.jobs["0"].MaxAttempts = 4
		w := run(t, s, worker.Config{Concurrency: 3, Ahead: -1, StopTimeout: 2 * time.Second}, func(ctx context.Context, j *worker.Job) error {
			if err := j.Keep(j.Payload); err != nil {
				return err
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, worker.ErrStopped) {
				t.Errorf("context.Cause = %v, want %v", cause, worker.ErrStopped)
			}
			switch j.ID {
			case "0":
				return ctx.Err()
			case "1":
				return nil
			}
			return errors.New("no")
		})
		time.Sleep(time.Second)
		begin := time.Now()
		w.end(t)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("got an end after %s, want it after 2 s", took)
		}
		if e := s.jobs["0"]; e.state != api.JobPending || e.Attempt != 0 || string(e.Checkpoint) != `"breaks off"` {
			t.Errorf("got job %+v with checkpoint %s, want it pending with attempt 0 and checkpoint \"breaks off\"", e, e.Checkpoint)
		}
		got := map[string]api.JobState{"1": s.jobs["1"].state, "2": s.jobs["2"].state}
		if diff := cmp.Diff(map[string]api.JobState{"1": api.JobCompleted, "2": api.JobDead}, got); diff != "" {
			t.Errorf("difference (-want +got):\n%s", diff)
		}
	})
}

// A fetch that is answered although the worker stops leaves nothing under a lease.
func TestFetchedWhileItStops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource()
		w := run(t, slow{s}, worker.Config{}, never(t))
		time.Sleep(500 * time.Millisecond)
		s.with(func() { s.put(&entry{FetchedJob: api.FetchedJob{ID: "0", Queue: "work", MaxAttempts: 1}}) })
		time.Sleep(500 * time.Millisecond) // taken, and not answered yet
		w.end(t)
		if e := s.jobs["0"]; e.state != api.JobPending || e.Attempt != 0 || e.LeaseEpoch != 1 {
			t.Errorf("got job %+v, want it pending with attempt 0 and lease epoch 1", e)
		}
	})
}

// slow answers a fetch a second after the jobs are under their leases, whatever the
// context says.
type slow struct{ *source }

func (s slow) FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error) {
	jobs, err := s.source.FetchJobs(ctx, r)
	time.Sleep(time.Second)
	return jobs, err
}
