package tasks_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage/storagetest"
)

// linearCall is a call about one task.
type linearCall struct {
	verb, worker string
	step         int64
}

// linearAnswer is whether a call succeeded, how often a sweep gave the task back and
// gave it up, or what a read found.
type linearAnswer struct {
	ok                  bool
	republished, failed int
	found               linearState
}

type linearState struct {
	state       api.TaskState
	worker      string
	step        int64
	republished int64
	error       string
}

// linearModel is a task as a sequence of single steps. A sweep may come too late to
// do anything: what it does must be right.
var linearModel = porcupine.Model{
	Init: func() any { return linearState{state: api.TaskPending} },
	Step: func(before, call, answer any) (bool, any) {
		s, c, a := before.(linearState), call.(linearCall), answer.(linearAnswer)
		working := s.state == api.TaskClaimed || s.state == api.TaskRunning
		held := working && s.worker == c.worker
		refused := !a.ok
		switch c.verb {
		case "get":
			return a.found == s, s
		case "claim":
			if s.state == api.TaskPending {
				s.state, s.worker = api.TaskClaimed, c.worker
				return a.ok, s
			}
			return a.ok == held, s
		case "step":
			if held && c.step >= s.step {
				s.state, s.step = api.TaskRunning, c.step
				return a.ok, s
			}
		case "complete":
			if held {
				s.state = api.TaskCompleted
				return a.ok, s
			}
			return a.ok == (s.state == api.TaskCompleted && s.worker == c.worker), s
		case "fail":
			if held {
				s.state, s.error = api.TaskFailed, "broke"
				return a.ok, s
			}
			return a.ok == (s.state == api.TaskFailed && s.worker == c.worker && s.error == "broke"), s
		case "cancel":
			if !s.state.Terminal() {
				s.state = api.TaskCancelled
				return a.ok, s
			}
			return a.ok == (s.state == api.TaskCancelled), s
		case "sweep":
			switch {
			case a.republished == 1 && a.failed == 0:
				s.state, s.worker, s.republished = api.TaskPending, "", s.republished+1
				return working && s.republished <= api.MaxTaskRepublishes, s
			case a.failed == 1 && a.republished == 0:
				s.state, s.error = api.TaskFailed, "given up"
				return working && s.republished == api.MaxTaskRepublishes, s
			}
			return a.republished == 0 && a.failed == 0, s
		}
		return refused, s
	},
}

// TestTasksAreLinearizable: what workers, operators and sweepers of two processes see
// of a task is what they would see if they came one after another.
func TestTasksAreLinearizable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		both := []*tasks.Tasks{f.Tasks, tasksOn(t, f.store, brokerOn(t, f.store), nil)}
		ends, republished := map[api.TaskState]int{}, int64(0)
		for range 30 {
			f.tenant = storagetest.Tenant(t)
			f.create(t, api.NewTask{})
			history := linearHistory(t, f, both)
			switch porcupine.CheckOperationsTimeout(linearModel, history, 20*time.Second) {
			case porcupine.Illegal:
				for _, op := range history {
					t.Logf("%d: %+v → %+v [%d, %d]", op.ClientId, op.Input, op.Output, op.Call, op.Return)
				}
				t.Fatal("got a history that is not linearizable, want every history to be")
			case porcupine.Unknown:
				t.Fatal("the check of the history timed out, want an answer")
			}
			end := f.get(t)
			ends[end.State]++
			republished += end.Republished
		}
		if len(ends) < 2 || republished == 0 {
			t.Errorf("got ends %v and %d republished tasks, want more of each kind", ends, republished)
		}
		t.Logf("%v, given back %d times", ends, republished)
	})
}

func linearHistory(t *testing.T, f *fixture, both []*tasks.Tasks) (history []porcupine.Operation) {
	t.Helper()
	var mu sync.Mutex
	var work sync.WaitGroup
	for client := range 5 {
		work.Go(func() {
			for range 14 {
				c := linearCall{verb: linearVerb(), worker: fmt.Sprint("w", rand.IntN(3)), step: rand.Int64N(4)}
				begin := time.Now()
				a := linearCallOn(t, f, both[client%len(both)], c)
				end := time.Now()
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: c, Output: a, Call: begin.UnixNano(), Return: end.UnixNano()})
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return history
}

// linearVerb draws a call; those that end a task are rare, so that much happens before.
func linearVerb() string {
	for _, v := range []struct {
		verb    string
		percent int
	}{{"cancel", 1}, {"fail", 1}, {"complete", 2}, {"get", 20}, {"sweep", 25}, {"step", 40}} {
		if rand.IntN(100) < v.percent {
			return v.verb
		}
	}
	return "claim"
}

func linearCallOn(t *testing.T, f *fixture, on *tasks.Tasks, c linearCall) (a linearAnswer) {
	var task *api.Task
	var err error
	switch ctx := t.Context(); c.verb {
	case "claim":
		_, err = on.Claim(ctx, f.tenant, kind, id, api.TaskClaim{Worker: c.worker})
	case "step":
		_, err = on.Step(ctx, f.tenant, kind, id, api.TaskStep{Worker: c.worker, Step: c.step})
	case "complete":
		_, err = on.Complete(ctx, f.tenant, kind, id, api.TaskCompletion{Worker: c.worker})
	case "fail":
		_, err = on.Fail(ctx, f.tenant, kind, id, api.TaskFailure{Worker: c.worker, Error: "broke"})
	case "cancel":
		_, err = on.Cancel(ctx, f.tenant, kind, id)
	case "get":
		task, err = on.Get(ctx, f.tenant, kind, id)
		if err == nil {
			a.found = linearState{state: task.State, worker: task.Worker, step: task.CurrentStep, republished: task.Republished, error: task.Error}
			if len(task.Error) > 8 {
				a.found.error = task.Error[:8] // given up
			}
		}
	case "sweep":
		// At a time at which whatever has not ended is stuck.
		swept, failed := on.Sweep(ctx, f.tenant, f.clock.ms.Load()+api.MaxTaskTimeoutMS, 10)
		a.republished, a.failed, err = swept.Republished, swept.Failed, failed
	}
	if err != nil && api.ErrorCode(err) != api.CodeTaskState {
		t.Errorf("%+v: got error %v, want none", c, err)
	}
	a.ok = err == nil
	return a
}
