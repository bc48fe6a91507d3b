package queue_test

import (
	"cmp"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// steer makes a random operation of an operator.
func (x *machine) steer(t *rapid.T) {
	id := x.someJob(t)
	j, b := x.m.jobs[id], x.broker(t)
	op := rapid.SampledFrom([]string{"cancel", "retry", "hold", "approve", "reject"}).Draw(t, "op")
	var err error
	allowed := false
	switch op {
	case "cancel":
		_, err = b.Cancel(t.Context(), x.f.tenant, id)
		allowed = j.state == api.JobCancelled || !j.state.Terminal()
		if allowed && j.state != api.JobCancelled {
			x.m.finish(j, api.JobCancelled, "")
		}
	case "retry":
		_, err = b.Retry(t.Context(), x.f.tenant, id)
		allowed = j.state == api.JobDead || j.state == api.JobCancelled
		if allowed {
			x.revive(j)
		}
	case "hold":
		_, err = b.Hold(t.Context(), x.f.tenant, id, "wait")
		waits := j.state == api.JobPending || j.state == api.JobScheduled || j.state == api.JobRetrying || j.state == api.JobWaiting
		allowed = waits || j.state == api.JobHeld
		if waits {
			x.m.to(j, api.JobHeld, x.m.now)
		}
	case "approve":
		_, err = b.Approve(t.Context(), x.f.tenant, id)
		allowed = j.state == api.JobHeld
		if allowed {
			x.m.ready(j)
		}
	case "reject":
		_, err = b.Reject(t.Context(), x.f.tenant, id)
		allowed = j.state == api.JobHeld
		if allowed {
			x.m.finish(j, api.JobDead, api.DeadRejected)
		}
	}
	code := api.CodeJobState
	if allowed {
		code = ""
	}
	want(t, op, code, err)
}

func (x *machine) revive(j *modelJob) {
	j.opts.MaxAttempts = max(j.opts.MaxAttempts, j.attempt+1)
	j.opts.ExpireAtMS = 0
	x.m.to(j, api.JobPending, x.m.now)
}

func (x *machine) move(t *rapid.T) {
	id, to := x.someJob(t), queueName(t)
	j := x.m.jobs[id]
	_, err := x.broker(t).Move(t.Context(), x.f.tenant, id, to)
	if j.state.Terminal() || j.state == api.JobActive || j.opts.UniqueKey != "" {
		want(t, "move", api.CodeJobState, err)
		return
	}
	want(t, "move", "", err)
	if j.queue == to {
		return
	}
	j.queue = to
	j.epoch++
	if overdue := (j.state == api.JobScheduled || j.state == api.JobRetrying) && j.at <= x.m.now; overdue {
		x.m.to(j, api.JobPending, x.m.now)
	} else {
		x.m.to(j, j.state, j.at)
	}
}

func (x *machine) delete(t *rapid.T) {
	id := x.someJob(t)
	j := x.m.jobs[id]
	err := x.broker(t).Delete(t.Context(), x.f.tenant, id)
	if j.state == api.JobActive {
		want(t, "delete", api.CodeJobState, err)
		return
	}
	want(t, "delete", "", err)
	if !j.state.Terminal() {
		x.m.finish(j, api.JobCancelled, "")
	}
	if j.marked == j.queue {
		x.m.follow(j)
	}
	x.m.remove(j)
}

func (x *machine) configure(t *rapid.T) {
	name := queueName(t)
	q := x.m.queues[name]
	var c queue.Change
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		q.paused = !q.paused
		c.Paused = &q.paused
	case 1:
		q.draining = rapid.IntRange(0, 2).Draw(t, "drain") == 0
		c.Draining = &q.draining
	case 2:
		q.most = rapid.Int64Range(0, 3).Draw(t, "most")
		c.MaxConcurrency = &q.most
	case 3:
		q.limit, q.window = rapid.Int64Range(0, 4).Draw(t, "limit"), 10_000
		clear(q.tenths)
		c.RateLimit, c.RateWindowMS = &q.limit, &q.window
		// The queue's rate window keeps its count, but the model's starts at zero.
		if err := x.f.store.Client().Del(t.Context(), x.f.store.JobKeys(x.f.tenant).Queue(namespace, name).Rate()).Err(); err != nil {
			t.Fatalf("Del: %v", err)
		}
	}
	got, err := x.broker(t).Configure(t.Context(), x.f.tenant, namespace, name, c)
	want(t, "configure", "", err)
	if got.Paused != q.paused || got.Draining != q.draining || got.MaxConcurrency != q.most || got.RateLimit != q.limit {
		t.Fatalf("configure: got %+v, want %+v", got, q)
	}
}

