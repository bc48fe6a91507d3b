package tasks_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const stuckTime = api.TaskStuckMS * time.Millisecond

func TestStuckTasksAreGivenBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, api.NewTask{ParamsRef: "s3://in", TimeoutMS: 10_000})
		f.announced(t)
		must[*api.Task](t)(f.claim(t, "w1"))
		must[*api.Task](t)(f.step(t, "w1", 3))
		f.clock.advance(9999 * time.Millisecond)
		if swept := f.sweep(t); swept != (tasks.Swept{Read: 1}) {
			t.Errorf("Sweep before the task is stuck = %+v, want one read", swept)
		}
		f.clock.advance(time.Millisecond)
		if !f.get(t).Stuck {
			t.Error("Get: got a task that is not stuck, want it stuck")
		}
		if swept := f.sweep(t); swept.Republished != 1 {
			t.Errorf("Sweep = %+v, want one republished", swept)
		}
		task := f.get(t)
		if task.State != api.TaskPending || task.Worker != "" || task.TimeoutAtMS != 0 || task.CurrentStep != 3 || task.Republished != 1 || task.UpdatedAtMS < f.clock.ms.Load() {
			t.Errorf("Get = %+v, want it pending at step 3, without a worker, republished once", task)
		}
		if diff := cmp.Diff([]api.TaskAnnouncement{{TaskType: kind, TaskID: id, ParamsRef: "s3://in", Reason: api.TaskRepublished}}, f.announced(t)); diff != "" {
			t.Errorf("announcements, -want +got:\n%s", diff)
		}
		logs := f.logged.TakeAll()
		if len(logs) != 1 {
			t.Fatalf("log: got %d lines, want 1", len(logs))
		}
		fields := logs[0].ContextMap()
		if fields["tenant"] != f.tenant || fields["type"] != kind || fields["id"] != id || fields["kind"] != "republished" ||
			!strings.Contains(fmt.Sprint(fields["reason"]), "w1 has not reported for 10s at step 3") {
			t.Errorf("log: got fields %v, want those of the republished task", fields)
		}
		// The one who was silent comes too late, whatever it wants.
		_, err := f.step(t, "w1", 4)
		refused(t, err, api.CodeTaskState, "pending")
		must[*api.Task](t)(f.claim(t, "w2"))
		for _, late := range []func() error{
			func() error { _, err := f.step(t, "w1", 4); return err },
			func() error { _, err := f.complete(t, "w1", ""); return err },
			func() error { _, err := f.claim(t, "w1"); return err },
		} {
			refused(t, late(), api.CodeTaskState, "claimed", "w2")
		}
		if task := must[*api.Task](t)(f.step(t, "w2", 4)); task.State != api.TaskRunning {
			t.Errorf("Step of the next worker = %+v, want state %s", task, api.TaskRunning)
		}
	})
}

func TestTasksThatHelpNobodyFail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, api.NewTask{})
		for n := range api.MaxTaskRepublishes + 1 {
			if got := f.announced(t); len(got) != 1 {
				t.Fatalf("round %d: got announcements %+v, want one", n, got)
			}
			must[*api.Task](t)(f.claim(t, "w1"))
			f.clock.advance(stuckTime)
			swept := f.sweep(t)
			if want := min(n, api.MaxTaskRepublishes-1) + 1; swept.Republished+swept.Failed != 1 || int(f.get(t).Republished) != want {
				t.Fatalf("round %d: Sweep = %+v with task %+v, want one repair, the %dth", n, swept, f.get(t), want)
			}
		}
		task := f.get(t)
		if task.State != api.TaskFailed || !strings.Contains(task.Error, "announced again 10 times") || !strings.Contains(task.Error, "w1 has not reported") || task.TimeoutAtMS != 0 {
			t.Errorf("Get = %+v, want it failed after 10 announcements", task)
		}
		f.isRetired(t)
		if got := f.announced(t); len(got) != 0 {
			t.Errorf("got announcements %+v, want none", got)
		}
		f.clock.advance(stuckTime)
		if swept := f.sweep(t); swept != (tasks.Swept{}) {
			t.Errorf("Sweep of a failed task = %+v, want nothing read", swept)
		}
	})
}

