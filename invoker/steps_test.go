package invoker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/queue/runs"
)

// run returns a run as the store has it.
func (b *bench) run(id string) *step.Run {
	b.t.Helper()
	run, err := runs.New(b.store, b.broker).Get(b.t.Context(), b.tenant, id)
	if err != nil {
		b.t.Fatalf("Get: %v", err)
	}
	return run
}

// stepsOf returns the steps of a run, each as NAME STATUS RESULT.
func (b *bench) stepsOf(id string) string {
	b.t.Helper()
	var out []string
	for _, s := range b.run(id).Steps {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Label(), s.Status, s.Result)))
	}
	return strings.Join(out, "; ")
}

// counted is the begin of a function whose calls of the functions of its steps are counted by name.
const counted = `let calls = (name) => console.log("ran " + name);`

// ran returns how often the functions of steps ran, from the log of an activation.
func (b *bench) ran(id, name string) int { return strings.Count(b.lines(id), `"ran `+name+`"`) }

func TestStepsOfAnAsyncRunAreSkippedByItsRetry(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("steps", counted+`export default async (event, ctx) => {
  const a = await cs.step("a", () => { calls("a"); return { n: event.n + 1 }; });
  const b = await cs.step("b", async (s) => { calls("b"); return [a.n, s.attempt]; });
  if (ctx.attempt === 1) throw new Error("later");
  const c = await cs.step("a", () => { calls("c"); });
  return { a, b, c: c === undefined };
};`, asynchronous(3))
		id := b.enqueue("steps", `{"n":1}`)
		a := b.ends(id)
		if want := `{"a":{"n":2},"b":[2,1],"c":true}`; a.Status != api.StatusSuccess || string(a.Result) != want {
			b.t.Errorf("got status %s, result %s, error %+v, want success with %s", a.Status, a.Result, a.Error, want)
		}
		if got, want := b.stepsOf(id), `a completed {"n":2}; b completed [2,1]; a #2 completed`; got != want {
			b.t.Errorf("steps: got %s, want %s", got, want)
		}
		for _, name := range []string{"a", "b", "c"} {
			if n := b.ran(id, name); n != 1 {
				b.t.Errorf("step %s: got %d runs, want 1; log:\n%s", name, n, b.lines(id))
			}
		}
	})
}

func TestStepsOfATriggeredRunAreSkippedByItsRetry(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("steps", `export default async (event) => {
  const a = await cs.step("a", async () => { const n = ((await cs.kv.get("n")) ?? 0) + 1; await cs.kv.set("n", n); return n; });
  if (cs.job.attempt === 1) throw new Error("later");
  return { a, attempt: cs.job.attempt };
};`, asynchronous(1))
		b.trigger("steps", trigger.NewQueueTrigger{})
		ids := b.mail(`{}`)
		b.inState(api.JobCompleted, ids)
		if got := string(b.job(ids[0]).Result); got != `{"a":1,"attempt":2}` {
			b.t.Errorf("got result %s, want the recorded 1 in attempt 2", got)
		}
	})
}

func TestSleepEndsTheActivation(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("sleeper", counted+`export default async (event, ctx) => {
  await cs.step("before", () => calls("before"));
  await cs.sleep(20);
  await cs.sleep(event.ms);
  await cs.step("after", () => calls("after"));
  return ctx.attempt;
};`, asynchronous(1))
		id := b.enqueue("sleeper", `{"ms":1500}`)
		b.eventually("the run sleeps", func() bool { return b.job(id).State == api.JobScheduled })
		b.eventually("the worker has given the job up", func() bool { return b.engine.LeasedJobs() == 0 })
		if a := b.stored(id); a.Status != api.StatusQueued {
			b.t.Errorf("a sleeping run: got status %s, want queued", a.Status)
		}
		due := b.job(id).DueAtMS
		a := b.ends(id)
		if a.Status != api.StatusSuccess || string(a.Result) != "1" {
			b.t.Fatalf("got status %s, result %s, error %+v, want success in attempt 1", a.Status, a.Result, a.Error)
		}
		if late := b.job(id).EndedAtMS - due; late < 0 || late > 1500 {
			b.t.Errorf("the run ended %d ms after its time, want at most 1500", late)
		}
		if before, after := b.ran(id, "before"), b.ran(id, "after"); before != 1 || after != 1 {
			b.t.Errorf("got %d and %d runs of the steps, want 1 and 1", before, after)
		}
	})
}

