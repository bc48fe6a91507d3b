package tasks_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/tasks"
)

// together makes n calls at once and counts those that succeed; others must be
// refused for the task's state.
func together(t *testing.T, n int, call func(n int) error) int {
	t.Helper()
	var won atomic.Int32
	var work sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		work.Go(func() {
			<-start
			switch err := call(i); {
			case err == nil:
				won.Add(1)
			case api.ErrorCode(err) != api.CodeTaskState:
				t.Errorf("call: got error %v, want success or code %s", err, api.CodeTaskState)
			}
		})
	}
	close(start)
	work.Wait()
	return int(won.Load())
}

func TestOneOfManyClaims(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for round := range 5 {
			id := fmt.Sprint("t", round)
			if _, _, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{}); err != nil {
				t.Fatalf("Create: %v", err)
			}
			won := together(t, 32, func(n int) error {
				_, err := f.Claim(t.Context(), f.tenant, kind, id, api.TaskClaim{Worker: fmt.Sprint("w", n)})
				return err
			})
			if won != 1 {
				t.Errorf("Claim of 32 workers: got %d successes, want 1", won)
			}
			// Of many ends of the same worker, only one kind can be.
			task := must[*api.Task](t)(f.Get(t.Context(), f.tenant, kind, id))
			var completed, failed, cancelled atomic.Int32
			together(t, 12, func(n int) (err error) {
				switch n % 3 {
				case 0:
					_, err = f.Complete(t.Context(), f.tenant, kind, id, api.TaskCompletion{Worker: task.Worker})
					count(&completed, err)
				case 1:
					_, err = f.Fail(t.Context(), f.tenant, kind, id, api.TaskFailure{Worker: task.Worker, Error: "x"})
					count(&failed, err)
				case 2:
					_, err = f.Cancel(t.Context(), f.tenant, kind, id)
					count(&cancelled, err)
				}
				return err
			})
			ends := map[api.TaskState]int32{api.TaskCompleted: completed.Load(), api.TaskFailed: failed.Load(), api.TaskCancelled: cancelled.Load()}
			end := must[*api.Task](t)(f.Get(t.Context(), f.tenant, kind, id)).State
			for state, n := range ends {
				if (state == end) != (n == 4) || state != end && n != 0 { // repeats of the one succeed
					t.Errorf("task is %s: got ends that succeeded %v, want 4 of this one", end, ends)
				}
			}
		}
	})
}

func count(n *atomic.Int32, err error) {
	if err == nil {
		n.Add(1)
	}
}

// Creators of the same task make one, and one announcement.
func TestOneOfManyCreates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		var made atomic.Int32
		together(t, 16, func(int) error {
			_, created, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{})
			if created {
				made.Add(1)
			}
			return err
		})
		if made.Load() != 1 {
			t.Errorf("Create: got the task created %d times, want 1", made.Load())
		}
		if got := f.announced(t); len(got) != 1 {
			t.Errorf("got announcements %+v, want one", got)
		}
	})
}

// Sweepers that work at once give a task back once, and a worker that reports in that
// moment either keeps it or loses it.
func TestSweepsRaceWithEachOtherAndWithWorkers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		other := tasksOn(t, f.store, brokerOn(t, f.store), nil)
		kept, lost := 0, 0
		for round := range 40 {
			id := fmt.Sprint("t", round)
			if _, _, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{}); err != nil {
				t.Fatalf("Create: %v", err)
			}
			must[*api.Task](t)(f.Claim(t.Context(), f.tenant, kind, id, api.TaskClaim{Worker: "w1"}))
			f.announced(t)
			f.clock.advance(stuckTime)
			now := f.clock.ms.Load()
			var republished atomic.Int32
			var stepped, claimed atomic.Bool
			together(t, 4, func(n int) error {
				switch n {
				case 0:
					_, err := f.Step(t.Context(), f.tenant, kind, id, api.TaskStep{Worker: "w1", Step: 1})
					stepped.Store(err == nil)
					return err
				case 1:
					_, err := f.Claim(t.Context(), f.tenant, kind, id, api.TaskClaim{Worker: "w2"})
					claimed.Store(err == nil)
					return err
				}
				swept, err := []*tasks.Tasks{f.Tasks, other}[n%2].Sweep(t.Context(), f.tenant, now, 1000)
				republished.Add(int32(swept.Republished))
				return err
			})
			task := must[*api.Task](t)(f.Get(t.Context(), f.tenant, kind, id))
			announced := 0
			for _, a := range f.announced(t) {
				if a.TaskID == id {
					announced++
				}
			}
			gone := republished.Load() == 1
			switch {
			case republished.Load() > 1 || int64(republished.Load()) != task.Republished || announced != int(task.Republished):
				t.Fatalf("got %d repairs and %d announcements of %+v, want as many as republished, at most 1", republished.Load(), announced, task)
			case !gone && (!stepped.Load() || claimed.Load() || task.State != api.TaskRunning || task.Worker != "w1"):
				t.Fatalf("got task %+v, want it running with w1, or republished", task)
			case gone && stepped.Load():
				t.Fatalf("got task %+v republished, want it left to its worker, which reported", task)
			case gone && claimed.Load() != (task.State == api.TaskClaimed && task.Worker == "w2"):
				t.Fatalf("got claimed %v and task %+v, want them to agree", claimed.Load(), task)
			}
			if gone {
				lost++
			} else {
				kept++
			}
			must[*api.Task](t)(f.Cancel(t.Context(), f.tenant, kind, id))
		}
		t.Logf("%d kept, %d lost", kept, lost)
	})
}
