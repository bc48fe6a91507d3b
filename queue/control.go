package queue

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Cancel ends a job that has not ended. Its worker, if it has one, learns of it
// with its next heartbeat. A repeat succeeds. CodeJobNotFound, CodeJobState.
func (b *Broker) Cancel(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *record) (*move, error) {
		switch {
		case r.run.state == api.JobCancelled:
			return nil, nil //nolint:nilnil // nothing is to be done
		case r.run.state.Terminal():
			return nil, stateConflict(r, "cancelled")
		}
		m := move{record: r, to: r.run.to(api.JobCancelled, b.store.NowMS())}.end()
		return &m, nil
	})
}

// Retry gives a dead or cancelled job one more attempt, at once.
// CodeJobNotFound, CodeJobState.
func (b *Broker) Retry(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *record) (*move, error) {
		if r.run.state != api.JobDead && r.run.state != api.JobCancelled {
			return nil, stateConflict(r, "retried")
		}
		if err := b.followOutcome(ctx, tenant, r); err != nil { // of the end that it is to be brought back from
			return nil, err
		}
		return b.revive(r), nil
	})
}

// revive brings an ended job back for one more attempt. One that had expired
// does not expire again.
func (b *Broker) revive(r *record) *move {
	m := &move{record: r, to: r.run.to(api.JobPending, b.store.NowMS())}
	m.to.attempt = min(m.to.attempt, r.spec.WithDefaults().MaxAttempts-1)
	if spec, changed := b.retried(r); changed {
		if text, err := encodeSpec(spec); err == nil {
			m.spec = text
		}
	}
	return m
}

// Hold keeps a job that waits from running until it is approved.
// CodeJobNotFound, CodeJobState.
func (b *Broker) Hold(ctx context.Context, tenant, id, reason string) (*api.Job, error) {
	if len(reason) > maxHoldReason {
		return nil, fieldError("reason", "is too long")
	}
	return b.steer(ctx, tenant, id, func(r *record) (*move, error) {
		switch r.run.state {
		case api.JobHeld:
			return nil, nil //nolint:nilnil // nothing is to be done
		case api.JobPending, api.JobScheduled, api.JobRetrying, api.JobWaiting:
			return &move{record: r, to: r.run.to(api.JobHeld, b.store.NowMS()), field: fieldHoldReason, value: reason}, nil
		}
		return nil, stateConflict(r, "held")
	})
}

// Approve lets a held job run, at its time. CodeJobNotFound, CodeJobState.
func (b *Broker) Approve(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *record) (*move, error) {
		if r.run.state != api.JobHeld {
			return nil, stateConflict(r, "approved")
		}
		return &move{record: r, to: b.ready(r)}, nil
	})
}

// ready is r's run when nothing but its time keeps it from running.
func (b *Broker) ready(r *record) run {
	now := b.store.NowMS()
	if r.spec.RunAtMS > now {
		return r.run.to(api.JobScheduled, r.spec.RunAtMS)
	}
	return r.run.to(api.JobPending, now)
}

// Reject ends a held job as dead. CodeJobNotFound, CodeJobState.
func (b *Broker) Reject(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *record) (*move, error) {
		if r.run.state != api.JobHeld {
			return nil, stateConflict(r, "rejected")
		}
		return (&move{record: r, to: r.run}).dead(api.DeadRejected, b.store.NowMS()), nil
	})
}

func (b *Broker) steer(ctx context.Context, tenant, id string, decide func(r *record) (*move, error)) (*api.Job, error) {
	if err := api.ValidateJobID(id); err != nil {
		return nil, err
	}
	r, err := b.change(ctx, tenant, id, decide)
	if err != nil {
		return nil, err
	}
	return b.show(ctx, tenant, r)
}

// Get gives a job with its errors. CodeJobNotFound.
func (b *Broker) Get(ctx context.Context, tenant, id string) (*api.Job, error) {
	if err := api.ValidateJobID(id); err != nil {
		return nil, err
	}
	r, err := b.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return b.show(ctx, tenant, r)
}

func (b *Broker) show(ctx context.Context, tenant string, r *record) (*api.Job, error) {
	errs, err := b.rdb.LRange(ctx, b.store.JobKeys(tenant).Errors(r.id), 0, -1).Result()
	if err != nil {
		return nil, b.failure(ctx, "read a job's errors", err)
	}
	return r.view(errs)
}