// However long a task's announcement waits in its queue, that is no repair's business;
// where the announcement has ended without a claim, it is.
func TestWaitingInAQueueIsNoFault(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, api.NewTask{})
		on := true
		must[*api.Queue](t)(f.broker.Configure(t.Context(), f.tenant, api.DefaultTaskNamespace, kind, queue.Change{Paused: &on}))
		for range 2 * api.MaxTaskRepublishes {
			f.clock.advance(stuckTime)
			if swept := f.sweep(t); swept != (tasks.Swept{Read: 1, Waiting: 1}) {
				t.Fatalf("Sweep = %+v, want one waiting", swept)
			}
			if swept := f.sweep(t); swept != (tasks.Swept{Read: 1}) {
				t.Fatalf("Sweep again = %+v, want one read and nothing else", swept)
			}
		}
		on = false
		must[*api.Queue](t)(f.broker.Configure(t.Context(), f.tenant, api.DefaultTaskNamespace, kind, queue.Change{Paused: &on}))
		if got := f.announced(t); len(got) != 1 { // and no worker claims
			t.Errorf("got announcements %+v, want one", got)
		}
		f.clock.advance(stuckTime)
		if swept := f.sweep(t); swept.Republished != 1 {
			t.Errorf("Sweep = %+v, want one republished", swept)
		}
		if got := f.announced(t); len(got) != 1 {
			t.Errorf("got announcements %+v after the sweep, want one", got)
		}
	})
}

// A crash between the record of a republished task and its job loses nothing.
func TestARepairThatWasCutIsMadeGood(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	f := newFixture(t, storage.Config{URL: server.URL})
	broken := brokerOn(t, storagetest.Open(t, storage.Config{URL: server.URL, Clock: f.clock.now, ScriptPrelude: storagetest.CutAfter(0)}))
	f.create(t, api.NewTask{})
	f.announced(t)
	must[*api.Task](t)(f.claim(t, "w1"))
	f.clock.advance(stuckTime)
	if swept, err := tasksOn(t, f.store, broken, nil).Sweep(t.Context(), f.tenant, f.clock.ms.Load(), 10); err == nil || swept.Republished != 1 {
		t.Fatalf("Sweep with a broken queue = %+v, %v, want one republished and an error", swept, err)
	}
	if got := f.announced(t); len(got) != 0 {
		t.Fatalf("got announcements %+v after the interrupted call, want none", got)
	}
	f.clock.advance(stuckTime)
	if swept := f.sweep(t); swept.Announced != 1 || swept.Republished != 0 {
		t.Errorf("Sweep = %+v, want one announced", swept)
	}
	if got := f.announced(t); len(got) != 1 || got[0].Reason != api.TaskRepublished {
		t.Errorf("got announcements %+v, want one with reason republished", got)
	}
}

// A record cut in the middle of being given back is pending, with fields that were to go.
func TestARecordThatWasCut(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for writes := range 6 {
		f := newFixture(t, storage.Config{URL: server.URL})
		f.create(t, api.NewTask{})
		f.announced(t)
		must[*api.Task](t)(f.claim(t, "w1"))
		must[*api.Task](t)(f.step(t, "w1", 3))
		f.clock.advance(stuckTime)
		cut := storagetest.Open(t, storage.Config{URL: server.URL, Clock: f.clock.now, ScriptPrelude: storagetest.CutAfter(writes)})
		_, err := tasksOn(t, cut, f.broker, nil).Sweep(t.Context(), f.tenant, f.clock.ms.Load(), 10)
		if (err == nil) != (writes == 5) && writes < 3 {
			t.Errorf("Sweep cut after %d writes: got error %v, want one before the last write", writes, err)
		}
		for round := 0; len(f.announced(t)) == 0; round++ {
			if round == 3 {
				t.Fatalf("after %d writes: got task %+v never announced, want it announced", writes, f.get(t))
			}
			f.sweep(t)
			f.clock.advance(stuckTime)
		}
		if task := f.get(t); task.State != api.TaskPending || task.Worker != "" || task.CurrentStep != 3 || task.Republished != 1 {
			t.Errorf("after %d writes: Get = %+v, want it pending at step 3, republished once", writes, task)
		}
		must[*api.Task](t)(f.claim(t, "w2"))
	}
}

