package tasks_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// clock is a test's own time.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// fixture is tasks over a store, with a tenant and a clock of its own.
type fixture struct {
	*tasks.Tasks
	store  *storage.Store
	broker *queue.Broker
	clock  *clock
	tenant string
	logged *observer.ObservedLogs
}

const (
	kind = "email-send"
	id   = "job_123"
)

// each runs test on every kind of store.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, backend.Config(t)))
		})
	}
}

func newFixture(t *testing.T, cfg storage.Config) *fixture {
	t.Helper()
	c := &clock{}
	c.ms.Store(1_760_000_000_000)
	cfg.Clock = c.now
	f := &fixture{store: storagetest.Open(t, cfg), clock: c, tenant: storagetest.Tenant(t)}
	f.broker = brokerOn(t, f.store)
	core, logged := observer.New(zap.InfoLevel)
	f.logged = logged
	f.Tasks = tasksOn(t, f.store, f.broker, zap.New(core))
	return f
}

func brokerOn(t *testing.T, store *storage.Store) *queue.Broker {
	t.Helper()
	b, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(b.Close)
	return b
}

func tasksOn(t *testing.T, store *storage.Store, broker *queue.Broker, logger *zap.Logger) *tasks.Tasks {
	t.Helper()
	out, err := tasks.New(store, broker, tasks.Config{Logger: logger})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return out
}

// must returns the result of a call that must not fail.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		return v
	}
}

func (f *fixture) create(t *testing.T, n api.NewTask) *api.Task {
	t.Helper()
	task, created, err := f.Create(t.Context(), f.tenant, kind, id, n)
	if err != nil || !created {
		t.Fatalf("Create = created %v, %v, want it created", created, err)
	}
	return task
}

func (f *fixture) claim(t *testing.T, worker string) (*api.Task, error) {
	t.Helper()
	return f.Claim(t.Context(), f.tenant, kind, id, api.TaskClaim{Worker: worker})
}

func (f *fixture) step(t *testing.T, worker string, step int64) (*api.Task, error) {
	t.Helper()
	return f.Step(t.Context(), f.tenant, kind, id, api.TaskStep{Worker: worker, Step: step})
}

func (f *fixture) complete(t *testing.T, worker, ref string) (*api.Task, error) {
	t.Helper()
	return f.Complete(t.Context(), f.tenant, kind, id, api.TaskCompletion{Worker: worker, ResultRef: ref})
}

func (f *fixture) get(t *testing.T) *api.Task {
	t.Helper()
	return must[*api.Task](t)(f.Get(t.Context(), f.tenant, kind, id))
}

func (f *fixture) sweep(t *testing.T) tasks.Swept {
	t.Helper()
	return must[tasks.Swept](t)(f.Sweep(t.Context(), f.tenant, f.clock.ms.Load(), 1000))
}

// announced takes the jobs of the task's queue and ends them, as a worker does that
// has claimed or was refused, and returns the announcements.
func (f *fixture) announced(t *testing.T) (out []api.TaskAnnouncement) {
	t.Helper()
	jobs := must[[]api.FetchedJob](t)(f.broker.Fetch(t.Context(), queue.Fetch{
		Tenant: f.tenant, Namespace: api.DefaultTaskNamespace, Queues: []string{kind}, WorkerID: "w", Count: 100,
	}))
	for _, job := range jobs {
		var a api.TaskAnnouncement
		if err := json.Unmarshal(job.Payload, &a); err != nil {
			t.Fatalf("Unmarshal: %v", err)
		}
		out = append(out, a)
		if got := must[[]api.JobOutcome](t)(f.broker.Ack(t.Context(), f.tenant, []api.JobAck{{ID: job.ID, LeaseEpoch: job.LeaseEpoch}})); !got[0].OK {
			t.Fatalf("ack of the announcement: got %v, want success", got)
		}
	}
	return out
}

func refused(t *testing.T, err error, code api.Code, texts ...string) {
	t.Helper()
	if api.ErrorCode(err) != code {
		t.Fatalf("%v, want %s", err, code)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want it to name %q", err, text)
		}
	}
}

