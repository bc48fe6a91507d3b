package cadenceworker_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/cadence/client"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/kvstore"
)

// untilGo is a function that runs until the test says go, and tells when it ran.
const untilGo = `export default async () => {
	const from = Date.now();
	while (!(await cs.kv.get("go"))) await new Promise(r => setTimeout(r, 50));
	return [from, Date.now()];
};`

func mayReadGo(c *api.VersionConfig) {
	c.Capabilities.KV = &api.KVCapability{Prefixes: []string{"go"}, Ops: []string{"get"}}
}

// sayGo lets the functions that wait for it end, and those that come after.
func (b *bench) sayGo(say bool) {
	b.t.Helper()
	var err error
	kv := kvstore.New(b.store)
	if say {
		err = kv.Set(b.t.Context(), b.tenant, namespace, "go", []byte("1"), 0)
	} else {
		_, err = kv.Del(b.t.Context(), b.tenant, namespace, "go")
	}
	if err != nil {
		b.t.Fatalf("unexpected error: %v", err)
	}
}

// atOnce is how many of the functions ran at one time, by their own clocks, which
// tell nothing of how long records take.
func atOnce(t *testing.T, out report, want int) (most int) {
	t.Helper()
	if len(out.Results) != want {
		t.Fatalf("got results %+v, want %d", out, want)
	}
	ran := make([][2]int64, want)
	for i, result := range out.Results {
		if err := json.Unmarshal([]byte(result), &ran[i]); err != nil {
			t.Fatalf("decode result %s: %v", result, err)
		}
	}
	for _, a := range ran {
		n := 0
		for _, other := range ran {
			if other[0] <= a[0] && a[0] < other[1] {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// As many tasks as the limit says are in hand, also where it changes while they are,
// and a task whose function has no place waits.
func TestLimitsAreHonoured(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", untilGo, mayReadGo)
	b.publish("narrow", `export default async () => {
		const from = Date.now();
		await new Promise(r => setTimeout(r, 900));
		return [from, Date.now()];
	};`, func(c *api.VersionConfig) { c.MaxConcurrency = 1 })
	bound := b.binding("fun", "narrow")
	bound.Limits.MaxInflightTasks, bound.Pollers.Activity = 3, 8
	b.bind(bound)
	run := b.begin(plan{Activity: "fun", Times: 9, AtOnce: true})
	eventually(t, "the limit is used", func() error { return b.counted("fun", 3, api.StatusRunning) })
	b.sayGo(true)
	if most := atOnce(t, b.wait(run), 9); most > 3 {
		t.Errorf("got %d runs at a time, want at most 3", most)
	}
	b.sayGo(false)
	b.change(func(s *bindings.Record) { s.Limits.MaxInflightTasks, s.Pollers.Activity = 1, 4 })
	run = b.begin(plan{Activity: "fun", Times: 5, AtOnce: true})
	eventually(t, "one runs", func() error { return b.counted("fun", 1, api.StatusRunning) })
	b.change(func(s *bindings.Record) { s.Limits.MaxInflightTasks = 50 })
	eventually(t, "the higher limit is used", func() error { return b.counted("fun", 5, api.StatusRunning) })
	b.sayGo(true)
	if out := b.wait(run); len(out.Results) != 5 {
		t.Fatalf("workflow: got %+v, want 5 results", out)
	}
	// Heartbeat timeouts do not end what waits for its function's only place. (Cadence
	// counts in whole seconds: a timeout may come one early.)
	if most := atOnce(t, b.do(plan{Activity: "narrow", Times: 5, AtOnce: true, Heartbeat: 3 * time.Second}), 5); most != 1 {
		t.Errorf("got %d runs at a time of a function with max_concurrency 1, want 1", most)
	}
}

// onTheirWay is a bench whose binding got a limit of one while each of its two calls
// for tasks had one to bring, the first of run and the second of the other.
func onTheirWay(t *testing.T, run, other plan, source string) (b *bench, first, second client.WorkflowRun, let func()) {
	t.Helper()
	watching := &spy{hold: make(chan struct{})}
	b = newBench(t, options{conn: watching.watch})
	t.Cleanup(func() { close(watching.hold) })
	b.publish("fun", source, mayReadGo)
	bound := b.binding("fun")
	bound.Limits.MaxInflightTasks, bound.Pollers.Activity = 2, 2
	b.bind(bound)
	first = b.begin(run)
	eventually(t, "the first is taken", func() error { return watching.reached(&watching.held, 1) })
	second = b.begin(other)
	eventually(t, "the second is taken", func() error { return watching.reached(&watching.held, 2) })
	b.change(func(s *bindings.Record) { s.Limits.MaxInflightTasks = 1 })
	// A changed binding's worker looks for its domain, and the new limit holds before.
	eventually(t, "the change is heard", func() error { return watching.reached(&watching.described, 2) })
	return b, first, second, func() { watching.hold <- struct{}{} }
}

// Tasks that were on their way when the limit became lower begin as it allows. Their
// heartbeats go on while they wait: the second waits longer than its timeout.
func TestLowerLimitHoldsForTasksOnTheirWay(t *testing.T) {
	one := plan{Activity: "fun", Heartbeat: 3 * time.Second}
	b, first, second, let := onTheirWay(t, one, one, `export default async () => {
		const from = Date.now();
		for (let i = 0; i < 12; i++) { await new Promise(r => setTimeout(r, 400)); await cs.cadence.heartbeat(i); }
		return [from, Date.now()];
	};`)
	let()
	let()
	both := b.wait(first)
	both.Results = append(both.Results, b.wait(second).Results...)
	if most := atOnce(t, both, 2); most != 1 {
		t.Errorf("got %d runs at a time after the limit was lowered, want 1", most)
	}
}

// A task that waits for its place is answered as one that waits for its function's:
// its workflow cancels it, its time ends, or the replica does.
func TestTasksThatWaitForTheirPlaceAreStopped(t *testing.T) {
	const source = `export default async (event) => {
		while (event.cadence.attempt == 0 && !(await cs.kv.get("go"))) await new Promise(r => setTimeout(r, 50));
		return event.cadence.attempt;
	};`
	for name, c := range map[string]struct {
		run, other plan
		check      func(t *testing.T, b *bench, first, second client.WorkflowRun)
	}{
		"cancelled": {plan{}, plan{Heartbeat: 3 * time.Second, CancelOn: "stop"}, func(t *testing.T, b *bench, first, second client.WorkflowRun) {
			if err := b.client.SignalWorkflow(t.Context(), second.GetID(), second.GetRunID(), "stop", nil); err != nil {
				t.Fatalf("SignalWorkflow: %v", err)
			}
			if out := b.wait(second); out.Kind != "cancelled" {
				t.Errorf("second workflow: got %+v, want it cancelled", out)
			}
			b.sayGo(true)
			if out := b.wait(first); len(out.Results) != 1 || len(b.activations("fun")) != 1 {
				t.Errorf("first workflow: got %+v and %d activations, want one result and 1 activation", out, len(b.activations("fun")))
			}
		}},
		"out of time": {plan{}, plan{Timeout: 2 * time.Second}, func(t *testing.T, b *bench, first, second client.WorkflowRun) {
			// Either Cadence or the worker ends the workflow first.
			if out := b.wait(second); out.Reason != "START_TO_CLOSE" && out.Reason != string(api.CodeRuntimeTimeout) {
				t.Errorf("second workflow: got %+v, want a timeout by Cadence or by the worker", out)
			}
			eventually(t, "it waits no more", func() error { return b.runningTasks(1) })
			b.sayGo(true)
			if out := b.wait(first); len(out.Results) != 1 || len(b.activations("fun")) != 1 {
				t.Errorf("first workflow: got %+v and %d activations, want one result and 1 activation", out, len(b.activations("fun")))
			}
		}},
		"put back": {plan{Attempts: 3}, plan{Attempts: 3}, func(t *testing.T, b *bench, first, second client.WorkflowRun) {
			if err := b.replica.end(300 * time.Millisecond); err != nil {
				t.Fatalf("end: %v", err)
			}
			b.start(nil)
			for _, run := range []client.WorkflowRun{first, second} {
				if out := b.wait(run); len(out.Results) != 1 || out.Results[0] != "1" {
					t.Errorf("workflow after the restart: got %+v, want the one result 1", out)
				}
			}
			if n := len(b.activations("fun")); n != 3 {
				t.Errorf("got %d activations, want 3", n)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.run.Activity, c.other.Activity = "fun", "fun"
			b, first, second, let := onTheirWay(t, c.run, c.other, source)
			let()
			eventually(t, "one runs", func() error { return b.counted("fun", 1, api.StatusRunning) })
			let()
			eventually(t, "the other waits", func() error { return b.runningTasks(2) })
			c.check(t, b, first, second)
		})
	}
}

// runningTasks is nil where the replica has n tasks in hand.
func (b *bench) runningTasks(n float64) error {
	if got := metricstest.Value(b.t, b.replica.reg, "sous_cadence_tasks_in_flight"); got != n {
		return fmt.Errorf("%v tasks in hand", got)
	}
	return nil
}