func TestParallelStepsReplayInAnyOrder(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("parallel", counted+`const later = (ms) => new Promise((r) => setTimeout(r, ms));
export default async (event, ctx) => {
  const branch = async (name, ms) => {
    const first = await cs.step(name + 1, async () => { calls(name + 1); await later(ms); return name; });
    return await cs.step(name + 2, async () => { calls(name + 2); await later(ms); return first + "!"; });
  };
  const first = await Promise.race([branch("slow", 60), branch("quick", 5)]);
  const all = await Promise.all([cs.step("x", () => 1), cs.sleep(1100), cs.step("y", () => later(20).then(() => 2))]);
  await cs.step(first, () => calls(first));
  return [first, all];
};`, asynchronous(1))
		id := b.enqueue("parallel", "null")
		a := b.ends(id)
		if a.Status != api.StatusSuccess || string(a.Result) != `["quick!",[1,null,2]]` {
			b.t.Fatalf("got status %s, result %s, error %+v, want success by the quick branch; steps: %s", a.Status, a.Result, a.Error, b.stepsOf(id))
		}
		for _, name := range []string{"slow1", "quick1", "quick2", "quick!"} {
			if n := b.ran(id, name); n != 1 {
				b.t.Errorf("step %s: got %d runs, want 1", name, n)
			}
		}
	})
}

func TestAChangedOrderOfStepsIsNamed(t *testing.T) {
	eachWorking(t, func(b *bench) {
		for name, source := range map[string]string{
			"other":  `await cs.step("a", () => 1); await cs.step(ctx.attempt === 1 ? "b" : "other", () => 2); if (ctx.attempt === 1) throw new Error("later");`,
			"caught": `await cs.step("a", () => 1); try { await cs.step(ctx.attempt === 1 ? "b" : "other", () => 2); } catch {} if (ctx.attempt === 1) throw new Error("later");`,
			"fewer":  `await cs.step("a", () => 1); if (ctx.attempt === 1) { await cs.step("b", () => 2); throw new Error("later"); }`,
			"none":   `if (ctx.attempt === 1) { await cs.step("a", () => 1); await cs.step("b", () => 1); throw new Error("later"); } await cs.step("a", () => 1);`,
		} {
			b.publish(name, `export default async (event, ctx) => { `+source+` };`, asynchronous(5))
			id := b.enqueue(name, "null")
			a := b.ends(id)
			if a.Status != api.StatusError || a.Error.Code != string(api.CodeHostStepOrder) || a.Attempt != 2 || !strings.Contains(a.Error.Message, `recorded the step "b"`) {
				b.t.Errorf("%s: got status %s after attempt %d, error %+v, want %s with step b after attempt 2", name, a.Status, a.Attempt, a.Error, api.CodeHostStepOrder)
			}
			if j := b.job(id); j.DeadReason != api.DeadFatal {
				b.t.Errorf("%s: got dead reason %q, want fatal", name, j.DeadReason)
			}
		}
	})
}

func TestStepsAreRetried(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("retries", counted+`export default async (event, ctx) => {
  const retry = { maxAttempts: 3, backoffMs: 10 };
  const third = await cs.step("third", ({ attempt }) => { calls("third"); if (attempt < 3) throw new Error("no"); return attempt; }, { retry });
  const parked = await cs.step("parked", ({ attempt }) => { calls("parked"); if (attempt < 2) throw new Error("no"); return attempt; }, { retry: { backoffMs: "1.2s" } });
  const never = await cs.step("never", () => { calls("never"); throw Object.assign(new TypeError("never"), { code: "E_NO" }); }, { retry }).catch((e) => [e.name, e.message, e.code, e.step, e.attempts, e.causeCode]);
  const once = await cs.step("once", () => { calls("once"); throw Object.assign(new Error("once"), { noRetry: true }); }).catch((e) => e.attempts);
  const slow = await cs.step("slow", () => new Promise(() => setTimeout(() => {}, 5000)), { timeout: 30, retry: { maxAttempts: 2, backoffMs: 1 } }).catch((e) => [e.causeCode, e.attempts]);
  if (ctx.attempt === 1 && parked) await cs.sleep(1100);
  return { third, parked, never, once, slow };
};`, asynchronous(2))
		id := b.enqueue("retries", "null")
		a := b.ends(id)
		want := `{"third":3,"parked":2,"never":["TypeError","never","CS_RUNTIME_STEP_FAILED","never",3,"E_NO"],"once":1,"slow":["CS_RUNTIME_STEP_TIMEOUT",2]}`
		if a.Status != api.StatusSuccess || string(a.Result) != want {
			b.t.Errorf("got status %s, result %s, error %+v, want success with %s", a.Status, a.Result, a.Error, want)
		}
		for name, want := range map[string]int{"third": 3, "parked": 2, "never": 3, "once": 1} {
			if n := b.ran(id, name); n != want {
				b.t.Errorf("step %s: got %d runs, want %d", name, n, want)
			}
		}
	})
}