// bulk clears or redrives a queue.
func (x *machine) bulk(t *rapid.T) {
	name := queueName(t)
	if rapid.IntRange(0, 3).Draw(t, "clear") > 0 {
		n, err := x.broker(t).Redrive(t.Context(), queue.Redrive{Tenant: x.f.tenant, Namespace: namespace, Queue: name})
		want(t, "redrive", "", err)
		dead := x.m.in(name, api.JobDead)
		for _, j := range dead {
			x.revive(j)
		}
		if n != len(dead) {
			t.Fatalf("Redrive = %d, want %d", n, len(dead))
		}
		return
	}
	n, err := x.broker(t).Clear(t.Context(), x.f.tenant, namespace, name)
	want(t, "clear", "", err)
	cleared := 0
	for _, state := range []api.JobState{api.JobPending, api.JobScheduled, api.JobRetrying, api.JobHeld, api.JobWaiting} {
		found := x.m.in(name, state)
		for _, j := range found {
			x.m.end(j, api.JobCancelled, "")
		}
		x.m.followAll(found)
		for _, j := range found {
			x.m.remove(j)
		}
		cleared += len(found)
	}
	if n != cleared {
		t.Fatalf("Clear = %d, want %d", n, cleared)
	}
}

func (x *machine) tend(t *rapid.T) {
	name := queueName(t)
	_, err := x.broker(t).Tend(t.Context(), x.f.tenant, namespace, name, x.m.now)
	want(t, "tend", "", err)
	x.m.tend(name)
}

func (x *machine) tick(t *rapid.T) {
	x.m.now += rapid.SampledFrom([]int64{1, 1000, 6000, 31_000, 31_000, 3_600_000, 8 * 24 * 3_600_000}).Draw(t, "ms")
	x.f.clock.ms.Store(x.m.now)
}

// batch creates a batch, or seals one.
func (x *machine) batch(t *rapid.T) {
	if ids := sortedKeys(x.m.batches); len(ids) > 0 && rapid.Bool().Draw(t, "seal") {
		id := rapid.SampledFrom(ids).Draw(t, "batch")
		_, err := x.broker(t).SealBatch(t.Context(), x.f.tenant, namespace, id)
		want(t, "seal", "", err)
		x.m.batches[id].sealed = true
		x.m.callback(id)
		return
	}
	made, err := x.broker(t).CreateBatch(t.Context(), x.f.tenant, namespace, &api.BatchCallback{Queue: "others"})
	want(t, "create a batch", "", err)
	x.m.batches[made.ID] = &modelBatch{jobs: map[string]bool{}, succeeded: map[string]bool{}, failed: map[string]bool{}}
}

// whole compares the jobs and batches that the API returns at the end, and checks the indexes.
func (x *machine) whole(t *rapid.T) {
	x.compare(t)
	x.depths(t)
	for _, j := range x.m.jobs {
		got, err := x.f.Get(t.Context(), x.f.tenant, j.id)
		want(t, "get", "", err)
		if got.State != j.state || got.Attempt != j.attempt || len(got.Errors) != j.errors || got.Queue != j.queue {
			t.Fatalf("got %+v, want %+v", got, j)
		}
	}
	for id, b := range x.m.batches {
		got, err := x.f.GetBatch(t.Context(), x.f.tenant, namespace, id)
		want(t, "batch", "", err)
		if got.Sealed != b.sealed || got.Total != int64(len(b.jobs)) || got.Succeeded != int64(len(b.succeeded)) || got.Failed != int64(len(b.failed)) {
			t.Fatalf("got %+v, want %+v", got, b)
		}
	}
	x.f.soundIndexes(t, func(string) bool { return false })
}
