package invoker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// A checkpoint that an attempt saves just before it fails reaches the next one.
func TestJobCheckpointReachesTheNextAttempt(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("steps", `export default async (e, ctx) => {
  const before = cs.job.lastCheckpoint();
  if (ctx.attempt === 1) {
    cs.job.checkpoint({ page: 1 });
    await cs.job.checkpoint({ page: 2, s: "ü<&>" });
    await cs.job.progress(40.9);
    throw new Error("later");
  }
  if (ctx.attempt === 2) { await cs.job.progress({ current: 7, total: 9, message: "nearly" }); await new Promise((r) => setTimeout(r, 60000)); }
  return { before, id: cs.job.id === ctx.trigger.source.job_id, queue: cs.job.queue, attempt: cs.job.attempt, most: cs.job.maxAttempts };
};`, func() api.VersionConfig { c := asynchronous(3); c.TimeoutMS = 700; return c }())
		id := b.enqueue("steps", "null")
		a := b.ends(id)
		want := `{"before":{"page":2,"s":"ü<&>"},"id":true,"queue":"fn.steps","attempt":3,"most":3}`
		if a.Status != api.StatusSuccess || string(a.Result) != want {
			b.t.Errorf("got status %s, result %s, error %+v, want success with %s", a.Status, a.Result, a.Error, want)
		}
		if j := b.job(id); string(j.Progress) != `{"current":7,"total":9,"message":"nearly"}` || string(j.Checkpoint) != `{"page":2,"s":"ü<&>"}` {
			b.t.Errorf("got progress %s and checkpoint %s, want 7 of 9, nearly, and page 2", j.Progress, j.Checkpoint)
		}
	})
}

// Progress can be seen while the function runs, and the last word stays the last.
func TestJobProgressIsSeenWhileItRuns(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("slow", `export default async () => {
  await cs.job.progress(5);
  while (!(await cs.kv.get("n"))) { await cs.job.checkpoint("older"); await new Promise((r) => setTimeout(r, 20)); }
  for (let i = 0; i <= 300; i++) { await cs.job.checkpoint(i); await cs.job.progress(i / 3); }
};`, asynchronous(1))
		id := b.enqueue("slow", "null")
		b.eventually("progress is seen", func() bool {
			j := b.job(id)
			return j.State == api.JobActive && string(j.Progress) == `{"current":5,"total":100}` && string(j.Checkpoint) == `"older"`
		})
		b.setKV("n", "1")
		if a := b.ends(id); a.Status != api.StatusSuccess {
			b.t.Fatalf("got status %s, error %+v, want success", a.Status, a.Error)
		}
		if j := b.job(id); string(j.Progress) != `{"current":100,"total":100}` || string(j.Checkpoint) != "300" {
			b.t.Errorf("got progress %s and checkpoint %s, want 100 of 100 and 300", j.Progress, j.Checkpoint)
		}
	})
}

// A job that was cancelled stops, whatever updates its function still sends.
func TestJobTellsNothingAfterItsLeaseIsLost(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("slow", `export default async () => { await cs.kv.set("seen", 1); for (;;) { await cs.job.checkpoint(1); await new Promise((r) => setTimeout(r, 20)); } };`, asynchronous(1))
		id := b.enqueue("slow", "null")
		b.eventually("it runs", func() bool { return b.kv("seen") != "" })
		if _, err := b.broker.Cancel(b.t.Context(), b.tenant, id); err != nil {
			b.t.Fatalf("Cancel: %v", err)
		}
		b.eventually("nothing is in hand", func() bool { return b.engine.LeasedJobs() == 0 })
		if j := b.job(id); j.State != api.JobCancelled {
			b.t.Errorf("job %s: got state %s, want %s", id, j.State, api.JobCancelled)
		}
	})
}

func TestJobOutsideOfAJob(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("lone", `export default async () => {
  const said = async (p) => { try { return await p } catch (e) { return e.code + " " + e.message } };
  return [typeof cs.job.id, typeof cs.job.attempt, typeof cs.job.maxAttempts, typeof cs.job.queue, typeof cs.job.lastCheckpoint(), await said(cs.job.progress(1)), await said(cs.job.checkpoint(1))];
};`, defaults())
		got := string(b.invoke("lone", "null").Activation.Result)
		none := strings.Repeat(`"undefined",`, 5)
		const why = `"CS_RUNTIME_INVALID_ARGUMENT cs.job.%s is for jobs: this activation is not an asynchronous invocation"`
		if want := "[" + none + fmt.Sprintf(why, "progress") + "," + fmt.Sprintf(why, "checkpoint") + "]"; got != want {
			b.t.Errorf("%s\nwant %s", got, want)
		}
	})
}

func TestJobRefusesWhatTheQueueWouldNotTake(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("wrong", `export default async () => {
  const said = async (f) => { try { await f(); return "taken" } catch (e) { return e.code } };
  return Promise.all([
    () => cs.job.checkpoint("x".repeat(256 << 10)), () => cs.job.checkpoint(() => 1), () => cs.job.checkpoint(1n),
    () => cs.job.progress(101), () => cs.job.progress(-1), () => cs.job.progress(NaN), () => cs.job.progress("1"), () => cs.job.progress(),
    () => cs.job.progress({ total: 5 }), () => cs.job.progress({ current: 1, total: -5 }), () => cs.job.progress({ current: 1, message: "x".repeat(1025) }),
    () => cs.job.checkpoint("x".repeat((256 << 10) - 2)), () => cs.job.checkpoint(), () => cs.job.progress({ current: 3 }),
  ].map(said));
};`, asynchronous(1))
		a := b.ends(b.enqueue("wrong", "null"))
		if want := "[" + strings.Repeat(`"CS_RUNTIME_INVALID_ARGUMENT",`, 11) + `"taken","taken","taken"]`; string(a.Result) != want {
			b.t.Errorf("got result %s, error %+v, want result %s", a.Result, a.Error, want)
		}
	})
}
