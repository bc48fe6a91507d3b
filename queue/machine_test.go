package queue_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// machine applies each step to a queue and to the model, and compares the results.
type machine struct {
	f       *fixture
	m       *model
	brokers []*queue.Broker
	leases  []api.FetchedJob // all leases, including those that were lost
	steps   int
}

// TestTheQueueMatchesTheModel compares the queue with the model over random histories of clients of
// two brokers.
func TestTheQueueMatchesTheModel(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB) storage.Config{
		"embedded": storagetest.Backends()[0].Config,
		"redis":    func(t testing.TB) storage.Config { return storage.Config{URL: storagetest.Redis(t).URL} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := newFixture(t, open(t))
			brokers := []*queue.Broker{whole.Broker, brokerOn(t, whole.store)}
			rapid.Check(t, func(rt *rapid.T) {
				f := *whole
				f.tenant = storagetest.Tenant(t)
				x := &machine{f: &f, brokers: brokers}
				x.m = newModel(f.tenant, f.clock.ms.Load(), func(id string) int64 { return x.score(rt, id) })
				x.configureBoth(t)
				rt.Repeat(map[string]func(*rapid.T){
					"enqueue": x.enqueue, "enqueue more": x.enqueue, "fetch": x.fetch, "fetch more": x.fetch, "ack": x.ack, "ack more": x.ack, "fail": x.fail,
					"beat": x.beat, "steer": x.steer, "move": x.move, "delete": x.delete, "configure": x.configure,
					"bulk": x.bulk, "tend": x.tend, "tick": x.tick, "batch": x.batch, "": x.compare,
				})
				x.whole(rt)
				f.empty(rt)
			})
		})
	}
}

// configureBoth creates the queues, so that their depths can be read.
func (x *machine) configureBoth(t *testing.T) {
	for _, q := range []string{"emails", "others"} {
		if _, err := x.f.Configure(t.Context(), x.f.tenant, namespace, q, queue.Change{}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
	}
}

func (x *machine) broker(t *rapid.T) *queue.Broker {
	return x.brokers[rapid.IntRange(0, len(x.brokers)-1).Draw(t, "broker")]
}

func queueName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"emails", "others"}).Draw(t, "queue")
}

func (x *machine) someJob(t *rapid.T) string {
	if len(x.m.jobs) == 0 {
		t.Skip("no job")
	}
	return rapid.SampledFrom(x.m.ids()).Draw(t, "job")
}

func want(t *rapid.T, op string, code api.Code, err error) {
	if api.ErrorCode(err) != code {
		t.Fatalf("%s: got error %v, want code %q", op, err, code)
	}
}

// options returns random options of a job.
func (x *machine) options(t *rapid.T) (o api.JobOptions) {
	sometimes := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }
	o.Priority = rapid.SampledFrom(append(api.Priorities(), "")).Draw(t, "priority")
	o.Hold = sometimes("hold")
	if sometimes("later") {
		o.RunAtMS = x.m.now + rapid.SampledFrom([]int64{1, 1000, 60_000}).Draw(t, "run at")
	}
	if sometimes("expires") {
		o.ExpireAtMS = max(x.m.now, o.RunAtMS) + rapid.SampledFrom([]int64{1, 1000, 40_000}).Draw(t, "expire at")
	}
	if sometimes("unique") {
		o.UniqueKey = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	}
	o.MaxAttempts = rapid.IntRange(0, 3).Draw(t, "attempts")
	o.Backoff = rapid.SampledFrom([]api.Backoff{"", api.BackoffNone, api.BackoffFixed, api.BackoffLinear}).Draw(t, "backoff")
	o.Jitter = sometimes("jitter")
	if len(x.m.jobs) > 0 && sometimes("depends") {
		o.DependsOn = []string{x.someJob(t)}
		if more := x.someJob(t); more != o.DependsOn[0] {
			o.DependsOn = append(o.DependsOn, more)
		}
		o.OnDependencyFailure = rapid.SampledFrom([]string{"", api.DependencyContinue, api.DependencyHold}).Draw(t, "policy")
	}
	if sometimes("chain") {
		o.Chain = &api.Chain{Steps: []api.ChainStep{{}, {Queue: "others"}}[:rapid.IntRange(0, 2).Draw(t, "steps")]}
		if sometimes("on failure") {
			o.Chain.OnFailure = &api.ChainStep{}
		}
		o.Chain.OnExit = &api.ChainStep{Queue: "emails"}
	}
	return o
}

