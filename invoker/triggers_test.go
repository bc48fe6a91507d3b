package invoker_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/triggers"
)

// trigger lets the queue mail invoke the function.
func (b *bench) trigger(function string, n trigger.NewQueueTrigger) {
	b.t.Helper()
	b.triggerFor(function, n, "admin")
}

// triggerFor is trigger by an owner with other roles.
func (b *bench) triggerFor(function string, n trigger.NewQueueTrigger, roles ...string) {
	b.t.Helper()
	n.Function = function
	record := triggers.Record{QueueTrigger: n.Trigger("mail"), Principal: api.Principal{Sub: "owner", Roles: roles}, Access: api.AccessGranted}
	if _, _, err := triggers.New(b.store).Put(b.t.Context(), b.tenant, namespace, record, nil, b.store.NowMS()); err != nil {
		b.t.Fatalf("Put: %v", err)
	}
}

// mail adds jobs to the queue mail. They are retried without delay.
func (b *bench) mail(payloads ...string) (ids []string) {
	b.t.Helper()
	jobs := make([]api.NewJob, len(payloads))
	for i, p := range payloads {
		jobs[i] = api.NewJob{Payload: json.RawMessage(p), JobOptions: api.JobOptions{Backoff: api.BackoffNone}}
	}
	made, err := b.broker.Enqueue(b.t.Context(), queue.Enqueue{Tenant: b.tenant, Namespace: namespace, Queue: "mail", Jobs: jobs})
	if err != nil {
		b.t.Fatalf("Enqueue: %v", err)
	}
	for _, j := range made {
		ids = append(ids, j.ID)
	}
	return ids
}

// inState waits until all jobs are in a state.
func (b *bench) inState(state api.JobState, ids []string) {
	b.t.Helper()
	b.eventually("the jobs are "+string(state), func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return b.job(id).State != state })
	})
}

// sources returns what the activations of a function handled, and the largest batch.
func (b *bench) sources(function string) (handled []string, largest int) {
	b.t.Helper()
	for _, a := range b.list(function) {
		var source trigger.QueueSource
		if err := json.Unmarshal(a.Trigger.Source, &source); err != nil || a.Trigger.Type != api.TriggerQueue || source.Queue != "mail" {
			b.t.Errorf("got the trigger %s %s, error %v, want the queue mail", a.Trigger.Type, a.Trigger.Source, err)
		}
		handled, largest = append(handled, source.Jobs...), max(largest, len(source.Jobs))
	}
	return handled, largest
}

func (b *bench) sameJobs(function string, ids []string) {
	b.t.Helper()
	handled, _ := b.sources(function)
	slices.Sort(handled)
	slices.Sort(ids)
	if !slices.Equal(handled, ids) {
		b.t.Errorf("got the jobs %v, want each of %v once", handled, ids)
	}
}

const queueHandler = `export default { queue(batch) { const seen = []; for (const m of batch.messages) { `

// TestTriggerRunsBatches: jobs that wait and jobs that come later are handled, once, in batches
// of at most batch_size.
func TestTriggerRunsBatches(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.handlers = []string{api.HandlerQueue}
		b.publish("mailer", queueHandler+`if (typeof m.body !== "number") throw new Error("body"); } } }`, defaults())
		ids := b.mail("1", "2", "3", "4", "5", "6", "7")
		b.trigger("mailer", trigger.NewQueueTrigger{BatchSize: 3})
		b.inState(api.JobCompleted, ids)
		if _, largest := b.sources("mailer"); largest != 3 {
			b.t.Errorf("got batches of up to %d jobs, want 3", largest)
		}
		ids = append(ids, b.mail("8")...)
		b.inState(api.JobCompleted, ids)
		b.sameJobs("mailer", ids)
	})
}

// TestTriggerKeepsItsVersion: the version that decides how jobs are handled runs them, also if
// the alias moves before it does to a version that takes one job at a time.
func TestTriggerKeepsItsVersion(t *testing.T) {
	eachAlone(t, func(b *bench) {
		b.handlers = []string{api.HandlerQueue}
		first := b.publish("mailer", queueHandler+`} } }`, defaults())
		b.handlers = []string{api.HandlerFunction}
		second := b.publish("mailer", `export default (event) => { if (event.messages) throw new Error("a batch") }`, defaults())
		move := func(version int64) {
			if _, err := storage.NewAliases(b.store).Set(context.Background(), b.tenant, namespace, "mailer", "prod", version, nil, b.store.NowMS()); err != nil {
				t.Errorf("Set the alias to version %d: %v", version, err)
			}
		}
		move(first)
		ids := b.mail("1", "2", "3")
		var reads atomic.Int32
		b.engine.WatchVersions(func() {
			j, err := b.broker.Get(context.Background(), b.tenant, ids[0])
			// The worker has the jobs, and then resolves the trigger, in two reads.
			if err == nil && j.State == api.JobActive && reads.Add(1) == 3 {
				move(second)
			}
		})
		b.trigger("mailer", trigger.NewQueueTrigger{BatchSize: 3})
		b.work()
		b.inState(api.JobCompleted, ids)
		for _, id := range ids {
			if j := b.job(id); j.Attempt != 1 || len(j.Errors) > 0 {
				t.Errorf("job %s: got attempt %d, errors %+v, want it complete after one", id, j.Attempt, j.Errors)
			}
		}
		for _, a := range b.list("mailer") {
			if want := (api.Ref{Alias: "prod", Version: first}); a.Ref != want {
				t.Errorf("got an activation of %+v, want %+v", a.Ref, want)
			}
		}
	})
}

