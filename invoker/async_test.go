package invoker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/kvstore"
)

// work runs the worker and the queues' maintenance until the test or stop ends them.
func (b *bench) work() (stop func()) {
	b.t.Helper()
	ticker, err := scheduler.NewTicker(b.store, b.broker, nil, zap.NewNop())
	if err != nil {
		b.t.Fatalf("NewTicker: %v", err)
	}
	loop := scheduler.NewLoop(b.store, b.broker, ticker, zap.NewNop())
	ctx, cancel := context.WithCancel(b.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.engine.Work(ctx) })
	wg.Go(func() { loop.Run(ctx) })
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

// asynchronous is a config whose failures are retried without delay.
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
		b.t.Fatalf("Enqueue of %s = %+v, %v, want it queued, not replayed", name, out, err)
	}
	return out.ActivationID
}

// ends waits for an activation's end, and for its job's.
func (b *bench) ends(id string) *activations.Record {
	b.t.Helper()
	var a *activations.Record
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
		b.t.Fatalf("Get: %v", err)
	}
	return j
}

// kv returns the value that functions have stored under key.
func (b *bench) kv(key string) string {
	b.t.Helper()
	value, _, err := kvstore.New(b.store).Get(b.t.Context(), b.tenant, namespace, key)
	if err != nil {
		b.t.Fatalf("Get: %v", err)
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
			b.t.Errorf("got %+v with result %s, want success of job %s with result %s at attempt 1 of prod, version 1", a, a.Result, id, want)
		}
		if got, want := string(a.Trigger.Source), fmt.Sprintf(`{"queue":"fn.echo","job_id":%q,"attempt":1}`, id); got != want || a.Trigger.Type != api.TriggerAPI {
			b.t.Errorf("got trigger %s from %s, want %s from %s", a.Trigger.Type, got, api.TriggerAPI, want)
		}
		if j := b.job(id); j.State != api.JobCompleted {
			b.t.Errorf("got job %+v, want it completed", j)
		}
		if lines, _, err := activations.NewLogs(b.store).Read(b.t.Context(), b.tenant, id, activations.LogCursor{}, 10); err != nil || len(lines) != 1 {
			b.t.Errorf("logs: got %+v and error %v, want 1 line", lines, err)
		}
		if items := b.list("echo"); len(items) != 1 || items[0].ActivationID != id {
			b.t.Errorf("got listed activations %+v, want only %s", items, id)
		}
	})
}

// A function that fails is retried, under one activation that keeps its log.
func TestAsyncRetriesUntilSuccess(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("third", `export default (event, ctx) => { console.log("attempt", ctx.attempt); if (ctx.attempt < 3) throw Object.assign(new Error("not yet"), {code: "E_YET"}); return ctx.attempt; };`, asynchronous(4))
		id := b.enqueue("third", "null")
		a := b.ends(id)
		if a.Status != api.StatusSuccess || string(a.Result) != "3" || a.Attempt != 3 || a.Error != nil {
			b.t.Errorf("got status %s, result %s, attempt %d, error %+v, want success with 3 at attempt 3 without an error", a.Status, a.Result, a.Attempt, a.Error)
		}
		j := b.job(id)
		if j.State != api.JobCompleted || len(j.Errors) != 2 || j.Errors[0].Error != "Exception: not yet" || j.Errors[0].Stack == "" {
			b.t.Errorf("got job %+v, want it completed after two errors, the first \"Exception: not yet\" with a stack", j)
		}
		lines, _, err := activations.NewLogs(b.store).Read(b.t.Context(), b.tenant, id, activations.LogCursor{}, 10)
		if err != nil {
			b.t.Fatalf("Logs.Read: %v", err)
		}
		failed := `"Error: not yet\n    at function_default (function.js:1:112)\n  code: E_YET"`
		want := []string{`1 info "attempt 1"`, "1 error " + failed, `2 info "attempt 2"`, "2 error " + failed, `3 info "attempt 3"`}
		var got []string
		for _, line := range lines {
			got = append(got, fmt.Sprint(line.Attempt, " ", line.Level, " ", string(line.Message)))
		}
		if !slices.Equal(got, want) {
			b.t.Errorf("log: got %q, want %q", got, want)
		}
	})
}

// outcome is the event of a destination.
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

