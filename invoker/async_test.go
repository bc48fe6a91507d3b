package invoker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// work runs the worker and the queues' maintenance until the test or stop ends them.
func (b *bench) work() (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.engine.Work(ctx) })
	wg.Go(func() { b.broker.Maintain(ctx) })
	stop = func() { cancel(); wg.Wait() }
	b.t.Cleanup(stop)
	return stop
}

// eachWorking is each with a worker.
func eachWorking(t *testing.T, test func(b *bench)) {
	t.Helper()
	each(t, func(b *bench) {
		b.work()
		test(b)
	})
}

// asynchronous is a config whose failures are tried again at once.
func asynchronous(attempts int) api.VersionConfig {
	config := defaults()
	config.TimeoutMS = 10_000
	config.Retry = &api.Retry{MaxAttempts: attempts, Backoff: api.BackoffNone}
	config.Capabilities.KV = &api.KVCapability{Prefixes: []string{"*", "n", "seen", "done"}, Ops: []string{"get", "set"}}
	return config
}

func (b *bench) enqueue(name, event string) string {
	b.t.Helper()
	out, err := b.engine.Enqueue(b.t.Context(), b.invocation(name, event))
	if err != nil || out.Status != api.StatusQueued || out.Replayed {
		b.t.Fatalf("enqueue %s: %+v %v", name, out, err)
	}
	return out.ActivationID
}

// ends waits for an activation's end, and for its job's.
func (b *bench) ends(id string) *storage.StoredActivation {
	b.t.Helper()
	var a *storage.StoredActivation
	b.eventually("activation "+id+" ends", func() bool {
		a = b.stored(id)
		if !a.Status.Terminal() {
			return false
		}
		job, err := b.broker.Get(b.t.Context(), b.tenant, a.JobID)
		return err == nil && job.State.Terminal()
	})
	return a
}

func (b *bench) job(id string) *api.Job {
	b.t.Helper()
	j, err := b.broker.Get(b.t.Context(), b.tenant, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return j
}

// kv is what functions have kept under key.
func (b *bench) kv(key string) string {
	b.t.Helper()
	value, _, err := storage.NewKV(b.store).Get(b.t.Context(), b.tenant, namespace, key)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(value)
}

func TestAsyncInvocation(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("echo", `export default (event, ctx) => { console.log("ran"); return { event, who: ctx.principal.sub, attempt: ctx.attempt, id: ctx.activation_id, trigger: ctx.trigger.type, req: ctx.request_id }; };`, asynchronous(3))
		id := b.enqueue("echo", `{"n":1}`)
		a := b.ends(id)
		want := fmt.Sprintf(`{"event":{"n":1},"who":"tester","attempt":1,"id":%q,"trigger":"api","req":"req_test"}`, id)
		if a.Status != api.StatusSuccess || string(a.Result) != want || a.Attempt != 1 || a.JobID != id || a.Ref != (api.Ref{Alias: "prod", Version: 1}) {
			b.t.Errorf("%+v\n%s", a, a.Result)
		}
		if got, want := string(a.Trigger.Source), fmt.Sprintf(`{"queue":"fn.echo","job_id":%q,"attempt":1}`, id); got != want || a.Trigger.Type != api.TriggerAPI {
			b.t.Errorf("trigger %s %s", a.Trigger.Type, got)
		}
		if j := b.job(id); j.State != api.JobCompleted {
			b.t.Errorf("job %+v", j)
		}
		if lines, _, err := storage.NewLogs(b.store).Read(b.t.Context(), b.tenant, id, storage.LogCursor{}, 10); err != nil || len(lines) != 1 {
			b.t.Errorf("logs %+v %v", lines, err)
		}
		if items := b.list("echo"); len(items) != 1 || items[0].ActivationID != id {
			b.t.Errorf("listed %+v", items)
		}
	})
}

