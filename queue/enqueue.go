package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/resultschema"
	"github.com/codesous/sous/queue/internal/targets"
)

// Enqueue is a call that adds jobs to one queue.
type Enqueue struct {
	Tenant, Namespace, Queue string
	Jobs                     []api.NewJob
	// IdempotencyKey makes the call safe to repeat for api.IdempotencyTTLMS: a repeat
	// returns the jobs of the first call.
	IdempotencyKey string
	// Confined limits the jobs and batches that the jobs may refer to to those of the
	// namespace; others are treated as not existing.
	Confined bool
	// By is the caller for which the jobs run functions. Nil has no role.
	By *api.JobAuthor
}

// Enqueue adds jobs, all of them or none, and returns when they are durable, with their ids
// in order. If one job is invalid the call fails, with the job's index in the paths of the
// error's fields. Errors: CodeInvalid…, CodeBodyLimit, CodeBatchNotFound, CodeBatchSealed,
// CodeQueueDraining, CodeQueueReserved, CodeJobNotFound (a dependency),
// CodeIdempotencyMismatch, CodeTenantQuota, CodeTenantRate, CodeBudgetExceeded, CodeShuttingDown,
// CodeStoreUnavailable.
func (b *Broker) Enqueue(ctx context.Context, e Enqueue) ([]api.EnqueuedJob, error) {
	now := b.store.NowMS()
	if err := e.validate(now); err != nil {
		return nil, err
	}
	if err := resultschema.CheckSchemas(e.Jobs); err != nil {
		return nil, err
	}
	budget := schema.NewBudget()
	for i := range e.Jobs {
		if err := b.checkOptions(e.Queue, &e.Jobs[i].JobOptions, budget); err != nil {
			return nil, jobstore.AtIndex(err, i)
		}
	}
	ids, err := b.newIDs(ctx, &e, now)
	if err != nil {
		return nil, err
	}
	specs := make([]*api.JobSpec, len(e.Jobs))
	for i := range e.Jobs {
		specs[i] = &api.JobSpec{
			Namespace: e.Namespace, Queue: e.Queue,
			Payload: e.Jobs[i].Payload, JobOptions: e.Jobs[i].JobOptions,
		}
		specs[i].By = jobstore.AuthorOf(specs[i], e.By)
	}
	q := jobstore.Queue{Tenant: e.Tenant, Namespace: e.Namespace, Name: e.Queue}
	from := ofCaller
	if e.Confined {
		from = ofConfined
	}
	if e.IdempotencyKey == "" && e.Jobs[0].BatchID == "" {
		return b.enqueueTogether(ctx, q, ids, specs, from, true)
	}
	call := jobstore.Call{Queue: q, Batch: e.Jobs[0].BatchID, Confined: e.Confined}
	if e.IdempotencyKey != "" {
		digest, err := digestOf(e.Jobs)
		if err != nil {
			return nil, err
		}
		call.IdempotencyKey, call.Digest = e.IdempotencyKey, digest
	}
	items, err := b.items(ctx, q, ids, specs, from)
	if err != nil {
		return nil, err
	}
	if err := b.jobs.Undepend(ctx, q, items, b.enqueue(ctx, call, items)); err != nil {
		return nil, err
	}
	return b.answers(ctx, q, items)
}

// newIDs returns the ids of e's jobs. With an idempotency key they are derived from it, so
// that repeating an interrupted call creates no job twice. The number of earlier uses of the
// key is part of the derivation, because jobs may be kept longer than the key is remembered.
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
		used := false
		for part, err := range b.jobs.Parts(ctx, e.Tenant, ids) {
			if err != nil {
				return nil, err
			}
			used = used || slices.ContainsFunc(part, func(r *jobstore.Record) bool { return r != nil && r.Spec.CreatedAtMS+api.IdempotencyTTLMS <= now })
		}
		if !used {
			return ids, nil
		}
	}
}

