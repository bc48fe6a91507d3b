package tasks_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestCreationsAreRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		made := api.NewTask{StepCount: 3, Payload: json.RawMessage(`{"a":1}`)}
		first := f.create(t, made)
		again := func(n api.NewTask) (*api.Task, error) {
			task, created, err := f.Create(t.Context(), f.tenant, kind, id, n)
			if created {
				t.Error("Create again: got created, want the task of the first call")
			}
			return task, err
		}
		f.clock.advance(time.Second)
		spelt := made
		spelt.Namespace, spelt.Queue, spelt.Payload = api.DefaultTaskNamespace, kind, json.RawMessage(` {"a" : 1}`)
		for _, same := range []api.NewTask{made, spelt} {
			if task := must[*api.Task](t)(again(same)); task.CreatedAtMS != first.CreatedAtMS || task.JobID != first.JobID {
				t.Errorf("Create again = %+v, want the task of the first call, %+v", task, first)
			}
		}
		for _, other := range []api.NewTask{{}, {StepCount: 4, Payload: made.Payload}, {StepCount: 3}, {StepCount: 3, Payload: made.Payload, Queue: "others"}} {
			_, err := again(other)
			refused(t, err, api.CodeTaskExists)
		}
		if got := f.announced(t); len(got) != 1 {
			t.Errorf("got announcements %+v, want one", got)
		}
		// What it has become meanwhile is no difference.
		must[*api.Task](t)(f.Claim(t.Context(), f.tenant, kind, id, api.TaskClaim{Worker: "w1"}))
		must[*api.Task](t)(f.Step(t.Context(), f.tenant, kind, id, api.TaskStep{Worker: "w1", Step: 1, StepCount: 9}))
		if task := must[*api.Task](t)(again(made)); task.State != api.TaskRunning {
			t.Errorf("Create again = %+v, want state %s", task, api.TaskRunning)
		}
		if got := f.announced(t); len(got) != 0 {
			t.Errorf("got announcements %+v, want none", got)
		}
	})
}

// A crash between the record and the job leaves a pending task: a repeat of the
// creation announces it, and the sweeper does if the call is not repeated.
func TestACreationThatWasCutIsAnnounced(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for _, repeat := range []bool{true, false} {
		f := newFixture(t, storage.Config{URL: server.URL})
		broken := brokerOn(t, storagetest.Open(t, storage.Config{URL: server.URL, Clock: f.clock.now, ScriptPrelude: storagetest.CutAfter(0)}))
		_, _, err := tasksOn(t, f.store, broken, zap.NewNop()).Create(t.Context(), f.tenant, kind, id, api.NewTask{})
		if err == nil {
			t.Fatal("got no error of the interrupted call, want one")
		}
		task := f.get(t)
		if task.State != api.TaskPending {
			t.Fatalf("Get = %+v, want state %s", task, api.TaskPending)
		}
		if state := must[api.JobState](t)(f.broker.StateOf(t.Context(), f.tenant, task.JobID)); state != "" {
			t.Fatalf("StateOf(%s) = %s, want no job", task.JobID, state)
		}
		if repeat {
			if _, created, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{}); created || err != nil {
				t.Fatalf("Create again = created %v, %v, want neither", created, err)
			}
		} else {
			f.clock.advance(api.TaskStuckMS * time.Millisecond)
			if swept := f.sweep(t); swept.Announced != 1 || swept.Republished != 0 {
				t.Errorf("Sweep = %+v, want one announced", swept)
			}
		}
		if got := f.announced(t); len(got) != 1 || got[0].Reason != api.TaskCreated {
			t.Errorf("repeat %v: got announcements %+v, want one with reason created", repeat, got)
		}
		if task := f.get(t); task.Republished != 0 || task.Stuck {
			t.Errorf("Get = %+v, want it neither republished nor stuck", task)
		}
	}
}