// A function that fails is tried again, under one activation whose log goes on.
func TestAsyncRetriesUntilSuccess(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("third", `export default (event, ctx) => { console.log("attempt", ctx.attempt); if (ctx.attempt < 3) throw Object.assign(new Error("not yet"), {code: "E_YET"}); return ctx.attempt; };`, asynchronous(4))
		id := b.enqueue("third", "null")
		a := b.ends(id)
		if a.Status != api.StatusSuccess || string(a.Result) != "3" || a.Attempt != 3 || a.Error != nil {
			b.t.Errorf("%+v", a)
		}
		j := b.job(id)
		if j.State != api.JobCompleted || len(j.Errors) != 2 || j.Errors[0].Error != "Exception: not yet" || j.Errors[0].Stack == "" {
			b.t.Errorf("job %+v", j)
		}
		lines, _, err := storage.NewLogs(b.store).Read(b.t.Context(), b.tenant, id, storage.LogCursor{}, 10)
		if err != nil || len(lines) != 3 {
			b.t.Fatalf("logs %+v %v", lines, err)
		}
		for k, line := range lines {
			if line.Attempt != k+1 || !strings.Contains(string(line.Message), fmt.Sprint(k+1)) {
				b.t.Errorf("line %d: %+v", k, line)
			}
		}
	})
}

// outcome is what a destination is told.
type outcome struct {
	Version        string `json:"version"`
	RequestContext struct {
		RequestID              string `json:"requestId"`
		Function               string `json:"function"`
		Ref                    string `json:"ref"`
		Condition              string `json:"condition"`
		ApproximateInvokeCount int    `json:"approximateInvokeCount"`
	} `json:"requestContext"`
	RequestPayload  json.RawMessage `json:"requestPayload"`
	ResponseContext struct {
		StatusCode    int    `json:"statusCode"`
		FunctionError string `json:"functionError"`
	} `json:"responseContext"`
	ResponsePayload json.RawMessage `json:"responsePayload"`
}

// told waits for what a queue is told.
func (b *bench) told(name string) outcome {
	b.t.Helper()
	var jobs []api.FetchedJob
	b.eventually("the destination is told", func() bool {
		var err error
		jobs, err = b.broker.Fetch(b.t.Context(), queue.Fetch{Tenant: b.tenant, Namespace: namespace, Queues: []string{name}, WorkerID: "test", Count: 10})
		if err != nil {
			b.t.Fatal(err)
		}
		return len(jobs) > 0
	})
	if len(jobs) != 1 {
		b.t.Fatalf("told %d times", len(jobs))
	}
	var o outcome
	if err := json.Unmarshal(jobs[0].Payload, &o); err != nil {
		b.t.Fatal(err)
	}
	return o
}

func TestAsyncDestinations(t *testing.T) {
	eachWorking(t, func(b *bench) {
		keeper := asynchronous(2)
		b.publish("keeper", `export default async (event, ctx) => { await cs.kv.set("done", event); return ctx.attempt; };`, keeper)
		config := asynchronous(2)
		config.OnFailure, config.OnSuccess = &api.Destination{Queue: "failures"}, &api.Destination{Function: "keeper"}
		b.publish("fragile", `export default (event) => { if (event.fail) throw new Error("as asked"); return "fine"; };`, config)

		failed := b.ends(b.enqueue("fragile", `{"fail":true}`))
		if failed.Status != api.StatusError || failed.Error == nil || failed.Error.Type != api.ErrException || failed.Attempt != 2 {
			b.t.Errorf("%+v", failed)
		}
		if j := b.job(failed.JobID); j.State != api.JobDead || j.DeadReason != api.DeadAttempts || len(j.Errors) != 2 {
			b.t.Errorf("job %+v", j)
		}
		o := b.told("failures")
		if o.Version != "1.0" || o.RequestContext.RequestID != failed.ActivationID || o.RequestContext.Condition != "RetriesExhausted" ||
			o.RequestContext.ApproximateInvokeCount != 2 || o.RequestContext.Function != "default/fragile" || o.RequestContext.Ref != "prod" ||
			string(o.RequestPayload) != `{"fail":true}` || o.ResponseContext.StatusCode != 200 || o.ResponseContext.FunctionError != "Exception" ||
			!strings.Contains(string(o.ResponsePayload), "as asked") {
			b.t.Errorf("%+v", o)
		}

		fine := b.ends(b.enqueue("fragile", `{}`))
		b.eventually("the function is told", func() bool { return b.kv("done") != "" })
		o = outcome{}
		if err := json.Unmarshal([]byte(b.kv("done")), &o); err != nil || o.RequestContext.RequestID != fine.ActivationID ||
			o.RequestContext.Condition != "Success" || string(o.ResponsePayload) != `"fine"` {
			b.t.Errorf("%s %v", b.kv("done"), err)
		}
		b.eventually("the function's own activation ends", func() bool {
			items := b.list("keeper")
			return len(items) == 1 && items[0].Status == api.StatusSuccess && items[0].Trigger.Type == api.TriggerQueue && items[0].RequestID == "req_test"
		})
		if j := b.job(b.list("keeper")[0].JobID); j.MaxAttempts != 2 {
			b.t.Errorf("the destination's own retry policy: %+v", j)
		}
	})
}

