package invoker_test

import (
	"fmt"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/activations"
)

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
			b.t.Errorf("got status %s, error %+v, attempt %d, want error %s with code %s at attempt 0", a.Status, a.Error, a.Attempt, api.ErrExpired, api.CodeEventExpired)
		}
		if o := b.told("failures"); o.RequestContext.Condition != "EventAgeExceeded" || o.RequestContext.ApproximateInvokeCount != 0 {
			b.t.Errorf("event of the destination: got %+v, want EventAgeExceeded after 0 invocations", o)
		}
	})
}

func (b *bench) pause(name string, paused bool) {
	b.t.Helper()
	if _, err := b.broker.Configure(b.t.Context(), b.tenant, namespace, name, queue.Change{Paused: &paused}); err != nil {
		b.t.Fatalf("Configure: %v", err)
	}
}

// A paused queue pauses its function, and resumes where it stopped.
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
				b.t.Errorf("activation %s of a paused queue: got status %s at attempt %d, want queued at attempt 0", id, a.Status, a.Attempt)
			}
		}
		b.pause("fn.echo", false)
		for _, id := range paused {
			if a := b.ends(id); a.Status != api.StatusSuccess {
				b.t.Errorf("activation %s after the pause: got status %s, error %+v, want success", id, a.Status, a.Error)
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
				b.t.Fatalf("cancel activation %s: got %+v and error %v, want status cancelled", id, a, err)
			}
			if j := b.job(id); j.State != api.JobCancelled {
				b.t.Errorf("got job %s, want cancelled", j.State)
			}
			if a := b.stored(id); a.Status != api.StatusCancelled {
				b.t.Errorf("got status %s, want cancelled", a.Status)
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
			b.t.Fatalf("Cancel: %v", err)
		}
		if a := b.ends(third); a.Status != api.StatusCancelled || a.Error != nil {
			b.t.Errorf("activation of the cancelled job %s: got status %s, error %+v, want cancelled without an error", third, a.Status, a.Error)
		}
		b.eventually("nothing runs any more", func() bool { return b.engine.LeasedJobs() == 0 })
	})
}

// An operator's retry is an activation of its own, which names the one before it.
func TestAsyncOperatorsRetry(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("moody", `export default async (e, ctx) => { if (!(await cs.kv.get("n"))) throw new Error("not now"); return ctx.activation_id; };`, asynchronous(1))
		first := b.ends(b.enqueue("moody", "1"))
		if first.Status != api.StatusError {
			b.t.Fatalf("first run of moody: got status %s, want error", first.Status)
		}
		retry := func(of string, attempt int) *activations.Record {
			b.t.Helper()
			j, err := b.broker.Retry(b.t.Context(), b.tenant, first.JobID)
			if err != nil {
				b.t.Fatalf("Retry: %v", err)
			}
			id := j.ActivationID
			if id == of || id == first.ActivationID {
				b.t.Fatal("it is no activation of its own")
			}
			a := b.ends(id)
			if a.RetryOf != of || a.JobID != first.JobID || a.Attempt != attempt {
				b.t.Errorf("got retry of %s, job %s, attempt %d, want retry of %s, job %s, attempt %d", a.RetryOf, a.JobID, a.Attempt, of, first.JobID, attempt)
			}
			return a
		}
		second := retry(first.ActivationID, 2)
		if second.Status != api.StatusError {
			b.t.Errorf("retry of the old version: got status %s, want error", second.Status)
		}
		b.publish("moody", `export default (e, ctx) => ctx.activation_id;`, asynchronous(1))
		third := retry(second.ActivationID, 3)
		if third.Status != api.StatusSuccess || string(third.Result) != `"`+third.ActivationID+`"` {
			b.t.Errorf("retry of the new version: got status %s, result %s, want success with its own id %s", third.Status, third.Result, third.ActivationID)
		}
		if items := b.list("moody"); len(items) != 3 {
			b.t.Errorf("got %d listed activations, want 3", len(items))
		}
	})
}