// TestTriggerVerdicts: each job is settled by its verdict, the others by the activation's end.
func TestTriggerVerdicts(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.handlers = []string{api.HandlerQueue}
		b.publish("mailer", queueHandler+`
			if (m.body === "ack") m.ack();
			if (m.body === "retry" && m.attempts === 1) m.retry({ reason: "no paper" });
		} if (batch.messages.some((m) => m.body === "throw" && m.attempts < 3)) throw new Error("oops") } }`, defaults())
		ids := b.mail(`"ack"`, `"retry"`, `"throw"`)
		b.trigger("mailer", trigger.NewQueueTrigger{})
		b.inState(api.JobCompleted, ids)
		ack, retry, throw := b.job(ids[0]), b.job(ids[1]), b.job(ids[2])
		if ack.Attempt != 1 || len(ack.Errors) != 0 {
			b.t.Errorf("the acknowledged job: got attempt %d, errors %+v, want one without an error", ack.Attempt, ack.Errors)
		}
		if retry.Attempt < 2 || !strings.Contains(retry.Errors[0].Error, "asked for a retry of the message: no paper (activation ") {
			b.t.Errorf("the retried job: got attempt %d, errors %+v, want a second attempt, and the activation of the first", retry.Attempt, retry.Errors)
		}
		if throw.Attempt != 3 || !strings.HasPrefix(throw.Errors[0].Error, "Exception: oops (activation ") || throw.Errors[0].Stack == "" {
			b.t.Errorf("the failed job: got attempt %d, errors %+v, want a third attempt, the errors with stacks", throw.Attempt, throw.Errors)
		}
	})
}

// TestTriggerOfAFunction: a function that is no object gets one job at a time, with its payload
// as the event, and its result is the job's. A result that the job's schema refuses fails.
func TestTriggerOfAFunction(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.handlers = []string{api.HandlerFunction}
		b.publish("mailer", `export default async (event, ctx) => {
			await cs.job.progress({ current: 1, total: 2 });
			if (event === 3 && ctx.attempt === 1) { await cs.job.checkpoint({ page: 7 }); throw new Error("later") }
			return { event, attempt: ctx.attempt, job: cs.job.id, queue: cs.job.queue, before: cs.job.lastCheckpoint() } }`, defaults())
		ids := b.mail(`{"n":1}`, `"two"`, `3`)
		b.trigger("mailer", trigger.NewQueueTrigger{BatchSize: 10})
		b.inState(api.JobCompleted, ids)
		for i, want := range []string{
			`{"event":{"n":1},"attempt":1,"job":"` + ids[0] + `","queue":"mail"}`,
			`{"event":"two","attempt":1,"job":"` + ids[1] + `","queue":"mail"}`,
			`{"event":3,"attempt":2,"job":"` + ids[2] + `","queue":"mail","before":{"page":7}}`,
		} {
			if j := b.job(ids[i]); string(j.Result) != want || string(j.Progress) != `{"current":1,"total":2}` {
				b.t.Errorf("job %d: got result %s, progress %s, want %s, half", i, j.Result, j.Progress, want)
			}
		}
		if _, largest := b.sources("mailer"); largest != 1 {
			b.t.Errorf("got batches of up to %d jobs, want one at a time", largest)
		}
		b.sameJobs("mailer", append(ids, ids[2]))
	})
}

// TestTriggerWindow: a batch that is not full waits for more jobs.
func TestTriggerWindow(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.handlers = []string{api.HandlerQueue}
		b.publish("mailer", `export default { queue() {} }`, defaults())
		b.trigger("mailer", trigger.NewQueueTrigger{BatchSize: 5, WindowMS: trigger.MaxWindowMS})
		var ids []string
		for range 5 {
			ids = append(ids, b.mail("1")...)
		}
		b.inState(api.JobCompleted, ids)
		if _, largest := b.sources("mailer"); largest != 5 {
			b.t.Errorf("got batches of up to %d jobs, want one of 5", largest)
		}
		b.trigger("mailer", trigger.NewQueueTrigger{BatchSize: 5, WindowMS: 300})
		b.inState(api.JobCompleted, b.mail("1", "2"))
	})
}

