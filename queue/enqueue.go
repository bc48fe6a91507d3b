package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
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
	q := jobstore.Queue{Tenant: e.Tenant, Namespace: e.Namespace, Name: e.Queue}
	if e.IdempotencyKey == "" && e.Jobs[0].BatchID == "" {
		return b.enqueueTogether(ctx, q, ids, specs, true)
	}
	call := jobstore.Call{Queue: q, Batch: e.Jobs[0].BatchID}
	if e.IdempotencyKey != "" {
		digest, err := digestOf(e.Jobs)
		if err != nil {
			return nil, err
		}
		call.IdempotencyKey, call.Digest = e.IdempotencyKey, digest
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
		found, err := b.jobs.Load(ctx, e.Tenant, ids)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(found, func(r *jobstore.Record) bool { return r != nil && r.Spec.CreatedAtMS+api.IdempotencyTTLMS <= now }) {
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

// items prepares jobs for their queue: moments, states, dependencies.
func (b *Broker) items(ctx context.Context, q jobstore.Queue, ids []string, specs []*api.JobSpec, internal bool) ([]*jobstore.Entry, error) {
	if err := b.register(ctx, q.Tenant, q.Namespace); err != nil {
		return nil, err
	}
	b.completeTargets(ctx, q, specs)
	now := b.store.NowMS()
	moment := b.sequence.Next(now, len(specs))
	out := make([]*jobstore.Entry, len(specs))
	for i, spec := range specs {
		spec.CreatedAtMS = now
		spec.Score = jobstore.Score(spec.Priority, moment+int64(i))
		item := jobstore.NewEntry(ids[i], spec, now)
		item.Internal = internal
		var err error
		item.Text, err = jobstore.EncodeSpec(spec)
		if err != nil {
			return nil, err
		}
		if len(spec.DependsOn) > 0 {
			if err := b.jobs.DependOn(ctx, q.Tenant, ids[i], spec.DependsOn); err != nil {
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

// enqueueTogether adds jobs with those that others add to the queue meanwhile. fresh
// says that their ids were made for this call.
func (b *Broker) enqueueTogether(ctx context.Context, q jobstore.Queue, ids []string, specs []*api.JobSpec, fresh bool) ([]api.EnqueuedJob, error) {
	items, err := b.items(ctx, q, ids, specs, false)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		item.Fresh = fresh
	}
	if err := b.enqueues.Do(ctx, q, items); err != nil {
		return nil, err
	}
	return b.answers(ctx, q, items)
}

// enqueueInternal adds a job that the platform itself makes, under an id derived
// from its cause: a repeat changes nothing.
func (b *Broker) enqueueInternal(ctx context.Context, q jobstore.Queue, id string, spec *api.JobSpec) error {
	spec.Namespace, spec.Queue = q.Namespace, q.Name
	items, err := b.items(ctx, q, []string{id}, []*api.JobSpec{spec}, true)
	if err != nil {
		return err
	}
	return b.enqueue(ctx, jobstore.Call{Queue: q}, items)
}

func (b *Broker) flushEnqueues(ctx context.Context, q jobstore.Queue, items []*jobstore.Entry) {
	var err error
	if slices.ContainsFunc(items, func(e *jobstore.Entry) bool { return !e.Plain() }) {
		err = b.enqueue(ctx, jobstore.Call{Queue: q}, items)
	} else {
		err = b.jobs.InsertPlain(ctx, q, items)
		if err == nil {
			b.metrics.added(q, items)
			b.woken(q, items)
		}
	}
	if err != nil {
		for _, item := range items {
			item.Err = err
		}
	}
}

// enqueue runs the script, again where a unique key is held by a job that has
// ended, or where an idempotency key is to remember a holder.
func (b *Broker) enqueue(ctx context.Context, call jobstore.Call, items []*jobstore.Entry) error {
	for {
		again, err := b.jobs.Insert(ctx, call, items)
		if err != nil {
			return err
		}
		if again {
			b.metrics.added(call.Queue, items)
			return nil
		}
		freed, seen, err := b.lookAtHolders(ctx, call.Queue.Tenant, items)
		if err != nil {
			return err
		}
		if !freed && (!seen || call.Digest == "") {
			b.metrics.added(call.Queue, items)
			b.woken(call.Queue, items)
			return nil
		}
	}
}

// woken wakes those who wait for work in q.
func (b *Broker) woken(q jobstore.Queue, items []*jobstore.Entry) {
	for _, item := range items {
		if item.Run.State == api.JobPending && item.Holder == "" {
			b.notifier.Wake(q)
			return
		}
	}
}

// answers tells how the jobs stand now, for callers.
func (b *Broker) answers(ctx context.Context, q jobstore.Queue, items []*jobstore.Entry) ([]api.EnqueuedJob, error) {
	out := make([]api.EnqueuedJob, len(items))
	var ids []string
	var places []int
	for i, item := range items {
		if item.Err != nil {
			return nil, item.Err
		}
		out[i] = api.EnqueuedJob{ID: item.Id, State: item.Run.State}
		switch {
		case item.Holder != "":
			out[i] = api.EnqueuedJob{ID: item.Holder, Duplicate: true}
			ids, places = append(ids, item.Holder), append(places, i)
		case item.Replayed:
			out[i].Replayed = true
			ids, places = append(ids, item.Id), append(places, i)
		}
	}
	found, err := b.jobs.Load(ctx, q.Tenant, ids)
	if err != nil {
		return nil, err
	}
	for i, r := range found {
		if r != nil {
			out[places[i]].State = r.Run.State
		} else {
			out[places[i]].State = api.JobCompleted // it ended and was purged meanwhile
		}
	}
	return out, nil
}