func TestALife(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		began := f.clock.ms.Load()
		task := f.create(t, api.NewTask{ParamsRef: "s3://in", StepCount: 3, TimeoutMS: 60_000, Payload: json.RawMessage(`{"a": 1}`)})
		want := &api.Task{
			TaskType: kind, TaskID: id, State: api.TaskPending, StepCount: 3, CreatedAtMS: began, UpdatedAtMS: began, ParamsRef: "s3://in",
			Namespace: api.DefaultTaskNamespace, Queue: kind, TimeoutMS: 60_000, JobID: task.JobID, Payload: json.RawMessage(`{"a": 1}`),
		}
		if diff := cmp.Diff(want, task); diff != "" {
			t.Fatalf("Create, -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]api.TaskAnnouncement{{TaskType: kind, TaskID: id, ParamsRef: "s3://in", Payload: json.RawMessage(`{"a":1}`), Reason: api.TaskCreated}}, f.announced(t)); diff != "" {
			t.Errorf("announcements, -want +got:\n%s", diff)
		}
		f.clock.advance(time.Second)
		for range 2 { // a repeat changes nothing
			task = must[*api.Task](t)(f.claim(t, "w1"))
		}
		want.State, want.Worker, want.UpdatedAtMS, want.TimeoutAtMS = api.TaskClaimed, "w1", began+1000, began+61_000
		if diff := cmp.Diff(want, task); diff != "" {
			t.Errorf("Claim, -want +got:\n%s", diff)
		}
		f.clock.advance(time.Second)
		task = must[*api.Task](t)(f.Step(t.Context(), f.tenant, kind, id, api.TaskStep{Worker: "w1", Step: 2, StepCount: 4, TimeoutMS: 5000}))
		want.State, want.CurrentStep, want.StepCount, want.UpdatedAtMS, want.TimeoutAtMS = api.TaskRunning, 2, 4, began+2000, began+7000
		if diff := cmp.Diff(want, task); diff != "" {
			t.Errorf("Step, -want +got:\n%s", diff)
		}
		f.clock.advance(time.Second)
		for range 2 {
			task = must[*api.Task](t)(f.complete(t, "w1", "s3://out"))
		}
		want.State, want.ResultRef, want.UpdatedAtMS, want.TimeoutAtMS = api.TaskCompleted, "s3://out", began+3000, 0
		if diff := cmp.Diff(want, task); diff != "" {
			t.Errorf("Complete, -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(want, f.get(t)); diff != "" {
			t.Errorf("Get, -want +got:\n%s", diff)
		}
		f.isRetired(t)
	})
}

// isRetired finds that the task's record goes when its time is over.
func (f *fixture) isRetired(t *testing.T) {
	t.Helper()
	ttl := must[time.Duration](t)(f.store.Client().PTTL(t.Context(), f.store.TaskKey(f.tenant, kind, id)).Result())
	if most := api.TaskRetentionMS * time.Millisecond; ttl <= most-time.Minute || ttl > most {
		t.Errorf("TTL of an ended task: got %s, want about %s", ttl, most)
	}
}

// A task that ended, and was cut off before its time to live was set, gets it from
// the next reader, or a repeat of the call.
func TestACutEndIsRetired(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, api.NewTask{})
		must[*api.Task](t)(f.Cancel(t.Context(), f.tenant, kind, id))
		for _, again := range []func(){func() { f.get(t) }, func() { must[*api.Task](t)(f.Cancel(t.Context(), f.tenant, kind, id)) }} {
			if err := f.store.Client().Persist(t.Context(), f.store.TaskKey(f.tenant, kind, id)).Err(); err != nil {
				t.Fatalf("Persist: %v", err)
			}
			again()
			f.isRetired(t)
		}
	})
}

