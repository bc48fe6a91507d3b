package cadenceworker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cadenceworker/cadencetest"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

// counted is nil where n activations of a function are in one of the statuses.
func (b *bench) counted(function string, n int, statuses ...api.Status) error {
	b.t.Helper()
	found := 0
	for _, a := range b.activations(function) {
		for _, status := range statuses {
			if a.Status == status {
				found++
			}
		}
	}
	if found < n {
		return fmt.Errorf("%d of %d", found, n)
	}
	return nil
}

// A replica that ends under load finishes what it has taken, another takes the rest,
// and no task runs twice: none of the activities has a retry policy.
func TestGracefulStopLosesAndRepeatsNothing(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default (event, ctx) => new Promise(r => setTimeout(() => r(ctx.activation_id), 150));`)
	bound := b.binding("fun")
	bound.Limits.MaxInflightTasks = 8
	b.bind(bound)
	const tasks = 60
	run := b.begin(plan{Activity: "fun", Times: tasks, AtOnce: true, Timeout: time.Minute})
	eventually(t, "a few are done", func() error { return b.counted("fun", 10, api.StatusSuccess) })
	if err := b.replica.end(10 * time.Second); err != nil {
		t.Fatalf("end: %v", err)
	}
	if err := b.counted("fun", tasks, api.StatusSuccess); err == nil {
		t.Fatal("all was done before the stop")
	}
	for _, a := range b.activations("fun") {
		if a.Status != api.StatusSuccess {
			t.Errorf("activation %s: got status %s, want success", a.ActivationID, a.Status)
		}
	}
	b.start(nil)
	out := b.wait(run)
	if len(out.Results) != tasks || out.Kind != "" {
		t.Errorf("got %d results and last failure %q %q, want %d results", len(out.Results), out.Kind, out.Reason, tasks)
	}
	if n := len(b.activations("fun")); n != tasks {
		t.Errorf("got %d activations, want %d, one for each task", n, tasks)
	}
}

// What does not end in the time of a stop is stopped, and fails so that a retry policy
// has it run elsewhere at once, from its last heartbeat.
func TestStopCutsLongActivities(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default async (event) => {
		if (cs.cadence.lastHeartbeat() === "half") return "resumed";
		await cs.cadence.heartbeat("some");
		await cs.cadence.heartbeat("half");
		await new Promise(r => setTimeout(r, 19000));
	};`)
	b.bind(b.binding("fun"))
	run := b.begin(plan{Activity: "fun", Attempts: 3, Timeout: 2 * time.Minute})
	eventually(t, "it runs", func() error { return b.counted("fun", 1, api.StatusRunning) })
	began := time.Now()
	if err := b.replica.end(300 * time.Millisecond); err != nil {
		t.Fatalf("end: %v", err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the stop took %s, want at most 8s", took)
	}
	b.start(nil)
	if out := b.wait(run); len(out.Results) != 1 || out.Results[0] != `"resumed"` {
		t.Errorf("workflow after the restart: got %+v, want the one result \"resumed\"", out)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the retry came after %s, want at most 30s: the worker did not report the failure to Cadence", took)
	}
}

func TestBindingChangesWhileTasksFlow(t *testing.T) {
	b := newBench(t, options{})
	b.publish("one", `export default () => new Promise(r => setTimeout(() => r("one"), 30));`)
	b.publish("two", `export default () => new Promise(r => setTimeout(() => r("two"), 30));`)
	const tasks = 80
	run := b.begin(plan{Activity: "act", Times: tasks, AtOnce: true, Timeout: time.Minute})
	bound := b.binding()
	bound.ActivityMap["act"] = api.JobTarget{Function: "one", Alias: "prod"}
	bound.Limits.MaxInflightTasks, bound.Pollers.Activity = 2, 2
	b.bind(bound)
	eventually(t, "the new binding works", func() error { return b.counted("one", 5, api.StatusSuccess) })
	b.change(func(s *bindings.Record) {
		s.ActivityMap["act"] = api.JobTarget{Function: "two", Alias: "prod"}
		s.ActivityMap["more"] = api.JobTarget{Function: "two", Alias: "prod"}
	})
	eventually(t, "the changed binding works", func() error { return b.counted("two", 5, api.StatusSuccess) })
	b.change(func(s *bindings.Record) { s.Enabled = false })
	b.awaitStatus("it is disabled", func(c api.BindingCounts) bool { return c.State == api.BindingDisabled && c.InFlight == 0 })
	done := len(b.activations("one")) + len(b.activations("two"))
	if done >= tasks {
		t.Fatal("all was done before")
	}
	b.change(func(s *bindings.Record) { s.Enabled, s.Limits.MaxInflightTasks = true, 20 })
	eventually(t, "the enabled binding works", func() error { return b.counted("two", done-len(b.activations("one"))+5, api.StatusSuccess) })
	if err := b.bindings().Delete(t.Context(), b.path(), nil); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	bound.Name = "other"
	b.bind(bound)
	out := b.wait(run)
	if len(out.Results) != tasks || out.Kind != "" {
		t.Errorf("got %d results and last failure %q %q, want %d results", len(out.Results), out.Kind, out.Reason, tasks)
	}
	if n := len(b.activations("one")) + len(b.activations("two")); n != tasks {
		t.Errorf("got %d activations, want %d, one for each task", n, tasks)
	}
	// A type of which the replica learned with the change.
	b.change2("other", func(s *bindings.Record) { s.ActivityMap["late"] = api.JobTarget{Function: "two", Alias: "prod"} })
	if out := b.do(plan{Activity: "late"}); len(out.Results) != 1 || out.Results[0] != `"two"` {
		t.Errorf("activity of the new type: got %+v, want the one result \"two\"", out)
	}
}