// told waits for the event in a destination queue.
func (b *bench) told(name string) outcome {
	b.t.Helper()
	var jobs []api.FetchedJob
	b.eventually("the destination is told", func() bool {
		var err error
		jobs, err = b.broker.Fetch(b.t.Context(), queue.Fetch{Tenant: b.tenant, Namespace: namespace, Queues: []string{name}, WorkerID: "test", Count: 10})
		if err != nil {
			b.t.Fatalf("Fetch: %v", err)
		}
		return len(jobs) > 0
	})
	if len(jobs) != 1 {
		b.t.Fatalf("got %d outcomes, want 1", len(jobs))
	}
	var o outcome
	if err := json.Unmarshal(jobs[0].Payload, &o); err != nil {
		b.t.Fatalf("json.Unmarshal: %v", err)
	}
	return o
}

// TestDestinationsAskForRoles: the list of roles of a destination applies to the caller of the
// function that sends the outcome, as it does for cs.invoke.
func TestDestinationsAskForRoles(t *testing.T) {
	eachWorking(t, func(b *bench) {
		keeper := asynchronous(1)
		keeper.Authz = &api.Authz{InvokeHTTPRoles: []string{"role:billing"}}
		b.publish("keeper", `export default async (event) => { await cs.kv.set("done", event.requestPayload); };`, keeper)
		config := asynchronous(1)
		config.OnSuccess = &api.Destination{Function: "keeper"}
		b.publish("sender", `export default () => "forged";`, config)
		send := func(event string, access api.Access, roles ...string) {
			inv := b.invocation("sender", event)
			inv.Access, inv.Principal.Roles = access, roles
			out, err := b.engine.Enqueue(b.t.Context(), inv)
			if err != nil {
				b.t.Fatalf("Enqueue: %v", err)
			}
			b.ends(out.ActivationID)
		}
		ends := func(n int, want api.Status) {
			b.eventually(fmt.Sprintf("activation %d of the destination ends", n), func() bool {
				items := b.list("keeper")
				return len(items) == n && items[0].Status.Terminal()
			})
			if got := b.list("keeper")[0]; got.Status != want {
				b.t.Errorf("activation %d of the destination: got status %s, want %s", n, got.Status, want)
			}
		}
		send(`1`, api.AccessGranted, "developer")
		ends(1, api.StatusError)
		if got := b.kv("done"); got != "" {
			b.t.Errorf("the destination has run with %s, want no run for a caller without its role", got)
		}
		send(`2`, api.AccessGranted, "developer", "role:billing")
		ends(2, api.StatusSuccess)
		send(`3`, api.AccessUnrestricted)
		ends(3, api.StatusSuccess)
		if got := b.kv("done"); got != "3" {
			b.t.Errorf("the destination has run with %q last, want 3", got)
		}
	})
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
			b.t.Errorf("got status %s, error %+v, attempt %d, want error %s at attempt 2", failed.Status, failed.Error, failed.Attempt, api.ErrException)
		}
		if j := b.job(failed.JobID); j.State != api.JobDead || j.DeadReason != api.DeadAttempts || len(j.Errors) != 2 {
			b.t.Errorf("got job %+v, want it dead with reason %s after two errors", j, api.DeadAttempts)
		}
		o := b.told("failures")
		if o.Version != "1.0" || o.RequestContext.RequestID != failed.ActivationID || o.RequestContext.Condition != "RetriesExhausted" ||
			o.RequestContext.ApproximateInvokeCount != 2 || o.RequestContext.Function != "default/fragile" || o.RequestContext.Ref != "prod" ||
			string(o.RequestPayload) != `{"fail":true}` || o.ResponseContext.StatusCode != 200 || o.ResponseContext.FunctionError != "Exception" ||
			!strings.Contains(string(o.ResponsePayload), "as asked") {
			b.t.Errorf("event of the destination = %+v, want RetriesExhausted of %s after 2 attempts, with its payloads", o, failed.ActivationID)
		}

		fine := b.ends(b.enqueue("fragile", `{}`))
		b.eventually("the function is told", func() bool { return b.kv("done") != "" })
		o = outcome{}
		if err := json.Unmarshal([]byte(b.kv("done")), &o); err != nil || o.RequestContext.RequestID != fine.ActivationID ||
			o.RequestContext.Condition != "Success" || string(o.ResponsePayload) != `"fine"` {
			b.t.Errorf("event of the destination keeper: got %s and error %v, want Success of %s with the result fine", b.kv("done"), err, fine.ActivationID)
		}
		b.eventually("the function's own activation ends", func() bool {
			items := b.list("keeper")
			return len(items) == 1 && items[0].Status == api.StatusSuccess && items[0].Trigger.Type == api.TriggerQueue && items[0].RequestID == "req_test"
		})
		if j := b.job(b.list("keeper")[0].JobID); j.MaxAttempts != 2 {
			b.t.Errorf("got job %+v, want the 2 attempts of the destination's own retry policy", j)
		}
	})
}