// What expires before it could run ends as that, and says so.
func TestAsyncExpires(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(3)
		config.MaxEventAgeMS = 1000
		config.OnFailure = &api.Destination{Queue: "failures"}
		b.publish("late", `export default () => 1;`, config)
		b.pause("fn.late", true)
		a := b.ends(b.enqueue("late", "1"))
		if a.Status != api.StatusError || a.Error == nil || a.Error.Type != api.ErrExpired || a.Error.Code != string(api.CodeEventExpired) || a.Attempt != 0 {
			b.t.Errorf("%+v", a)
		}
		if o := b.told("failures"); o.RequestContext.Condition != "EventAgeExceeded" || o.RequestContext.ApproximateInvokeCount != 0 {
			b.t.Errorf("%+v", o)
		}
	})
}

func (b *bench) pause(name string, paused bool) {
	b.t.Helper()
	if _, err := b.broker.Configure(b.t.Context(), b.tenant, namespace, name, queue.Change{Paused: &paused}); err != nil {
		b.t.Fatal(err)
	}
}

// A paused queue pauses its function, and goes on where it was.
func TestAsyncPause(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("echo", `export default (e) => e;`, asynchronous(1))
		b.ends(b.enqueue("echo", "0"))
		b.pause("fn.echo", true)
		var paused []string
		for n := range 5 {
			paused = append(paused, b.enqueue("echo", fmt.Sprint(n)))
		}
		b.publish("other", `export default (e) => e;`, asynchronous(1))
		b.ends(b.enqueue("other", "1"))
		for _, id := range paused {
			if a := b.stored(id); a.Status != api.StatusQueued || a.Attempt != 0 {
				b.t.Errorf("%+v", a)
			}
		}
		b.pause("fn.echo", false)
		for _, id := range paused {
			if a := b.ends(id); a.Status != api.StatusSuccess {
				b.t.Errorf("%+v", a)
			}
		}
	})
}

func TestAsyncCancel(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(3)
		config.TimeoutMS = 60_000
		b.publish("sleeper", `export default async () => { await cs.kv.set("seen", 1); await new Promise((r) => setTimeout(r, 50000)); };`, config)
		b.pause("fn.sleeper", true)
		waiting := b.enqueue("sleeper", "1")
		cancel := func(id string) {
			b.t.Helper()
			if a, err := b.engine.Cancel(b.t.Context(), b.tenant, id); err != nil || a.Status != api.StatusCancelled {
				b.t.Fatalf("%+v %v", a, err)
			}
			if j := b.job(id); j.State != api.JobCancelled {
				b.t.Errorf("its job is %s", j.State)
			}
			if a := b.stored(id); a.Status != api.StatusCancelled {
				b.t.Errorf("it is %s", a.Status)
			}
		}
		cancel(waiting)
		b.pause("fn.sleeper", false)
		running := b.enqueue("sleeper", "2")
		b.eventually("it runs", func() bool { return b.kv("seen") != "" && b.stored(running).Status == api.StatusRunning })
		cancel(running)
		// The operator's way: the job.
		third := b.enqueue("sleeper", "3")
		b.eventually("it runs", func() bool { return b.stored(third).Status == api.StatusRunning })
		if _, err := b.broker.Cancel(b.t.Context(), b.tenant, third); err != nil {
			b.t.Fatal(err)
		}
		if a := b.ends(third); a.Status != api.StatusCancelled || a.Error != nil {
			b.t.Errorf("%+v", a)
		}
		b.eventually("nothing runs any more", func() bool { return b.engine.InHand() == 0 })
	})
}