func TestAStepThatFailsForGoodEndsItsRun(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("fails", `export default async () => { await cs.step("pay", () => { throw new Error("no money"); }, { retry: { maxAttempts: 1 } }); };`, asynchronous(5))
		id := b.enqueue("fails", "null")
		a := b.ends(id)
		if a.Status != api.StatusError || a.Error.Code != string(api.CodeHostStepFailed) || a.Attempt != 1 {
			b.t.Errorf("got status %s after attempt %d, error %+v, want %s after attempt 1", a.Status, a.Attempt, a.Error, api.CodeHostStepFailed)
		}
		if got, want := b.stepsOf(id), "pay failed"; got != want {
			b.t.Errorf("steps: got %s, want %s", got, want)
		}
	})
}

func TestStepsAreBounded(t *testing.T) {
	eachWorking(t, func(b *bench) {
		for name, row := range map[string]struct{ source, code string }{
			"result": {`await cs.step("large", () => "x".repeat(256 << 10));`, string(api.CodeHostStepFailed)},
			"run":    {`for (let i = 0; i < 17; i++) await cs.step("s", () => "x".repeat(250 << 10));`, string(api.CodeHostStepLimit)},
			"name":   {`await cs.step("", () => 1);`, string(api.CodeHostInvalidArgument)},
			"json":   {`await cs.step("big", () => 10n, { retry: { maxAttempts: 9 } });`, string(api.CodeHostStepFailed)},
			"sleep":  {`await cs.sleep("366d");`, string(api.CodeHostInvalidArgument)},
		} {
			b.publish(name, `export default async () => { `+row.source+` };`, asynchronous(1))
			a := b.ends(b.enqueue(name, "null"))
			if a.Status != api.StatusError || a.Error.Code != row.code {
				b.t.Errorf("%s: got status %s, error %+v, want %s", name, a.Status, a.Error, row.code)
			}
		}
	})
}

func TestStepsNeedAnAsynchronousRun(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("sync", `export default async () => { const codes = []; for (const call of [() => cs.step("a", () => 1), () => cs.sleep(1), () => cs.waitForEvent("e"), () => cs.waitForApproval()]) await call().catch((e) => codes.push(e.code)); return codes; };`, asynchronous(1))
		out := b.invoke("sync", "null")
		code := `"CS_RUNTIME_STEP_UNAVAILABLE"`
		if want := "[" + strings.Join([]string{code, code, code, code}, ",") + "]"; string(out.Activation.Result) != want {
			b.t.Errorf("got %s, error %+v, want %s", out.Activation.Result, out.Activation.Error, want)
		}
	})
}