func (x *machine) enqueue(t *rapid.T) {
	q := queueName(t)
	e := queue.Enqueue{Tenant: x.f.tenant, Namespace: namespace, Queue: q}
	batch := ""
	if ids := sortedKeys(x.m.batches); len(ids) > 0 && rapid.Bool().Draw(t, "in a batch") {
		batch = rapid.SampledFrom(ids).Draw(t, "batch")
	}
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		o := x.options(t)
		o.BatchID = batch
		e.Jobs = append(e.Jobs, api.NewJob{JobOptions: o})
	}
	out, err := x.broker(t).Enqueue(t.Context(), e)
	switch {
	case x.m.queues[q].draining:
		want(t, "enqueue", api.CodeQueueDraining, err)
		return
	case batch != "" && x.m.batches[batch].sealed:
		want(t, "enqueue", api.CodeBatchSealed, err)
		return
	}
	want(t, "enqueue", "", err)
	for i, added := range out {
		o := e.Jobs[i].JobOptions
		holder := x.m.uniques[q+"/"+o.UniqueKey]
		if o.UniqueKey == "" {
			holder = ""
		}
		if added.Duplicate != (holder != "") || holder != "" && added.ID != holder {
			t.Fatalf("job %d: got %+v, want a duplicate if, and only if, another job holds %q: %q", i, added, o.UniqueKey, holder)
		}
		if holder == "" {
			x.m.add(added.ID, q, o)
		} else {
			x.m.depend(o.DependsOn)
		}
		if j := x.m.jobs[added.ID]; added.State != j.state {
			t.Fatalf("job %d: got %+v, want state %s", i, added, j.state)
		}
	}
}

func (x *machine) fetch(t *rapid.T) {
	queues := rapid.SampledFrom([][]string{{"emails"}, {"others"}, {"emails", "others"}}).Draw(t, "queues")
	n := rapid.IntRange(1, 6).Draw(t, "n")
	worker := "w" + strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "worker"))
	lease := rapid.SampledFrom([]int64{1000, 30_000}).Draw(t, "lease")
	got, err := x.broker(t).Fetch(t.Context(), queue.Fetch{
		Tenant: x.f.tenant, Namespace: namespace, Queues: queues, WorkerID: worker, Count: n, Lease: time.Duration(lease) * time.Millisecond,
	})
	want(t, "fetch", "", err)
	var ids []string
	for _, j := range got {
		ids = append(ids, j.ID)
	}
	if wanted := x.m.fetch(queues, worker, n, lease); !slices.Equal(ids, wanted) {
		t.Fatalf("fetch: got %v, want %v", ids, wanted)
	}
	x.leases = append(x.leases, got...)
}

// lease returns a random lease that is held, or was.
func (x *machine) lease(t *rapid.T) (api.FetchedJob, *modelJob) {
	if len(x.leases) == 0 {
		t.Skip("no lease")
	}
	l := x.leases[len(x.leases)-1-rapid.IntRange(0, min(9, len(x.leases)-1)).Draw(t, "lease")]
	return l, x.m.jobs[l.ID]
}

// settled checks one outcome: the lease is held, or the call repeats an earlier one, or the lease
// is lost.
func (x *machine) settled(t *rapid.T, op string, j *modelJob, l api.FetchedJob, kind string, out []api.JobOutcome, err error) (holds bool) {
	want(t, op, "", err)
	code := api.Code("")
	switch {
	case j == nil:
		code = api.CodeJobNotFound
	case j.state == api.JobActive && j.epoch == l.LeaseEpoch:
		holds = true
	case kind != "" && j.settled == fmt.Sprint(l.LeaseEpoch, kind):
	default:
		code = api.CodeJobLeaseLost
	}
	if out[0].Code != code || out[0].OK != (code == "") || code == api.CodeJobLeaseLost && out[0].State != j.state {
		t.Fatalf("%s of epoch %d: got %+v, want code %q of %+v", op, l.LeaseEpoch, out[0], code, j)
	}
	return holds
}

func (x *machine) ack(t *rapid.T) {
	l, j := x.lease(t)
	a := api.JobAck{ID: l.ID, LeaseEpoch: l.LeaseEpoch}
	kind := rapid.SampledFrom([]string{"a", "a", "c", "h"}).Draw(t, "kind")
	switch kind {
	case "c":
		a.Continue, a.Checkpoint = true, json.RawMessage(`{"at":1}`)
	case "h":
		a.Hold = "why"
	}
	out, err := x.broker(t).Ack(t.Context(), x.f.tenant, []api.JobAck{a})
	if !x.settled(t, "ack "+kind, j, l, kind, out, err) {
		return
	}
	j.settled = fmt.Sprint(l.LeaseEpoch, kind)
	switch kind {
	case "a":
		x.m.finish(j, api.JobCompleted, "")
	case "c":
		j.attempt = 0
		x.m.to(j, api.JobPending, x.m.now)
	case "h":
		j.attempt = 0
		x.m.to(j, api.JobHeld, x.m.now)
	}
}

