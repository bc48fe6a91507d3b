package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Enqueue is jobs for one queue.
type Enqueue struct {
	Tenant, Namespace, Queue string
	Jobs                     []api.NewJob
	// IdempotencyKey makes the call safe to repeat for a day: the same key gives
	// the same jobs.
	IdempotencyKey string
	// Hostname is the producer's, as it says.
	Hostname string
	// Confined: what the jobs refer to, jobs and batches, exists for their producer
	// only in the namespace.
	Confined bool
}

// Enqueue adds jobs, all of them or none: an invalid one refuses the call, its
// index in the fields' paths. It answers when the jobs are durable, in order.
// Errors: CodeInvalid…, CodeBodyLimit, CodeBatchNotFound, CodeBatchSealed,
// CodeQueueDraining, CodeQueueReserved, CodeJobNotFound (a dependency),
// CodeIdempotencyMismatch, CodeStoreUnavailable.
func (b *Broker) Enqueue(ctx context.Context, e Enqueue) ([]api.EnqueuedJob, error) {
	now := b.store.NowMS()
	if err := e.validate(now); err != nil {
		return nil, err
	}
	for i := range e.Jobs {
		if err := b.checkOptions(e.Queue, &e.Jobs[i].JobOptions); err != nil {
			return nil, atIndex(err, i)
		}
	}
	if e.Confined {
		if err := b.confine(ctx, &e); err != nil {
			return nil, err
		}
	}
	ids, err := b.newIDs(ctx, &e, now)
	if err != nil {
		return nil, err
	}
	specs := make([]*api.JobSpec, len(e.Jobs))
	for i := range e.Jobs {
		specs[i] = &api.JobSpec{
			Namespace: e.Namespace, Queue: e.Queue, Hostname: e.Hostname,
			Payload: e.Jobs[i].Payload, JobOptions: e.Jobs[i].JobOptions,
		}
	}
	q := queueKey{e.Tenant, e.Namespace, e.Queue}
	if e.IdempotencyKey == "" && e.Jobs[0].BatchID == "" {
		return b.enqueueTogether(ctx, q, ids, specs, true)
	}
	call := enqueueCall{queue: q, batch: e.Jobs[0].BatchID}
	if e.IdempotencyKey != "" {
		digest, err := digestOf(e.Jobs)
		if err != nil {
			return nil, err
		}
		call.idempotencyKey, call.digest = e.IdempotencyKey, digest
	}
	items, err := b.items(ctx, q, ids, specs, false)
	if err != nil {
		return nil, err
	}
	if err := b.enqueue(ctx, call, items); err != nil {
		return nil, err
	}
	return b.answers(ctx, q, items)
}

// newIDs gives the ids of e's jobs: derived from its idempotency key, if it has one,
// so that a call that was cut short makes none twice, and from how often the key was
// used before, since the jobs of a use outlive the day for which it is remembered.
func (b *Broker) newIDs(ctx context.Context, e *Enqueue, now int64) ([]string, error) {
	ids := make([]string, len(e.Jobs))
	if e.IdempotencyKey == "" {
		for i := range ids {
			ids[i] = api.NewJobID()
		}
		return ids, nil
	}
	for use := 0; ; use++ {
		for i := range ids {
			ids[i] = api.DerivedJobID("idempotency", e.Tenant, e.Namespace, e.Queue, e.IdempotencyKey, strconv.Itoa(use), strconv.Itoa(i))
		}
		found, err := b.load(ctx, e.Tenant, ids)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(found, func(r *record) bool { return r != nil && r.spec.CreatedAtMS+api.IdempotencyTTLMS <= now }) {
			return ids, nil
		}
	}
}