func TestWaitForEvent(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("waits", `export default async (event) => {
  const early = await cs.waitForEvent("early");
  const [paid, shipped] = await Promise.all([cs.waitForEvent("paid"), cs.waitForEvent("shipped", { timeout: "1h" })]);
  const late = await cs.waitForEvent("late", { timeout: 1200 });
  return { early, paid, shipped, late };
};`, asynchronous(1))
		r, ctx := runs.New(b.store, b.broker), b.t.Context()
		b.pause("fn.waits", true)
		id := b.enqueue("waits", "null")
		if err := r.Send(ctx, b.tenant, id, "early", []byte(`{"n":0}`)); err != nil {
			b.t.Fatalf("Send: %v", err)
		}
		b.pause("fn.waits", false)
		b.eventually("the run waits for both", func() bool { return b.job(id).State == api.JobScheduled && len(b.run(id).Steps) == 3 })
		if n, _, err := r.Broadcast(ctx, b.tenant, "other", "paid", nil); err != nil || n != 0 {
			b.t.Errorf("Broadcast in another namespace = %d, %v, want 0", n, err)
		}
		if n, more, err := r.Broadcast(ctx, b.tenant, namespace, "paid", []byte(`"money"`)); err != nil || n != 1 || more {
			b.t.Errorf("Broadcast = %d, %v, %v, want 1 run", n, more, err)
		}
		if err := r.Send(ctx, b.tenant, id, "shipped", nil); err != nil {
			b.t.Errorf("Send: %v", err)
		}
		a := b.ends(id)
		if want := `{"early":{"n":0},"paid":"money","shipped":null,"late":null}`; a.Status != api.StatusSuccess || string(a.Result) != want {
			b.t.Errorf("got status %s, result %s, error %+v, want success with %s", a.Status, a.Result, a.Error, want)
		}
		if err := r.Send(ctx, b.tenant, id, "paid", nil); api.ErrorCode(err) != api.CodeJobState {
			b.t.Errorf("Send to a run that has ended = %v, want %s", err, api.CodeJobState)
		}
		if n, _, err := r.Broadcast(ctx, b.tenant, namespace, "paid", nil); err != nil || n != 0 {
			b.t.Errorf("Broadcast without a run that waits = %d, %v, want 0", n, err)
		}
	})
}

func TestWaitForApproval(t *testing.T) {
	eachWorking(t, func(b *bench) {
		const source = `export default async (event) => await cs.waitForApproval({ message: "Pay 100?", ...event });`
		b.publish("asks", source, asynchronous(1))
		aged := asynchronous(1)
		aged.MaxEventAgeMS = 600_000 // a wait ends before it
		b.publish("aged", source, aged)
		decide := func(function, event string, f func(id string)) string {
			id := b.enqueue(function, event)
			b.eventually("the run is held", func() bool { j := b.job(id); return j.State == api.JobHeld && j.HoldReason == "Pay 100?" })
			f(id)
			a := b.ends(id)
			if a.Status != api.StatusSuccess {
				b.t.Errorf("got status %s, error %+v, want success", a.Status, a.Error)
			}
			return string(a.Result)
		}
		decision := func(approved bool, comment string) func(id string) {
			return func(id string) {
				if _, err := b.broker.Decide(b.t.Context(), b.tenant, id, approved, comment); err != nil {
					b.t.Errorf("Decide: %v", err)
				}
			}
		}
		for _, row := range []struct {
			function, event, want string
			f                     func(id string)
		}{
			{"asks", `{}`, `{"approved":true,"comment":"fine"}`, decision(true, "fine")},
			{"asks", `{}`, `{"approved":false}`, decision(false, "")},
			{"aged", `{"timeout":1100,"default":true}`, `{"approved":true,"timedOut":true}`, func(string) {}},
			{"asks", `{"timeout":1100,"default":true}`, `{"approved":true,"timedOut":true}`, func(string) {}},
			{"asks", `{"timeout":"1.1s"}`, `{"approved":false,"timedOut":true}`, func(string) {}},
		} {
			if got := decide(row.function, row.event, row.f); got != row.want {
				b.t.Errorf("%s: got %s, want %s", row.event, got, row.want)
			}
		}
	})
}

// An operator can hold and reject a run that sleeps like any other job.
func TestARunThatSleepsCanBeHeldAndRejected(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("sleeper", `export default async () => { await cs.sleep("1h"); };`, asynchronous(1))
		id := b.enqueue("sleeper", "null")
		b.eventually("the run sleeps", func() bool { return b.job(id).State == api.JobScheduled })
		if _, err := b.broker.Hold(b.t.Context(), b.tenant, id, ""); err != nil {
			b.t.Fatalf("Hold: %v", err)
		}
		if j, err := b.broker.Reject(b.t.Context(), b.tenant, id); err != nil || j.State != api.JobDead {
			b.t.Errorf("Reject = %+v, %v, want it dead", j, err)
		}
	})
}