func (b *bench) change2(name string, f func(*bindings.Record)) {
	b.t.Helper()
	path := storage.BindingPath{Tenant: b.tenant, Namespace: namespace, Name: name}
	if _, err := b.bindings().Update(b.t.Context(), path, nil, b.store.NowMS(), func(s *bindings.Record) error { f(s); return nil }); err != nil {
		b.t.Fatalf("Update: %v", err)
	}
}

func TestDomainAppearsLater(t *testing.T) {
	b := newBench(t, options{domain: "-"})
	b.domain = "late-" + strings.ReplaceAll(b.tenant, "_", "-")
	b.publish("fun", `export default () => 1;`)
	b.bind(b.binding("fun"))
	b.awaitStatus("it waits", func(c api.BindingCounts) bool {
		return c.State == api.BindingWaiting && c.Reason == "the domain does not exist"
	})
	b.server.Register(t, b.domain)
	b.workflows()
	if out := b.do(plan{Activity: "fun"}); len(out.Results) != 1 {
		t.Errorf("activity after the domain was registered: got %+v, want one result", out)
	}
	b.awaitStatus("it runs", func(c api.BindingCounts) bool { return c.State == api.BindingRunning && c.Reason == "" })
}

func TestServerRestarts(t *testing.T) {
	t.Parallel()
	cadencetest.Skip(t)
	b := newBenchOf(t, options{server: cadencetest.StartOwn(t)})
	b.publish("fun", `export default () => new Promise(r => setTimeout(() => r("done"), 1500));`)
	b.bind(b.binding("fun"))
	if out := b.do(plan{Activity: "fun"}); len(out.Results) != 1 {
		t.Fatalf("activity before the outage: got %+v, want one result", out)
	}
	run := b.begin(plan{Activity: "fun", Timeout: time.Minute})
	eventually(t, "it runs", func() error { return b.counted("fun", 1, api.StatusRunning) })
	b.server.Stop(t)
	b.awaitStatus("it says that the server is away", func(c api.BindingCounts) bool {
		return c.State == api.BindingFailing && c.Reason == "the call to the Cadence server failed"
	})
	eventually(t, "the function ends meanwhile", func() error { return b.counted("fun", 2, api.StatusSuccess) })
	b.server.Restart(t)
	// The answer that could not be given is given now: nothing runs again.
	var out report
	eventually(t, "the workflow ends", func() error { return b.tryWait(run, &out) })
	if len(out.Results) != 1 || out.Results[0] != `"done"` || len(b.activations("fun")) != 2 {
		t.Errorf("got %+v and %d activations, want the one result \"done\" and 2 activations", out, len(b.activations("fun")))
	}
	if out := b.do(plan{Activity: "fun"}); len(out.Results) != 1 {
		t.Errorf("activity after the outage: got %+v, want one result", out)
	}
	b.awaitStatus("it runs again", func(c api.BindingCounts) bool { return c.State == api.BindingRunning && c.Reason == "" })
}

func TestNoServerIsShown(t *testing.T) {
	b := newBench(t, options{noServer: true})
	b.domain = "payments"
	b.publish("fun", `export default () => 1;`)
	b.bind(b.binding("fun"))
	b.awaitStatus("it says so", func(c api.BindingCounts) bool { return c.State == api.BindingNoServer && c.Reason != "" })
	if err := b.replica.end(time.Second); err != nil {
		t.Fatalf("end: %v", err)
	}
	b.awaitStatus("no worker is left", func(c api.BindingCounts) bool { return c.State == api.BindingStopped || c.State == api.BindingStarting })
}