func digestOf(jobs []api.NewJob) (string, error) {
	raw, err := api.EncodeJSON(jobs)
	if err != nil {
		return "", fmt.Errorf("queue: encode jobs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// enqueueItem is one job on its way into a queue.
type enqueueItem struct {
	id       string
	spec     *api.JobSpec
	state    api.JobState
	at       int64  // of run
	text     string // the spec, encoded
	internal bool   // made by the platform: a draining queue takes it
	fresh    bool   // no earlier call can have made a job of this id
	ended    string // a holder of the unique key that is known to have ended
	living   string // one that is known to live
	holder   string // answer: the job that holds the unique key, if it is a duplicate
	again    bool   // answer: the whole call was made before
	err      error  // answer
}

// items prepares jobs for their queue: moments, states, dependencies.
func (b *Broker) items(ctx context.Context, q queueKey, ids []string, specs []*api.JobSpec, internal bool) ([]*enqueueItem, error) {
	if err := b.register(ctx, q.tenant, q.namespace); err != nil {
		return nil, err
	}
	b.completeTargets(ctx, q, specs)
	now := b.store.NowMS()
	moment := b.sequence.next(now, len(specs))
	out := make([]*enqueueItem, len(specs))
	for i, spec := range specs {
		spec.CreatedAtMS = now
		spec.Score = score(spec.Priority, moment+int64(i))
		item := &enqueueItem{id: ids[i], spec: spec, internal: internal}
		item.begin(now)
		var err error
		if item.text, err = encodeSpec(spec); err != nil {
			return nil, err
		}
		if len(spec.DependsOn) > 0 {
			if err := b.dependOn(ctx, q.tenant, ids[i], spec.DependsOn); err != nil {
				if api.ErrorCode(err) == api.CodeJobNotFound {
					err = atIndex(err, i)
				}
				return nil, err
			}
		}
		out[i] = item
	}
	return out, nil
}

// begin decides in which state a new job begins.
func (e *enqueueItem) begin(now int64) {
	e.at = now
	switch {
	case len(e.spec.DependsOn) > 0:
		e.state = api.JobWaiting
	case e.spec.Hold:
		e.state = api.JobHeld
	case e.spec.RunAtMS > now:
		e.state, e.at = api.JobScheduled, e.spec.RunAtMS
	default:
		e.state = api.JobPending
	}
}

// What is to happen when a job has ended.
const (
	followsEnd     = "1" // something, however it ended
	followsFailure = "2" // something, unless it completed
)

// follows says whether something is to happen when the job has ended.
func (e *enqueueItem) follows() string {
	switch of := e.spec.Activation; {
	case e.spec.Chain != nil || e.spec.ChainID != "" || e.spec.BatchID != "" || of != nil && of.OnSuccess != nil,
		e.spec.Schedule != nil && e.spec.Schedule.Marked:
		return followsEnd
	case e.spec.Target != nil:
		return followsFailure // its worker has ended the activation where it completes
	}
	return ""
}

// firstRun is the run that the job is stored with.
func (e *enqueueItem) firstRun() run {
	return run{state: e.state, at: e.at, settled: none, worker: none, follows: e.follows()}
}

// enqueueTogether adds jobs with those that others add to the queue meanwhile. fresh
// says that their ids were made for this call.
func (b *Broker) enqueueTogether(ctx context.Context, q queueKey, ids []string, specs []*api.JobSpec, fresh bool) ([]api.EnqueuedJob, error) {
	items, err := b.items(ctx, q, ids, specs, false)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		item.fresh = fresh
	}
	if err := b.enqueues.do(ctx, q, items); err != nil {
		return nil, err
	}
	return b.answers(ctx, q, items)
}

// enqueueInternal adds a job that the platform itself makes, under an id derived
// from its cause: a repeat changes nothing.
func (b *Broker) enqueueInternal(ctx context.Context, q queueKey, id string, spec *api.JobSpec) error {
	spec.Namespace, spec.Queue = q.namespace, q.queue
	items, err := b.items(ctx, q, []string{id}, []*api.JobSpec{spec}, true)
	if err != nil {
		return err
	}
	return b.enqueue(ctx, enqueueCall{queue: q}, items)
}

func (b *Broker) flushEnqueues(ctx context.Context, q queueKey, items []*enqueueItem) {
	var err error
	if slices.ContainsFunc(items, func(e *enqueueItem) bool { return !e.plain() }) {
		err = b.enqueue(ctx, enqueueCall{queue: q}, items)
	} else {
		err = b.add(ctx, q, items)
	}
	if err != nil {
		for _, item := range items {
			item.err = err
		}
	}
}

// enqueueCall is what the jobs of one call share.
type enqueueCall struct {
	queue          queueKey
	batch          string
	idempotencyKey string
	digest         string
}

// enqueue runs the script, again where a unique key is held by a job that has
// ended, or where an idempotency key is to remember a holder.
func (b *Broker) enqueue(ctx context.Context, call enqueueCall, items []*enqueueItem) error {
	for {
		keys, args := b.enqueueArguments(call, items)
		reply, err := b.store.ScriptThen(ctx, storage.ScriptJobEnqueue, keys, args, func(pipe redis.Pipeliner) {
			b.announce(ctx, pipe, call.queue, items)
		})
		if err != nil {
			return err
		}
		answer := texts(reply)
		for i, item := range items {
			item.holder, item.again = answer[i+1], answer[0] == "again"
		}
		if answer[0] == "again" {
			b.metrics.added(call.queue, items)
			return nil
		}
		freed, seen, err := b.lookAtHolders(ctx, call.queue.tenant, items)
		if err != nil {
			return err
		}
		if !freed && (!seen || call.digest == "") {
			b.metrics.added(call.queue, items)
			b.woken(call.queue, items)
			return nil
		}
	}
}

// enqueueArguments lays the call out as job_enqueue.lua reads it.
func (b *Broker) enqueueArguments(call enqueueCall, items []*enqueueItem) (keys []string, args []any) {
	q, tenant := b.keys(call.queue), b.store.JobKeys(call.queue.tenant)
	idempotency := q.Cursor()
	if call.idempotencyKey != "" {
		idempotency = tenant.Idempotency(call.queue.namespace + ":" + call.queue.queue + ":" + call.idempotencyKey)
	}
	keys = append(make([]string, 0, 15+2*len(items)), b.setsOf(call.queue, api.JobPending)...)
	keys = append(keys, q.Set(string(api.JobScheduled)), q.Set(string(api.JobWaiting)), q.Set(string(api.JobHeld)),
		q.Cursor(), q.Expiry(), q.After(), tenant.Queues(), idempotency, q.Config())
	for _, item := range items {
		keys = append(keys, tenant.Run(item.id))
	}
	for _, item := range items {
		keys = append(keys, tenant.Spec(item.id))
	}
	uniques := make([]int, len(items))
	external := "1"
	for i, item := range items {
		if item.spec.UniqueKey != "" {
			keys = append(keys, tenant.Unique(call.queue.namespace, call.queue.queue, item.spec.UniqueKey))
			uniques[i] = len(keys)
		}
		if item.internal {
			external = ""
		}
	}
	batch := 0
	if call.batch != "" {
		keys = append(keys, tenant.Batch(call.batch)+":meta", tenant.Batch(call.batch)+":jobs")
		batch = len(keys) - 1
	}
	args = append(make([]any, 0, 6+5*len(items)), len(items), call.queue.name(), call.digest,
		max(1, items[0].spec.CreatedAtMS+api.IdempotencyTTLMS-b.store.NowMS()), batch, external)
	for i, item := range items {
		args = append(args, item.id, item.text, item.firstRun().String(), scoreText(item.spec.Score), item.conditions(uniques[i]))
	}
	return keys, args
}

// conditions lays out what few jobs have: when the job expires, and its unique key,
// which is the script's key of that number.
func (e *enqueueItem) conditions(unique int) string {
	if unique == 0 && e.spec.ExpireAtMS == 0 {
		return ""
	}
	options := e.spec.WithDefaults()
	return fmt.Sprint(e.spec.ExpireAtMS, " ", unique, " ", max(1, options.UniqueTTLMS), " ", cmp.Or(e.ended, none), " ", cmp.Or(e.living, none))
}

// announce tells, behind the enqueue, when something is due in the queue, and
// that a queue of the platform's own has work.
func (b *Broker) announce(ctx context.Context, pipe redis.Pipeliner, q queueKey, items []*enqueueItem) {
	due, ready := int64(0), false
	for _, item := range items {
		ready = ready || item.state == api.JobPending
		for _, at := range []int64{item.spec.ExpireAtMS, item.dueAt()} {
			if at > 0 && (due == 0 || at < due) {
				due = at
			}
		}
	}
	if due > 0 {
		b.markDue(ctx, pipe, q, due)
	}
	if ready && strings.HasPrefix(q.queue, api.FunctionQueuePrefix) {
		b.markReady(ctx, pipe, q, b.store.NowMS())
	}
}

// dueAt is when maintenance is to look after the new job, 0 for never.
func (e *enqueueItem) dueAt() int64 {
	if e.state == api.JobScheduled || e.state == api.JobWaiting {
		return e.at
	}
	return 0
}

// woken wakes those who wait for work in q.
func (b *Broker) woken(q queueKey, items []*enqueueItem) {
	for _, item := range items {
		if item.state == api.JobPending && item.holder == "" {
			b.wakes.wake(q)
			return
		}
	}
}

// answers tells how the jobs stand now, for callers.
func (b *Broker) answers(ctx context.Context, q queueKey, items []*enqueueItem) ([]api.EnqueuedJob, error) {
	out := make([]api.EnqueuedJob, len(items))
	var ids []string
	var places []int
	for i, item := range items {
		if item.err != nil {
			return nil, item.err
		}
		out[i] = api.EnqueuedJob{ID: item.id, State: item.state}
		switch {
		case item.holder != "":
			out[i] = api.EnqueuedJob{ID: item.holder, Duplicate: true}
			ids, places = append(ids, item.holder), append(places, i)
		case item.again:
			out[i].Replayed = true
			ids, places = append(ids, item.id), append(places, i)
		}
	}
	found, err := b.load(ctx, q.tenant, ids)
	if err != nil {
		return nil, err
	}
	for i, r := range found {
		if r != nil {
			out[places[i]].State = r.run.state
		} else {
			out[places[i]].State = api.JobCompleted // it ended and was purged meanwhile
		}
	}
	return out, nil
}

// dependOn enters a job among those that wait for others. CodeJobNotFound.
func (b *Broker) dependOn(ctx context.Context, tenant, id string, on []string) error {
	tk := b.store.JobKeys(tenant)
	keys := make([]string, 0, 2*len(on))
	for _, d := range on {
		keys = append(keys, tk.Run(d))
	}
	for _, d := range on {
		keys = append(keys, tk.Dependents(d))
	}
	reply, err := b.store.Script(ctx, storage.ScriptJobDepend, keys, len(on), id)
	if err != nil {
		return err
	}
	for i, text := range texts(reply) {
		if text == "" {
			return api.Errorf(api.CodeJobNotFound, "job %s, to depend on, does not exist", on[i]).
				WithFields(api.FieldError{Path: "depends_on", Message: "must be ids of jobs that exist"})
		}
	}
	return nil
}