// What cannot be read keeps a sweep from no other task, and a list names it.
func TestASweepPassesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for n := range 3 {
			if _, _, err := f.Create(t.Context(), f.tenant, kind, fmt.Sprint("t", n), api.NewTask{}); err != nil {
				t.Fatalf("Create: %v", err)
			}
			must[*api.Task](t)(f.Claim(t.Context(), f.tenant, kind, fmt.Sprint("t", n), api.TaskClaim{Worker: "w1"}))
		}
		if err := f.store.Client().HSet(t.Context(), f.store.TaskKey(f.tenant, kind, "t0"), "state", "odd").Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		f.clock.advance(stuckTime)
		swept, err := f.Sweep(t.Context(), f.tenant, f.clock.ms.Load(), 10)
		refused(t, err, api.CodeInternal, "t0")
		if swept.Republished != 2 {
			t.Errorf("Sweep = %+v, want two republished", swept)
		}
		_, _, err = f.List(t.Context(), tasks.List{Tenant: f.tenant, Limit: 10})
		refused(t, err, api.CodeInternal, "t0")
	})
}

// Repairs are bounded; the next sweep makes those that remain.
func TestRepairsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for n := range 25 {
			if _, _, err := f.Create(t.Context(), f.tenant, kind, fmt.Sprint("t", n), api.NewTask{}); err != nil {
				t.Fatalf("Create: %v", err)
			}
			must[*api.Task](t)(f.Claim(t.Context(), f.tenant, kind, fmt.Sprint("t", n), api.TaskClaim{Worker: "w1"}))
		}
		f.clock.advance(stuckTime)
		for _, want := range []int{10, 10, 5, 0} {
			if swept := must[tasks.Swept](t)(f.Sweep(t.Context(), f.tenant, f.clock.ms.Load(), 10)); swept.Republished != want {
				t.Errorf("%+v, want %d", swept, want)
			}
		}
	})
}

// Tasks whose announcements wait, and tasks that are not stuck, take no more of a round than repairs:
// the next sweep continues behind them.
func TestSweepsAreBoundedByWhatTheyRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		create := func(n int, task api.NewTask) string {
			id := fmt.Sprint("t", n)
			if _, _, err := f.Create(t.Context(), f.tenant, kind, id, task); err != nil {
				t.Fatalf("Create: %v", err)
			}
			f.clock.advance(time.Millisecond)
			return id
		}
		for n := range 25 {
			id := create(n, api.NewTask{TimeoutMS: api.MaxTaskTimeoutMS})
			must[*api.Task](t)(f.Claim(t.Context(), f.tenant, kind, id, api.TaskClaim{Worker: "w1"}))
		}
		f.clock.advance(time.Millisecond)
		for n := range 5 {
			create(100+n, api.NewTask{})
		}
		f.clock.advance(stuckTime)
		for i, want := range []tasks.Swept{{Read: 10}, {Read: 10}, {Read: 10, Waiting: 1}, {Read: 4, Waiting: 1}} {
			if swept := must[tasks.Swept](t)(f.Sweep(t.Context(), f.tenant, f.clock.ms.Load(), 1)); swept != want {
				t.Errorf("sweep %d: got %+v, want %+v", i, swept, want)
			}
		}
	})
}

// commands are the names of those that calls under its context send. What the broker
// sends by itself meanwhile, such as the notice of a job made before, is not among them.
type commands struct {
	mu    sync.Mutex
	names []string
}

type commandsKey struct{}

// context marks the calls whose commands are counted.
func (c *commands) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, commandsKey{}, c)
}