// A queue that drains refuses new tasks; one that begins to drain in between leaves
// a task that is announced when it serves again.
func TestDrainingQueues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		drain := func(on bool) {
			t.Helper()
			must[*api.Queue](t)(f.broker.Configure(t.Context(), f.tenant, api.DefaultTaskNamespace, kind, queue.Change{Draining: &on}))
		}
		drain(true)
		_, _, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{})
		refused(t, err, api.CodeQueueDraining, kind)
		_, err = f.Get(t.Context(), f.tenant, kind, id)
		refused(t, err, api.CodeTaskNotFound)
		drain(false)
		f.create(t, api.NewTask{})
		f.announced(t)
		must[*api.Task](t)(f.claim(t, "w1"))
		drain(true)
		// Its worker dies: it is given back, and waits for its queue.
		for range 5 {
			f.clock.advance(api.TaskStuckMS * time.Millisecond)
			if swept := f.sweep(t); swept.Refused != 1 {
				t.Fatalf("Sweep = %+v, want one refused", swept)
			}
		}
		if task := f.get(t); task.State != api.TaskPending || task.Republished != 1 {
			t.Errorf("Get = %+v, want it pending and republished once", task)
		}
		if _, created, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{}); created || err != nil {
			t.Errorf("Create again = created %v, %v, want neither", created, err)
		}
		drain(false)
		if swept := f.sweep(t); swept.Announced != 1 {
			t.Errorf("Sweep = %+v, want one announced", swept)
		}
		if got := f.announced(t); len(got) != 1 || got[0].Reason != api.TaskRepublished {
			t.Errorf("got announcements %+v, want one with reason republished", got)
		}
	})
}

func TestWhatIsNoTaskIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storagetest.AllBackends()[0].Config(t))
	for name, row := range map[string]struct {
		kind, id string
		made     api.NewTask
		code     api.Code
		field    string
	}{
		"type":                    {"Email", id, api.NewTask{}, api.CodeValidationName, "task_type"},
		"type with a dot":         {"email.send", id, api.NewTask{}, api.CodeValidationName, "task_type"},
		"no id":                   {kind, "", api.NewTask{}, api.CodeValidationName, "task_id"},
		"id with a colon":         {kind, "a:b", api.NewTask{}, api.CodeValidationName, "task_id"},
		"id with a slash":         {kind, "a/b", api.NewTask{}, api.CodeValidationName, "task_id"},
		"id with a brace":         {kind, "{a}", api.NewTask{}, api.CodeValidationName, "task_id"},
		"id with a star":          {kind, "a*", api.NewTask{}, api.CodeValidationName, "task_id"},
		"id that begins badly":    {kind, ".a", api.NewTask{}, api.CodeValidationName, "task_id"},
		"long id":                 {kind, strings.Repeat("a", api.MaxTaskIDLength+1), api.NewTask{}, api.CodeValidationName, "task_id"},
		"namespace":               {kind, id, api.NewTask{Namespace: "X"}, api.CodeValidationName, "namespace"},
		"queue":                   {kind, id, api.NewTask{Queue: "X"}, api.CodeValidationName, "queue"},
		"a function's queue":      {kind, id, api.NewTask{Queue: "fn.hello"}, api.CodeQueueReserved, "queue"},
		"long ref":                {kind, id, api.NewTask{ParamsRef: strings.Repeat("a", api.MaxTaskRefBytes+1)}, api.CodeInvalid, "params_ref"},
		"ref of two lines":        {kind, id, api.NewTask{ParamsRef: "a\nb"}, api.CodeInvalid, "params_ref"},
		"ref that is no UTF-8":    {kind, id, api.NewTask{ParamsRef: "\xff"}, api.CodeInvalid, "params_ref"},
		"steps below none":        {kind, id, api.NewTask{StepCount: -1}, api.CodeInvalid, "step_count"},
		"too many steps":          {kind, id, api.NewTask{StepCount: api.MaxTaskSteps + 1}, api.CodeInvalid, "step_count"},
		"short timeout":           {kind, id, api.NewTask{TimeoutMS: api.MinTaskTimeoutMS - 1}, api.CodeInvalid, "timeout_ms"},
		"long timeout":            {kind, id, api.NewTask{TimeoutMS: api.MaxTaskTimeoutMS + 1}, api.CodeInvalid, "timeout_ms"},
		"payload that is large":   {kind, id, api.NewTask{Payload: json.RawMessage(`"` + strings.Repeat("a", api.MaxTaskPayloadBytes) + `"`)}, api.CodeBodyLimit, "payload"},
		"payload that is no JSON": {kind, id, api.NewTask{Payload: json.RawMessage(`{`)}, api.CodeInvalid, "payload"},
	} {
		_, _, err := f.Create(t.Context(), f.tenant, row.kind, row.id, row.made)
		isRefused(t, name, err, row.code, row.field)
	}
	f.leavesNothing(t)
	largest := api.NewTask{
		ParamsRef: strings.Repeat("a", api.MaxTaskRefBytes), StepCount: api.MaxTaskSteps, TimeoutMS: api.MaxTaskTimeoutMS,
		Payload: json.RawMessage(`"` + strings.Repeat("a", api.MaxTaskPayloadBytes-2) + `"`),
	}
	if _, _, err := f.Create(t.Context(), f.tenant, kind, strings.Repeat("a", api.MaxTaskIDLength), largest); err != nil {
		t.Errorf("Create: %v", err)
	}
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storagetest.AllBackends()[0].Config(t))
	f.create(t, api.NewTask{StepCount: 3})
	must[*api.Task](t)(f.claim(t, "w1"))
	before := f.get(t)
	claim := func(c api.TaskClaim) error { _, err := f.Claim(t.Context(), f.tenant, kind, id, c); return err }
	step := func(s api.TaskStep) error { _, err := f.Step(t.Context(), f.tenant, kind, id, s); return err }
	complete := func(c api.TaskCompletion) error { _, err := f.Complete(t.Context(), f.tenant, kind, id, c); return err }
	fail := func(c api.TaskFailure) error { _, err := f.Fail(t.Context(), f.tenant, kind, id, c); return err }
	isRefused(t, "anonymous claim", claim(api.TaskClaim{}), api.CodeValidationName, "worker")
	isRefused(t, "a worker with a blank", claim(api.TaskClaim{Worker: "a b"}), api.CodeValidationName, "worker")
	isRefused(t, "short claim", claim(api.TaskClaim{Worker: "w1", TimeoutMS: 1}), api.CodeInvalid, "timeout_ms")
	isRefused(t, "anonymous step", step(api.TaskStep{}), api.CodeValidationName, "worker")
	isRefused(t, "step below none", step(api.TaskStep{Worker: "w1", Step: -1}), api.CodeInvalid, "step")
	isRefused(t, "step beyond all", step(api.TaskStep{Worker: "w1", Step: api.MaxTaskSteps + 1}), api.CodeInvalid, "step")
	isRefused(t, "step beyond the last", step(api.TaskStep{Worker: "w1", Step: 4}), api.CodeInvalid, "step")
	isRefused(t, "step beyond the new last", step(api.TaskStep{Worker: "w1", Step: 3, StepCount: 2}), api.CodeInvalid, "step")
	isRefused(t, "timeout of a step", step(api.TaskStep{Worker: "w1", TimeoutMS: -1}), api.CodeInvalid, "timeout_ms")
	isRefused(t, "steps of a step", step(api.TaskStep{Worker: "w1", StepCount: -1}), api.CodeInvalid, "step_count")
	isRefused(t, "anonymous end", complete(api.TaskCompletion{}), api.CodeValidationName, "worker")
	isRefused(t, "long result", complete(api.TaskCompletion{Worker: "w1", ResultRef: strings.Repeat("a", api.MaxTaskRefBytes+1)}), api.CodeInvalid, "result_ref")
	isRefused(t, "anonymous failure", fail(api.TaskFailure{Error: "x"}), api.CodeValidationName, "worker")
	isRefused(t, "failure without a reason", fail(api.TaskFailure{Worker: "w1"}), api.CodeInvalid, "error")
	isRefused(t, "long failure", fail(api.TaskFailure{Worker: "w1", Error: strings.Repeat("a", api.MaxTaskErrorBytes+1)}), api.CodeInvalid, "error")
	if after := f.get(t); after.UpdatedAtMS != before.UpdatedAtMS || after.State != before.State {
		t.Errorf("Get after refused calls = %+v, want %+v", after, before)
	}
}

func isRefused(t *testing.T, name string, err error, code api.Code, field string) {
	t.Helper()
	var coded *api.Error
	if !errors.As(err, &coded) || coded.Code != code || len(coded.Fields) == 0 || coded.Fields[0].Path != field {
		t.Errorf("%s: %v, want %s at %s", name, err, code, field)
	}
}

// leavesNothing finds no key of the tenant.
func (f *fixture) leavesNothing(t *testing.T) {
	t.Helper()
	if keys := storagetest.Keys(t, f.store.Client(), "*"+f.tenant+"*"); len(keys) > 0 {
		t.Errorf("got keys %v in the store, want none", keys)
	}
}
