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
			b.t.Errorf("b.ends: %+v, want a.Status == api.StatusError and a.Error != nil and a.Error.Type == api.ErrExpired and a.Error.Code == string(api.CodeEventExpired) and a.Attempt == 0", a)
		}
		if o := b.told("failures"); o.RequestContext.Condition != "EventAgeExceeded" || o.RequestContext.ApproximateInvokeCount != 0 {
			b.t.Errorf(`b.told: %+v, want o.RequestContext.Condition == "EventAgeExceeded" and o.RequestContext.ApproximateInvokeCount == 0`, o)
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
				b.t.Errorf("b.stored: %+v, want a.Status == api.StatusQueued and a.Attempt == 0", a)
			}
		}
		b.pause("fn.echo", false)
		for _, id := range paused {
			if a := b.ends(id); a.Status != api.StatusSuccess {
				b.t.Errorf("b.ends: %+v, want a.Status == api.StatusSuccess", a)
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
				b.t.Fatalf("Cancel: %+v %v, want err == nil and a.Status == api.StatusCancelled", a, err)
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
			b.t.Fatalf("Cancel: %v", err)
		}
		if a := b.ends(third); a.Status != api.StatusCancelled || a.Error != nil {
			b.t.Errorf("b.ends: %+v, want a.Status == api.StatusCancelled and a.Error == nil", a)
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
			b.t.Fatalf("b.ends: %+v, want first.Status == api.StatusError", first)
		}
		retry := func(of string) *activations.Record {
			b.t.Helper()
			j, err := b.broker.Retry(b.t.Context(), b.tenant, first.JobID)
			if err != nil {
				b.t.Fatalf("Retry: %v", err)
			}
			id := j.ActivationID(j.ID)
			if id == of || id == first.ActivationID {
				b.t.Fatal("it is no activation of its own")
			}
			a := b.ends(id)
			if a.RetryOf != of || a.JobID != first.JobID || a.Attempt != 1 {
				b.t.Errorf("b.ends: %+v, want a.RetryOf == of and a.JobID == first.JobID and a.Attempt == 1", a)
			}
			return a
		}
		second := retry(first.ActivationID)
		if second.Status != api.StatusError {
			b.t.Errorf("retry: %+v, want second.Status == api.StatusError", second)
		}
		b.publish("moody", `export default (e, ctx) => ctx.activation_id;`, asynchronous(1))
		third := retry(second.ActivationID)
		if third.Status != api.StatusSuccess || string(third.Result) != `"`+third.ActivationID+`"` {
			b.t.Errorf("%+v %s, want third.Status == api.StatusSuccess and string(third.Result) == `\"` + third.ActivationID + `\"`", third, third.Result)
		}
		if items := b.list("moody"); len(items) != 3 {
			b.t.Errorf("%d are listed", len(items))
		}
	})
}