func (x *machine) fail(t *rapid.T) {
	l, j := x.lease(t)
	f := api.JobFail{ID: l.ID, LeaseEpoch: l.LeaseEpoch, Error: "broke"}
	ms := rapid.SampledFrom([]int64{0, 1, 1000, 100_000}).Draw(t, "ms")
	kind := rapid.SampledFrom([]string{"", "", "retry after", "snooze", "fatal"}).Draw(t, "kind")
	switch kind {
	case "retry after":
		f.RetryAfterMS = &ms
	case "snooze":
		f.SnoozeMS = &ms
	case "fatal":
		f.Fatal = true
	}
	out, err := x.broker(t).Fail(t.Context(), x.f.tenant, []api.JobFail{f})
	if !x.settled(t, "fail", j, l, "f", out, err) {
		return
	}
	j.settled = fmt.Sprint(l.LeaseEpoch, "f")
	if kind == "snooze" {
		j.attempt--
		x.m.to(j, api.JobRetrying, x.m.now+ms)
		return
	}
	j.errors++
	switch {
	case kind == "fatal":
		x.m.finish(j, api.JobDead, api.DeadFatal)
	case j.opts.ExpireAtMS > 0 && j.opts.ExpireAtMS <= x.m.now:
		x.m.finish(j, api.JobDead, api.DeadExpired)
	case j.attempt >= j.opts.MaxAttempts:
		x.m.finish(j, api.JobDead, api.DeadAttempts)
	case kind == "retry after":
		x.m.to(j, api.JobRetrying, x.m.now+ms)
	default:
		x.m.to(j, api.JobRetrying, x.m.now+delay(j))
	}
}

// delay returns the documented backoff in milliseconds. The brokers' random number is 0.5.
func delay(j *modelJob) (ms int64) {
	switch n := int64(j.attempt); j.opts.Backoff {
	case api.BackoffFixed:
		ms = 5000
	case api.BackoffLinear:
		ms = 5000 * n
	case api.BackoffExponential:
		ms = 5000 << (n - 1)
	}
	if j.opts.Jitter {
		ms /= 2
	}
	return ms
}

func (x *machine) beat(t *rapid.T) {
	l, j := x.lease(t)
	out, err := x.broker(t).Heartbeat(t.Context(), x.f.tenant, []api.JobHeartbeat{{ID: l.ID, LeaseEpoch: l.LeaseEpoch, LeaseMS: 5000}})
	if x.settled(t, "heartbeat", j, l, "", out, err) {
		j.at = x.m.now + 5000
	}
}

// raw reads the runs, reasons and specs of jobs in one round trip. A missing one is nil.
func (x *machine) raw(t *rapid.T, ids []string) [][3]any {
	keys := x.f.store.JobKeys(x.f.tenant)
	pipe := x.f.store.Client().Pipeline()
	texts, reasons := make([]*redis.SliceCmd, len(ids)), make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		texts[i] = pipe.MGet(t.Context(), keys.Run(id), keys.Spec(id))
		reasons[i] = pipe.HMGet(t.Context(), keys.Meta(id), "dead_reason")
	}
	if _, err := pipe.Exec(t.Context()); err != nil && len(ids) > 0 {
		t.Fatalf("read %d jobs: %v", len(ids), err)
	}
	out := make([][3]any, len(ids))
	for i := range ids {
		out[i] = [3]any{texts[i].Val()[0], reasons[i].Val()[0], texts[i].Val()[1]}
	}
	return out
}

func (x *machine) score(t *rapid.T, id string) int64 {
	stored := x.raw(t, []string{id})[0]
	spec, ok := stored[2].(string)
	if !ok {
		t.Fatalf("job %s: got no record, want one, as in the model", id)
	}
	return readStored(t, spec, fmt.Sprint(stored[0])).Score
}

// compare checks every job after every step.
func (x *machine) compare(t *rapid.T) {
	ids := x.m.ids()
	for i, got := range x.raw(t, ids) {
		j := x.m.jobs[ids[i]]
		run, _ := got[0].(string)
		if words := strings.Split(run, " "); len(words) == 7 { // the seventh is whether its end has consequences
			run = strings.Join(words[:6], " ")
		}
		if run != j.run() {
			t.Fatalf("job %s: got run %q, want %q (%+v)", j.id, run, j.run(), j.opts)
		}
		if reason, _ := got[1].(string); j.state == api.JobDead && reason != j.dead {
			t.Fatalf("job %s: got reason %q of its death, want %q", j.id, reason, j.dead)
		}
	}
	gone := sortedKeys(x.m.gone)
	for i, got := range x.raw(t, gone) {
		if got != [3]any{} {
			t.Fatalf("job %s: got %v, want no record", gone[i], got)
		}
	}
	x.steps++
	if x.steps%10 == 0 {
		x.depths(t)
	}
}

func (x *machine) depths(t *rapid.T) {
	for name := range x.m.queues {
		q, err := x.f.GetQueue(t.Context(), x.f.tenant, namespace, name)
		want(t, "queue", "", err)
		for _, state := range api.JobStates() {
			if n := len(x.m.in(name, state)); q.Depths[state] != int64(n) {
				t.Fatalf("queue %s: got %d %s jobs, want %d", name, q.Depths[state], state, n)
			}
		}
	}
}