// TestWhoMayDoWhatInWhichState has every call in every state.
func TestWhoMayDoWhatInWhichState(t *testing.T) {
	t.Parallel()
	const me, other = "w1", "w2"
	calls := map[string]func(t *testing.T, f *fixture) (*api.Task, error){
		"claim":          func(t *testing.T, f *fixture) (*api.Task, error) { return f.claim(t, me) },
		"claim by other": func(t *testing.T, f *fixture) (*api.Task, error) { return f.claim(t, other) },
		"step":           func(t *testing.T, f *fixture) (*api.Task, error) { return f.step(t, me, 2) },
		"step by other":  func(t *testing.T, f *fixture) (*api.Task, error) { return f.step(t, other, 2) },
		"step back":      func(t *testing.T, f *fixture) (*api.Task, error) { return f.step(t, me, 1) },
		"complete":       func(t *testing.T, f *fixture) (*api.Task, error) { return f.complete(t, me, "r") },
		"complete otherwise": func(t *testing.T, f *fixture) (*api.Task, error) {
			return f.complete(t, me, "q")
		},
		"complete by other": func(t *testing.T, f *fixture) (*api.Task, error) { return f.complete(t, other, "r") },
		"fail": func(t *testing.T, f *fixture) (*api.Task, error) {
			return f.Fail(t.Context(), f.tenant, kind, id, api.TaskFailure{Worker: me, Error: "broke"})
		},
		"fail by other": func(t *testing.T, f *fixture) (*api.Task, error) {
			return f.Fail(t.Context(), f.tenant, kind, id, api.TaskFailure{Worker: other, Error: "broke"})
		},
		"cancel": func(t *testing.T, f *fixture) (*api.Task, error) { return f.Cancel(t.Context(), f.tenant, kind, id) },
	}
	// The calls that lead to a state, and the state after each further call; calls that
	// are not listed are refused.
	for state, row := range map[api.TaskState]struct {
		before []string
		after  map[string]api.TaskState
	}{
		api.TaskPending: {nil, map[string]api.TaskState{"claim": api.TaskClaimed, "claim by other": api.TaskClaimed, "cancel": api.TaskCancelled}},
		api.TaskClaimed: {[]string{"claim"}, map[string]api.TaskState{
			"claim": api.TaskClaimed, "step": api.TaskRunning, "step back": api.TaskRunning, "complete": api.TaskCompleted,
			"complete otherwise": api.TaskCompleted, "fail": api.TaskFailed, "cancel": api.TaskCancelled,
		}},
		api.TaskRunning: {[]string{"claim", "step"}, map[string]api.TaskState{
			"claim": api.TaskRunning, "step": api.TaskRunning, "complete": api.TaskCompleted, "complete otherwise": api.TaskCompleted,
			"fail": api.TaskFailed, "cancel": api.TaskCancelled,
		}},
		api.TaskCompleted: {[]string{"claim", "complete"}, map[string]api.TaskState{"complete": api.TaskCompleted}},
		api.TaskFailed:    {[]string{"claim", "step", "fail"}, map[string]api.TaskState{"fail": api.TaskFailed}},
		api.TaskCancelled: {[]string{"claim", "cancel"}, map[string]api.TaskState{"cancel": api.TaskCancelled}},
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, storagetest.AllBackends()[0].Config(t))
			for name, call := range calls {
				f.tenant = storagetest.Tenant(t)
				f.create(t, api.NewTask{})
				for _, prior := range row.before {
					must[*api.Task](t)(calls[prior](t, f))
				}
				before := f.get(t)
				if before.State != state {
					t.Fatalf("Get = %+v, want state %s", before, state)
				}
				task, err := call(t, f)
				want, allowed := row.after[name]
				if allowed {
					if err != nil || task.State != want {
						t.Errorf("%s = %+v, %v, want state %s", name, task, err, want)
					}
					continue
				}
				refused(t, err, api.CodeTaskState)
				if name != "step back" || state == api.TaskCompleted {
					refused(t, err, api.CodeTaskState, string(state), before.Worker)
				}
				if diff := cmp.Diff(before, f.get(t)); diff != "" {
					t.Errorf("refused %s changes the task, -want +got:\n%s", name, diff)
				}
			}
		})
	}
}

func TestWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		_, err := f.Get(t.Context(), f.tenant, kind, id)
		refused(t, err, api.CodeTaskNotFound, kind+"/"+id)
		_, err = f.claim(t, "w1")
		refused(t, err, api.CodeTaskNotFound)
		_, err = f.Cancel(t.Context(), f.tenant, kind, id)
		refused(t, err, api.CodeTaskNotFound)
		f.create(t, api.NewTask{})
		_, err = f.Get(t.Context(), storagetest.Tenant(t), kind, id)
		refused(t, err, api.CodeTaskNotFound)
	})
}

// A change in the same millisecond, or by a clock that runs behind, is a change all the same.
func TestTimesOfChangesGrow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		last := f.create(t, api.NewTask{}).UpdatedAtMS
		f.clock.advance(-time.Second)
		for range 3 {
			_, _ = f.claim(t, "w1")
			task := must[*api.Task](t)(f.step(t, "w1", 1))
			if task.UpdatedAtMS <= last {
				t.Errorf("time of the change: got %d, want more than %d", task.UpdatedAtMS, last)
			}
			last = task.UpdatedAtMS
		}
	})
}

func TestADamagedRecordIsNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storagetest.AllBackends()[0].Config(t))
	f.create(t, api.NewTask{})
	for field, value := range map[string]string{"state": "odd", "current_step": "x"} {
		key := f.store.TaskKey(f.tenant, kind, id)
		was := f.store.Client().HGet(t.Context(), key, field).Val()
		if err := f.store.Client().HSet(t.Context(), key, field, value).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		_, err := f.Get(t.Context(), f.tenant, kind, id)
		refused(t, err, api.CodeInternal, field, value)
		if was == "" {
			was = "0"
		}
		if err := f.store.Client().HSet(t.Context(), key, field, was).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
	}
}