// A missing function is seen before any task comes, and so is its return.
func TestMissingFunctionIsShown(t *testing.T) {
	b := newBench(t, options{})
	b.bind(b.binding("absent"))
	b.awaitStatus("it is missed", func(c api.BindingCounts) bool {
		return c.State == api.BindingRunning && strings.Contains(c.Reason, `"absent"`)
	})
	b.publish("absent", `export default () => 1;`)
	b.change(func(s *bindings.Record) { s.Pollers.Activity = 4 })
	b.awaitStatus("it is there", func(c api.BindingCounts) bool { return c.State == api.BindingRunning && c.Reason == "" })
}

// A task of a type that the binding does not have is counted, and left to time out.
func TestUnknownActivityType(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default () => 1;`)
	b.bind(b.binding("fun"))
	out := b.do(plan{Activity: "strange", Timeout: 2 * time.Second})
	if out.Kind != "timeout" || out.Reason != "START_TO_CLOSE" {
		t.Errorf("activity of an unknown type: got %+v, want timeout START_TO_CLOSE", out)
	}
	if n := metricstest.Value(t, b.replica.reg, "sous_cadence_tasks_total", "status=unknown"); n != 1 {
		t.Errorf("got %v tasks of unknown type in the metrics, want 1", n)
	}
	b.awaitStatus("it is shown", func(c api.BindingCounts) bool { return strings.Contains(c.Reason, `activity "strange"`) })
}

func TestMetrics(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default async (event) => { await cs.cadence.heartbeat(); if (event.input.json) throw 1; };`)
	b.bind(b.binding("fun"))
	b.do(plan{Activity: "fun"})
	b.do(plan{Activity: "fun", Input: "1"})
	eventually(t, "all is counted", func() error {
		for _, want := range []struct {
			name, label string
			value       float64
		}{
			{"tasks_total", "status=completed", 1}, {"tasks_total", "status=failed", 1}, {"polls_total", "outcome=task", 2},
			{"heartbeats_total", "outcome=ok", 2}, {"schedule_to_start_seconds", "", 2}, {"workers", "state=running", 1}, {"tasks_in_flight", "", 0},
		} {
			var labels []string
			if want.label != "" {
				labels = append(labels, want.label)
			}
			if got := metricstest.Value(t, b.replica.reg, "sous_cadence_"+want.name, labels...); got != want.value {
				return fmt.Errorf("%s %s is %v, want %v", want.name, want.label, got, want.value)
			}
		}
		return nil
	})
}

func TestFunctionsStartAndSignalWorkflows(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default async (event) => {
		const said = async (p) => { try { return await p } catch (err) { return err.code } };
		const at = { domain: event.domain, tasklist: "workflows", workflowId: event.id };
		const run = await cs.cadence.start("await", { ...at, input: { a: 1 }, executionTimeoutSeconds: 60 });
		return [
			run.workflowId === event.id && run.runId.length,
			await said(cs.cadence.start("await", at)),
			await said(cs.cadence.start("plan", { ...at, workflowId: "other" })),
			await said(cs.cadence.signal("await", { ...at, workflowId: "missing", signal: "go" })),
			await said(cs.cadence.signal("plan", { ...at, signal: "go" })),
			await said(cs.cadence.signal("ghost", { ...at, signal: "go" })),
			await said(cs.cadence.start("await", { ...at, domain: "no-such-domain" })),
			await said(cs.cadence.signal("await", { ...at, signal: "go", input: [2] })),
		];
	};`, func(c *api.VersionConfig) {
		c.Capabilities.Cadence = &api.CadenceCapability{Domains: []string{b.domain, "no-such-domain"}, Workflows: []string{"await", "ghost"}}
	})
	id := "wf-" + b.tenant
	event := fmt.Sprintf(`{"domain":%q,"id":%q}`, b.domain, id)
	out, err := b.replica.engine.Invoke(t.Context(), api.Invocation{
		Tenant: b.tenant, Namespace: namespace, Function: "fun", Ref: api.Ref{Alias: "prod"},
		Trigger: api.Trigger{Type: api.TriggerAPI}, Access: api.AccessUnrestricted, Event: []byte(event),
	})
	const want = `[36,"CS_RUNTIME_WORKFLOW_EXISTS","CS_RUNTIME_CAPABILITY_DENIED","CS_RUNTIME_WORKFLOW_NOT_FOUND",` +
		`"CS_RUNTIME_CAPABILITY_DENIED","CS_RUNTIME_WORKFLOW_NOT_FOUND","CS_RUNTIME_WORKFLOW_NOT_FOUND",null]`
	if err != nil || string(out.Activation.Result) != want {
		t.Fatalf("Invoke: got error %v, result %s and activation error %+v, want result %s", err, out.Activation.Result, out.Activation.Error, want)
	}
	var result string
	eventually(t, "the workflow ends", func() error { return b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &result) })
	if result != `{"a":1}[2]` {
		t.Errorf("workflow: got result %s, want {\"a\":1}[2]", result)
	}
}