// digestOf returns a hash of jobs that detects a different call with the same idempotency
// key.
func digestOf(jobs []api.NewJob) (string, error) {
	raw, err := api.EncodeJSON(jobs)
	if err != nil {
		return "", fmt.Errorf("queue: encode jobs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// origin is where new jobs come from.
type origin int

const (
	ofCaller   origin = iota
	ofConfined        // of a caller for which jobs of other namespaces do not exist
	ofPlatform        // made of others: no quota refuses them, and a draining queue accepts them
	admitted          // of a caller, and their quotas have been taken
)

// items returns the entries of new jobs of q: it takes their quotas, assigns their scores and
// states, and registers them with the jobs that they depend on.
func (b *Broker) items(ctx context.Context, q jobstore.Queue, ids []string, specs []*api.JobSpec, from origin) ([]*jobstore.Entry, error) {
	if from == ofCaller || from == ofConfined {
		if err := b.guard.Admit(ctx, q, specs); err != nil {
			return nil, err
		}
	}
	if from != admitted {
		if err := b.admission.Jobs(ctx, q, specs, from == ofPlatform); err != nil {
			return nil, err
		}
	}
	targets.Complete(ctx, b.store, q, specs)
	if err := b.consent.Admit(ctx, q, specs); err != nil {
		return nil, err
	}
	now := b.store.NowMS()
	moment := b.sequence.Next(now, len(specs))
	out := make([]*jobstore.Entry, len(specs))
	for i, spec := range specs {
		spec.CreatedAtMS = now
		spec.Score = jobstore.Score(spec.Priority, moment+int64(i))
		item := jobstore.NewEntry(ids[i], spec, now)
		item.Internal = from == ofPlatform
		var err error
		item.Text, err = jobstore.EncodeSpec(spec)
		if err != nil {
			return nil, err
		}
		if len(spec.DependsOn) > 0 {
			if err := b.jobs.DependOn(ctx, q, ids[i], spec.DependsOn, from == ofConfined); err != nil {
				if api.ErrorCode(err) == api.CodeJobNotFound {
					err = jobstore.AtIndex(err, i)
				}
				return nil, b.jobs.Undepend(ctx, q, out[:i], err)
			}
		}
		out[i] = item
	}
	return out, nil
}

// enqueueTogether adds jobs together with those of concurrent calls for the same queue.
// fresh reports that the ids were generated by this call.
func (b *Broker) enqueueTogether(ctx context.Context, q jobstore.Queue, ids []string, specs []*api.JobSpec, from origin, fresh bool) ([]api.EnqueuedJob, error) {
	items, err := b.items(ctx, q, ids, specs, from)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		item.Fresh = fresh
	}
	return b.addTogether(ctx, q, items)
}

// addTogether adds items together with those of concurrent calls for the same queue.
func (b *Broker) addTogether(ctx context.Context, q jobstore.Queue, items []*jobstore.Entry) ([]api.EnqueuedJob, error) {
	if err := b.jobs.Undepend(ctx, q, items, b.enqueues.Do(ctx, q, items)); err != nil {
		return nil, err
	}
	return b.answers(ctx, q, items)
}

// enqueueInternal adds a job of the platform, under an id derived from its cause, so that a
// repeat changes nothing, together with those of concurrent calls. A draining queue accepts it.
func (b *Broker) enqueueInternal(ctx context.Context, q jobstore.Queue, id string, spec *api.JobSpec) error {
	spec.Namespace, spec.Queue = q.Namespace, q.Name
	items, err := b.items(ctx, q, []string{id}, []*api.JobSpec{spec}, ofPlatform)
	if err != nil {
		return err
	}
	if err := b.internals.Do(ctx, q, items); err != nil {
		return err
	}
	return items[0].Err
}

// flushEnqueues adds the jobs of concurrent calls and stores an error in each entry.
func (b *Broker) flushEnqueues(ctx context.Context, q jobstore.Queue, items []*jobstore.Entry) {
	var err error
	if slices.ContainsFunc(items, func(e *jobstore.Entry) bool { return !e.Plain() }) {
		err = b.enqueue(ctx, jobstore.Call{Queue: q}, items)
	} else {
		err = b.jobs.InsertPlain(ctx, q, items)
		if err == nil {
			b.metrics.added(q, items)
			b.wake(q, items)
		}
	}
	if err != nil {
		for _, item := range items {
			item.Err = err
		}
	}
}

// flushInternals is flushEnqueues for jobs of the platform. Maintenance and the end of a job may
// make the same job at the same time: the script gets it once.
func (b *Broker) flushInternals(ctx context.Context, q jobstore.Queue, items []*jobstore.Entry) {
	first := map[string]*jobstore.Entry{}
	var once []*jobstore.Entry
	for _, item := range items {
		if first[item.ID] == nil {
			first[item.ID] = item
			once = append(once, item)
		}
	}
	b.flushEnqueues(ctx, q, once)
	for _, item := range items {
		item.Err = first[item.ID].Err
	}
}

// enqueue adds items. It tries again if a unique key was held by a job that has ended, or if
// the holder of one has to be recorded with the idempotency key.
func (b *Broker) enqueue(ctx context.Context, call jobstore.Call, items []*jobstore.Entry) error {
	for {
		replayed, err := b.jobs.Insert(ctx, call, items)
		if err != nil {
			return err
		}
		if replayed {
			b.metrics.added(call.Queue, items)
			return nil
		}
		freed, seen, err := b.readHolders(ctx, call.Queue.Tenant, items)
		if err != nil {
			return err
		}
		if !freed && (!seen || call.Digest == "") {
			b.metrics.added(call.Queue, items)
			b.wake(call.Queue, items)
			return nil
		}
	}
}

// wake notifies fetches that wait for work in q if one of items can be fetched.
func (b *Broker) wake(q jobstore.Queue, items []*jobstore.Entry) {
	for _, item := range items {
		if item.Run.State == api.JobPending && item.Holder == "" {
			b.notifier.Wake(q)
			return
		}
	}
}

// answers returns the results of an enqueue. Duplicates and replayed jobs have their present
// states.
func (b *Broker) answers(ctx context.Context, q jobstore.Queue, items []*jobstore.Entry) ([]api.EnqueuedJob, error) {
	out := make([]api.EnqueuedJob, len(items))
	var ids []string
	var positions []int
	for i, item := range items {
		if item.Err != nil {
			return nil, item.Err
		}
		out[i] = api.EnqueuedJob{ID: item.ID, State: item.Run.State}
		switch {
		case item.Holder != "":
			out[i] = api.EnqueuedJob{ID: item.Holder, Duplicate: true}
			ids, positions = append(ids, item.Holder), append(positions, i)
		case item.Replayed:
			out[i].Replayed = true
			ids, positions = append(ids, item.ID), append(positions, i)
		}
	}
	states, err := b.jobs.States(ctx, q.Tenant, ids)
	if err != nil {
		return nil, err
	}
	for i, state := range states {
		out[positions[i]].State = cmp.Or(state, api.JobCompleted) // one that is gone has ended and was purged
	}
	return out, nil
}

// A unique key admits one job that has not ended. It is a key of the store whose value is the
// id of its holder. For jobs with the unique key k in queue mail of namespace shop:
//
//	call               cs:uniq:t_acme01:shop:mail:k  result
//	enqueue j1         j1, expires in UniqueTTLMS    j1 is pending
//	enqueue j2         j1                            j1, a duplicate; j2 is not stored
//	ack j1             deleted by the same script    j1 is completed
//	enqueue j3         j3                            j3 is pending
//	j3 dies            j3                            the script was interrupted before
//	                                                 it deleted the key
//	enqueue j4         j3                            the script replies with the holder j3
//	  reads j3: dead
//	  Ended = j3       j4                            j4 is pending
//
// The script deletes the key of an ended job only while it names that job. A key that expires
// frees itself although its holder lives, as UniqueTTLMS asks for.

// readHolders reads the jobs that hold unique keys, and sets Ended or Living of each entry
// whose holder it read. freed reports whether one has ended, or was never stored because of a
// crash, so that its key is free. seen reports whether one lives
// that the last call did not name in Living. A
// holder that lives is indexed if its enqueue was interrupted: a producer that is answered with
// a duplicate relies on that job to run.
func (b *Broker) readHolders(ctx context.Context, tenant string, items []*jobstore.Entry) (freed, seen bool, err error) {
	var holders []string
	var held []*jobstore.Entry
	for _, item := range items {
		if item.Holder != "" && item.Holder != item.Living {
			holders, held = append(holders, item.Holder), append(held, item)
		}
	}
	for part, err := range b.jobs.Parts(ctx, tenant, holders) {
		if err != nil {
			return false, false, err
		}
		for _, r := range part {
			item := held[0]
			held = held[1:]
			if r == nil || r.Run.State.Terminal() {
				item.Ended, freed = item.Holder, true
				continue
			}
			if _, err := b.jobs.Reindex(ctx, tenant, r); err != nil {
				return false, false, err
			}
			item.Living, seen = item.Holder, true
		}
	}
	return freed, seen, nil
}