// TestTriggerConcurrency: the activations of a trigger with the concurrency 1 follow each other,
// over two replicas.
func TestTriggerConcurrency(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		b, other := newBench(t, s), newBench(t, s)
		b.work()
		other.work()
		b.handlers = []string{api.HandlerQueue}
		b.publish("mailer", `export default { async queue() { await new Promise((f) => setTimeout(f, 20)) } }`, defaults())
		b.trigger("mailer", trigger.NewQueueTrigger{BatchSize: 1, Concurrency: 1})
		ids := b.mail("1", "2", "3", "4", "5", "6", "7", "8")
		b.inState(api.JobCompleted, ids)
		runs := b.list("mailer")
		slices.SortFunc(runs, func(x, y api.Activation) int { return int(x.StartMS - y.StartMS) })
		for i := 1; i < len(runs); i++ {
			if runs[i].StartMS < runs[i-1].EndMS {
				t.Errorf("got activation %d begun at %d, want it after the end of the one before, at %d", i, runs[i].StartMS, runs[i-1].EndMS)
			}
		}
		b.sameJobs("mailer", ids)
	})
}

// TestTriggerStops: the jobs of a disabled trigger wait, and those of a function that does not
// exist say so.
func TestTriggerStops(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.work()
	b.handlers = []string{api.HandlerQueue}
	b.publish("mailer", `export default { queue() {} }`, defaults())
	b.publish("other", `export default () => 1`, asynchronous(1))
	off := false
	b.trigger("mailer", trigger.NewQueueTrigger{})
	b.inState(api.JobCompleted, b.mail("1"))
	b.trigger("mailer", trigger.NewQueueTrigger{Enabled: &off})
	var waiting []string
	b.eventually("a job stays pending", func() bool {
		waiting = b.mail("2")
		b.ends(b.enqueue("other", "1")) // the dispatcher has looked at the notices by then
		return b.job(waiting[0]).State == api.JobPending
	})
	b.trigger("mailer", trigger.NewQueueTrigger{})
	b.inState(api.JobCompleted, waiting)
	if err := triggers.New(b.store).Delete(t.Context(), b.tenant, namespace, "mail", nil); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	b.trigger("missing", trigger.NewQueueTrigger{})
	var ids []string
	b.eventually("a job is dead", func() bool { // the change is seen soon, not at once
		ids = b.mail("3")
		b.eventually("the job ends", func() bool { return b.job(ids[0]).State.Terminal() })
		return b.job(ids[0]).State == api.JobDead
	})
	if j := b.job(ids[0]); !strings.HasPrefix(j.Errors[0].Error, "Refused: ") || !strings.Contains(j.Errors[0].Error, "missing") {
		t.Errorf("got the errors %+v, want that the function does not exist", j.Errors)
	}
}

// TestTriggerShutdown: the jobs of an activation that a shutdown stops return to their queue,
// and their attempts do not count.
func TestTriggerShutdown(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	stop := b.work()
	b.handlers = []string{api.HandlerQueue}
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("mailer", `export default { async queue() { console.log("began"); await new Promise((f) => setTimeout(f, 50_000)) } }`, config)
	b.trigger("mailer", trigger.NewQueueTrigger{})
	ids := b.mail("1", "2")
	b.eventually("the activation runs", func() bool { return len(b.list("mailer")) == 1 })
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = b.engine.Close(ctx) // its wait ran out, as it should
	<-ended
	for _, id := range ids {
		if j := b.job(id); j.State.Terminal() || j.State == api.JobActive || j.Attempt != 0 || len(j.Errors) != 0 {
			t.Errorf("got the job in state %s at attempt %d with errors %+v, want it back without a counted attempt", j.State, j.Attempt, j.Errors)
		}
	}
}

// TestTriggerOfACancelledJob: the activation stops when none of its jobs is left.
func TestTriggerOfACancelledJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	b.work()
	b.handlers = []string{api.HandlerFunction}
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("mailer", `export default async (n) => { console.log("began"); if (n === 1) await new Promise((f) => setTimeout(f, 50_000)) }`, config)
	b.trigger("mailer", trigger.NewQueueTrigger{})
	ids := b.mail("1", "2")
	b.eventually("the first job runs", func() bool { return len(b.list("mailer")) == 1 })
	if _, err := b.broker.Cancel(t.Context(), b.tenant, ids[0]); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	b.inState(api.JobCompleted, ids[1:])
	b.eventually("the first activation is cancelled", func() bool {
		runs := b.list("mailer")
		return slices.ContainsFunc(runs, func(a api.Activation) bool { return a.Status == api.StatusCancelled })
	})
	if j := b.job(ids[0]); j.State != api.JobCancelled {
		t.Errorf("got the first job in state %s, want it cancelled", j.State)
	}
}

// TestTriggerOfARateLimitedQueue: its jobs start when the limit allows them, not at the next poll.
func TestTriggerOfARateLimitedQueue(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.handlers = []string{api.HandlerFunction}
		b.publish("mailer", `export default () => 1`, defaults())
		limit, window := int64(1), int64(200)
		change := queue.Change{RateLimit: &limit, RateWindowMS: &window}
		if _, err := b.broker.Configure(b.t.Context(), b.tenant, namespace, "mail", change); err != nil {
			b.t.Fatalf("Configure: %v", err)
		}
		b.trigger("mailer", trigger.NewQueueTrigger{})
		b.inState(api.JobCompleted, b.mail("1", "2", "3", "4", "5", "6", "7", "8"))
	})
}