// Move takes a job that waits to another queue of its namespace, where it is as
// old as it is. CodeJobNotFound, CodeJobState, CodeQueueReserved.
func (b *Broker) Move(ctx context.Context, tenant, id, queue string) (*api.Job, error) {
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	for range changeTries {
		r, err := b.find(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		switch {
		case isFunctionQueue(queue) || isFunctionQueue(r.spec.Queue):
			return nil, api.Errorf(api.CodeQueueReserved, "queues fn.… are the platform's: jobs are not moved there or away")
		case r.spec.UniqueKey != "":
			return nil, api.Errorf(api.CodeJobState, "job %s has a unique key in its queue: it cannot be moved", id)
		case r.run.state.Terminal() || r.run.state == api.JobActive:
			return nil, stateConflict(r, "moved")
		case r.spec.Queue == queue:
			return b.show(ctx, tenant, r)
		}
		from := r.key(tenant)
		if done, err := b.moveTo(ctx, r, from, queueKey{tenant, from.namespace, queue}); err != nil || !done {
			if err != nil {
				return nil, err
			}
			continue
		}
		b.briefs.Invalidate(jobKey{tenant, id})
		return b.Get(ctx, tenant, id)
	}
	return nil, api.Errorf(api.CodeStoreConflict, "job %s keeps changing", id)
}

// moveTo enters the job in its new queue, together with the spec that says so,
// and then takes it out of the old one: entries there that a crash leaves behind
// are dropped by whoever meets them. It says whether the job still was what was
// read.
func (b *Broker) moveTo(ctx context.Context, r *record, from, to queueKey) (bool, error) {
	spec := *r.spec
	spec.Queue = to.queue
	text, err := encodeSpec(&spec)
	if err != nil {
		return false, err
	}
	if err := b.addQueue(ctx, to); err != nil {
		return false, err
	}
	// The epoch grows, so that whoever decided on the job in its old queue has to
	// look again, and what a process remembers of it does not outlive the move.
	// What is overdue goes as due now: sets are not read far back, see floors.
	there, now := r.run, b.store.NowMS()
	if (there.state == api.JobScheduled || there.state == api.JobRetrying) && there.at <= now {
		there = there.to(api.JobPending, now)
	}
	there.epoch++
	keys, args := b.moveArguments(to, []*move{{record: r, to: there, spec: text}})
	reply, err := b.store.Script(ctx, storage.ScriptJobMove, keys, args...)
	if err != nil {
		return false, err
	}
	switch word := texts(reply)[0]; word {
	case moved, movedAfter:
	case missing:
		return false, jobNotFound(r.id)
	default:
		return false, nil
	}
	old := b.keys(from)
	pipe := b.rdb.Pipeline()
	pipe.ZRem(ctx, b.setOf(from, r.run.state, r.spec.Score), r.id)
	pipe.ZRem(ctx, old.Expiry(), r.id)
	if spec.ExpireAtMS > 0 {
		at := max(spec.ExpireAtMS, now)
		pipe.ZAdd(ctx, b.keys(to).Expiry(), redis.Z{Score: float64(at), Member: r.id})
		b.markDue(ctx, pipe, to, at)
	}
	if there.state == api.JobScheduled || there.state == api.JobRetrying {
		b.markDue(ctx, pipe, to, there.at)
	}
	_, err = pipe.Exec(ctx)
	b.wakes.wake(to)
	return true, b.failure(ctx, "move a job", err)
}

func (b *Broker) addQueue(ctx context.Context, q queueKey) error {
	return b.failure(ctx, "enter a queue", b.rdb.SAdd(ctx, b.store.JobKeys(q.tenant).Queues(), q.name()).Err())
}

// Delete removes a job and its record. One that has not ended is cancelled first,
// so that what depends on it learns of its end. CodeJobNotFound, CodeJobState
// where it is active.
func (b *Broker) Delete(ctx context.Context, tenant, id string) error {
	if err := api.ValidateJobID(id); err != nil {
		return err
	}
	for range changeTries {
		r, err := b.find(ctx, tenant, id)
		if err != nil {
			return err
		}
		if r.run.state == api.JobActive {
			return stateConflict(r, "deleted; cancel it first")
		}
		if !r.run.state.Terminal() {
			if _, err := b.Cancel(ctx, tenant, id); err != nil {
				return err
			}
			continue
		}
		if err := b.followMarker(ctx, r.key(tenant), r.id); err != nil {
			return err
		}
		deleted, err := b.purge(ctx, r.key(tenant), r.run.state, []*record{r})
		if err != nil || deleted == 1 {
			return err
		}
	}
	return api.Errorf(api.CodeStoreConflict, "job %s keeps changing", id)
}

// purge deletes jobs of one state and queue, those whose run still is the record's.
func (b *Broker) purge(ctx context.Context, q queueKey, state api.JobState, records []*record) (int, error) {
	if len(records) == 0 {
		return 0, nil
	}
	tenant := b.store.JobKeys(q.tenant)
	keys := []string{b.keys(q).Set(string(state))}
	args := []any{len(records)}
	for _, r := range records {
		keys = append(keys, tenant.Run(r.id), tenant.Spec(r.id), tenant.Meta(r.id), tenant.Errors(r.id), tenant.Dependents(r.id))
		args = append(args, r.id, r.text)
	}
	reply, err := b.store.Script(ctx, storage.ScriptJobPurge, keys, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("queue: a purge answered %v", reply)
	}
	return int(n), nil
}