// An operator's retry is an activation of its own, which names the one before it.
func TestAsyncOperatorsRetry(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("moody", `export default async (e, ctx) => { if (!(await cs.kv.get("n"))) throw new Error("not now"); return ctx.activation_id; };`, asynchronous(1))
		first := b.ends(b.enqueue("moody", "1"))
		if first.Status != api.StatusError {
			b.t.Fatalf("%+v", first)
		}
		retry := func(of string) *storage.StoredActivation {
			b.t.Helper()
			j, err := b.broker.Retry(b.t.Context(), b.tenant, first.JobID)
			if err != nil {
				b.t.Fatal(err)
			}
			id := j.ActivationID(j.ID)
			if id == of || id == first.ActivationID {
				b.t.Fatal("it is no activation of its own")
			}
			a := b.ends(id)
			if a.RetryOf != of || a.JobID != first.JobID || a.Attempt != 1 {
				b.t.Errorf("%+v", a)
			}
			return a
		}
		second := retry(first.ActivationID)
		if second.Status != api.StatusError {
			b.t.Errorf("%+v", second)
		}
		b.publish("moody", `export default (e, ctx) => ctx.activation_id;`, asynchronous(1))
		third := retry(second.ActivationID)
		if third.Status != api.StatusSuccess || string(third.Result) != `"`+third.ActivationID+`"` {
			b.t.Errorf("%+v %s", third, third.Result)
		}
		if items := b.list("moody"); len(items) != 3 {
			b.t.Errorf("%d are listed", len(items))
		}
	})
}

func TestAsyncIdempotencyKey(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("echo", `export default (e) => e;`, asynchronous(1))
		b.pause("fn.echo", true)
		call := func(event string) (*api.Queued, error) {
			inv := b.invocation("echo", event)
			inv.IdempotencyKey = "k"
			return b.engine.Enqueue(b.t.Context(), inv)
		}
		var ids sync.Map
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				out, err := call("1")
				if err != nil || out.Status != api.StatusQueued {
					b.t.Errorf("%+v %v", out, err)
					return
				}
				ids.Store(out.ActivationID, true)
			})
		}
		wg.Wait()
		count := 0
		ids.Range(func(_, _ any) bool { count++; return true })
		if count != 1 {
			b.t.Fatalf("%d activations", count)
		}
		if _, err := call("2"); api.ErrorCode(err) != api.CodeIdempotencyMismatch {
			b.t.Errorf("another event under the same key: %v", err)
		}
		out, err := call("1")
		if err != nil || !out.Replayed || out.Status != api.StatusQueued {
			b.t.Fatalf("%+v %v", out, err)
		}
		b.pause("fn.echo", false)
		b.ends(out.ActivationID)
		if out, err = call("1"); err != nil || !out.Replayed || out.Status != api.StatusSuccess {
			b.t.Errorf("%+v %v", out, err)
		}
		if items := b.list("echo"); len(items) != 1 {
			b.t.Errorf("%d are listed", len(items))
		}
	})
}

// Each attempt runs what the alias means then.
func TestAsyncAliasIsResolvedAnew(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(1000)
		delay := int64(200)
		config.Retry.Backoff, config.Retry.BaseDelayMS = api.BackoffFixed, &delay
		b.publish("moving", `export default () => { throw new Error("old"); };`, config)
		id := b.enqueue("moving", "1")
		b.eventually("it fails", func() bool { a := b.stored(id); return a.Error != nil && a.Ref.Version == 1 })
		b.publish("moving", `export default () => "new";`, config)
		if a := b.ends(id); a.Status != api.StatusSuccess || a.Ref.Version != 2 || a.Attempt < 2 {
			b.t.Errorf("%+v", a)
		}
	})
}

// What cannot be run at all is not tried again.
func TestAsyncRefusals(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(5)
		b.publish("gone", `export default () => 1;`, config)
		b.pause("fn.gone", true)
		id := b.enqueue("gone", "1")
		if err := storage.NewAliases(b.store).Delete(b.t.Context(), b.tenant, namespace, "gone", "prod", nil); err != nil {
			b.t.Fatal(err)
		}
		b.engine.Invalidate(b.t.Context(), b.tenant, namespace, "gone")
		b.pause("fn.gone", false)
		if a := b.ends(id); a.Status != api.StatusError || a.Error.Type != api.ErrRefused || a.Error.Code != string(api.CodeAliasNotFound) || a.Attempt != 1 {
			b.t.Errorf("%+v %+v", a, a.Error)
		}
		if j := b.job(id); j.State != api.JobDead || j.DeadReason != api.DeadFatal {
			b.t.Errorf("job %+v", j)
		}
		// A version that names roles is judged at the attempt, too.
		b.publish("closed", `export default () => 1;`, asynchronous(5))
		b.pause("fn.closed", true)
		inv := b.invocation("closed", "1")
		inv.Access, inv.Principal.Roles = api.AccessGranted, []string{"invoker"}
		out, err := b.engine.Enqueue(b.t.Context(), inv)
		if err != nil {
			b.t.Fatal(err)
		}
		config.Authz = &api.Authz{InvokeHTTPRoles: []string{"admin"}}
		b.publish("closed", `export default () => 2;`, config)
		b.pause("fn.closed", false)
		if a := b.ends(out.ActivationID); a.Error == nil || a.Error.Code != string(api.CodeAuthzDenied) {
			b.t.Errorf("%+v", a)
		}
		if _, err := b.engine.Enqueue(b.t.Context(), inv); api.ErrorCode(err) != api.CodeAuthzDenied {
			b.t.Errorf("enqueued: %v", err)
		}
		inv.Event = json.RawMessage(`"` + strings.Repeat("x", api.MaxJobPayloadBytes) + `"`)
		if _, err := b.engine.Enqueue(b.t.Context(), inv); api.ErrorCode(err) != api.CodeBodyLimit {
			b.t.Errorf("too large: %v", err)
		}
	})
}