func (c *commands) count(ctx context.Context, cmds ...redis.Cmder) {
	if ctx.Value(commandsKey{}) != c {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		if cmd.Name() != "hello" { // of a new connection
			c.names = append(c.names, cmd.Name())
		}
	}
}

func (c *commands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(ctx, cmds...)
		return next(ctx, cmds)
	}
}

// A sweep that has nothing to do asks one thing, whatever there is that is young.
func TestAnIdleSweepIsOneCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.create(t, api.NewTask{})
	seen := &commands{}
	f.store.Client().AddHook(seen)
	swept, err := f.Sweep(seen.context(t.Context()), f.tenant, f.clock.ms.Load(), 1000)
	if err != nil || swept != (tasks.Swept{}) {
		t.Errorf("Sweep: got %+v, error %v, want nothing swept", swept, err)
	}
	if diff := cmp.Diff([]string{"zrangebyscore"}, seen.names); diff != "" {
		t.Errorf("commands of the sweep (-want +got):\n%s", diff)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		made := func(kind, id, namespace string) string {
			t.Helper()
			if _, _, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{Namespace: namespace, Payload: []byte(`1`)}); err != nil {
				t.Fatalf("Create: %v", err)
			}
			return kind + "/" + id
		}
		var all []string
		for n := range 7 { // of one millisecond, and of others
			all = append(all, made("bbb", fmt.Sprint("t", n), ""))
		}
		all = append([]string{made("aaa", "t", "others")}, all...)
		f.clock.advance(time.Minute)
		late := made("aaa", "late", "")
		all = append(all, late)
		made("aaa", "ended", "")
		must[*api.Task](t)(f.Cancel(t.Context(), f.tenant, "aaa", "ended"))
		names := func(l tasks.List) (out []string) {
			t.Helper()
			l.Tenant = f.tenant
			for pages := 0; ; pages++ {
				items, next, err := f.List(t.Context(), l)
				if limit := storage.PageLimit(l.Limit); err != nil || len(items) > limit || pages > 20 {
					t.Fatalf("List(%+v) = %+v, %v on page %d, want at most %d tasks", l, items, err, pages, limit)
				}
				for _, task := range items {
					if task.Payload != nil {
						t.Errorf("List: got a payload in %+v, want none", task)
					}
					out = append(out, task.TaskType+"/"+task.TaskID)
				}
				if next == "" {
					return out
				}
				l.Cursor = next
			}
		}
		for _, limit := range []int{0, 1, 2, 3, 8, 9, 50} {
			if diff := cmp.Diff(all, names(tasks.List{Limit: limit})); diff != "" {
				t.Errorf("List of all, limit %d, -want +got:\n%s", limit, diff)
			}
			if diff := cmp.Diff([]string{"aaa/t", late}, names(tasks.List{Limit: limit, TaskType: "aaa"})); diff != "" {
				t.Errorf("List of type aaa, limit %d, -want +got:\n%s", limit, diff)
			}
		}
		if diff := cmp.Diff([]string{"aaa/t"}, names(tasks.List{Limit: 2, Namespace: "others"})); diff != "" {
			t.Errorf("List of namespace others, -want +got:\n%s", diff)
		}
		if got := names(tasks.List{Limit: 5, Stuck: true}); len(got) != 0 {
			t.Errorf("List of stuck tasks: got %v, want none", got)
		}
		f.clock.advance(stuckTime - time.Minute)
		if diff := cmp.Diff(all[:8], names(tasks.List{Limit: 5, Stuck: true})); diff != "" {
			t.Errorf("List of stuck tasks, -want +got:\n%s", diff)
		}
		for _, cursor := range []string{"x", "1", "x y", "0 a", " a", "-5 a"} {
			_, _, err := f.List(t.Context(), tasks.List{Tenant: f.tenant, Limit: 5, Cursor: cursor})
			refused(t, err, api.CodeValidationCursor)
		}
		// Another tenant has none of these tasks.
		f.tenant = storagetest.Tenant(t)
		if got := names(tasks.List{Limit: 5}); len(got) != 0 {
			t.Errorf("List of another tenant: got tasks %v, want none", got)
		}
	})
}