// No more run than the version allows, and none is refused for it.
func TestAsyncRespectsMaxConcurrency(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(1)
		config.MaxConcurrency = 2
		b.publish("narrow", `export default () => new Promise((r) => setTimeout(r, 40));`, config)
		var ids []string
		for range 50 {
			ids = append(ids, b.enqueue("narrow", "null"))
		}
		most := 0
		b.eventually("all have run", func() bool {
			running, ended := 0, 0
			for _, a := range b.list("narrow") {
				switch a.Status {
				case api.StatusRunning:
					running++
				case api.StatusSuccess:
					ended++
				}
			}
			// A record may say running while its place is another's already.
			most = max(most, running)
			return ended == len(ids)
		})
		if most > 4 {
			b.t.Errorf("%d ran at once", most)
		}
		for _, id := range ids {
			if j := b.job(id); j.Attempt != 1 || len(j.Errors) > 0 {
				b.t.Errorf("%+v", j)
			}
		}
	})
}

// A worker that is stopped while jobs come loses none and repeats none.
func TestAsyncCleanStop(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	open := func() *storage.Store { return storagetest.Open(t, storage.Config{URL: server.URL}) }
	here, there := newBench(t, open()), newBench(t, open())
	there.tenant = here.tenant
	config := asynchronous(3)
	config.MaxConcurrency = 20
	here.publish("count", `export default async (n, ctx) => { await new Promise((r) => setTimeout(r, 20)); return ctx.attempt; };`, config)
	there.work()
	var mu sync.Mutex
	var ids []string
	ctx, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				out, err := there.engine.Enqueue(context.WithoutCancel(ctx), there.invocation("count", "1"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				ids = append(ids, out.ActivationID)
				mu.Unlock()
				time.Sleep(2 * time.Millisecond) // the load's pace
			}
		})
	}
	for range 3 {
		stop := here.work()
		here.eventually("it has work", func() bool { return here.engine.InHand() > 0 })
		stop()
		if n := here.engine.InHand(); n != 0 {
			t.Errorf("%d in hand after the stop", n)
		}
	}
	end()
	load.Wait()
	for _, id := range ids {
		if a := here.ends(id); a.Status != api.StatusSuccess || a.Attempt != 1 || string(a.Result) != "1" {
			t.Errorf("%+v", a)
		}
	}
	t.Logf("%d invocations", len(ids))
}

// An engine that closes gives long runs back, and their attempts do not count.
func TestAsyncGivesBack(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	open := func() *storage.Store { return storagetest.Open(t, storage.Config{URL: server.URL}) }
	here, there := newBench(t, open()), newBench(t, open())
	there.tenant = here.tenant
	config := asynchronous(1)
	config.TimeoutMS = 60_000
	here.publish("long", `export default async (e, ctx) => { console.log("began"); if (!(await cs.kv.get("n"))) { await cs.kv.set("n", 1); await new Promise((r) => setTimeout(r, 50000)); } return ctx.attempt; };`, config)
	id := here.enqueue("long", "1")
	stop := here.work()
	here.eventually("it runs", func() bool { return here.kv("n") != "" })
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = here.engine.Close(ctx) // its wait ran out, as it should
	<-ended
	if a := here.stored(id); a.Status != api.StatusQueued || a.Attempt != 0 {
		t.Errorf("given back as %+v", a)
	}
	there.work()
	if a := there.ends(id); a.Status != api.StatusSuccess || string(a.Result) != "1" || a.Attempt != 1 {
		t.Errorf("%+v", a)
	}
	if lines, _, err := storage.NewLogs(there.store).Read(t.Context(), there.tenant, id, storage.LogCursor{}, 10); err != nil || len(lines) != 2 {
		t.Errorf("logs %+v %v", lines, err)
	}
}
