package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Cancel ends a job that has not ended. Its worker, if it has one, learns of it
// with its next heartbeat. A repeat succeeds. CodeJobNotFound, CodeJobState.
func (b *Broker) Cancel(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		switch {
		case r.Run.State == api.JobCancelled:
			return nil, nil //nolint:nilnil // nothing is to be done
		case r.Run.State.Terminal():
			return nil, stateConflict(r, "cancelled")
		}
		m := jobstore.Move{Record: r, To: r.Run.To(api.JobCancelled, b.store.NowMS())}.End()
		return &m, nil
	})
}

// Retry gives a dead or cancelled job one more attempt, at once.
// CodeJobNotFound, CodeJobState.
func (b *Broker) Retry(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobDead && r.Run.State != api.JobCancelled {
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
func (b *Broker) revive(r *jobstore.Record) *jobstore.Move {
	m := &jobstore.Move{Record: r, To: r.Run.To(api.JobPending, b.store.NowMS())}
	m.To.Attempt = min(m.To.Attempt, r.Spec.WithDefaults().MaxAttempts-1)
	if spec, changed := b.retried(r); changed {
		if text, err := jobstore.EncodeSpec(spec); err == nil {
			m.Spec = text
		}
	}
	return m
}

// Hold keeps a job that waits from running until it is approved.
// CodeJobNotFound, CodeJobState.
func (b *Broker) Hold(ctx context.Context, tenant, id, reason string) (*api.Job, error) {
	if len(reason) > maxHoldReason {
		return nil, api.InvalidField("reason", "is too long")
	}
	return b.steer(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		switch r.Run.State {
		case api.JobHeld:
			return nil, nil //nolint:nilnil // nothing is to be done
		case api.JobPending, api.JobScheduled, api.JobRetrying, api.JobWaiting:
			return &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, b.store.NowMS()), Field: jobstore.FieldHoldReason, Value: reason}, nil
		}
		return nil, stateConflict(r, "held")
	})
}

// Approve lets a held job run, at its time. CodeJobNotFound, CodeJobState.
func (b *Broker) Approve(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobHeld {
			return nil, stateConflict(r, "approved")
		}
		return &jobstore.Move{Record: r, To: b.ready(r)}, nil
	})
}

// ready is r's run when nothing but its time keeps it from running.
func (b *Broker) ready(r *jobstore.Record) jobstore.Run {
	now := b.store.NowMS()
	if r.Spec.RunAtMS > now {
		return r.Run.To(api.JobScheduled, r.Spec.RunAtMS)
	}
	return r.Run.To(api.JobPending, now)
}

// Reject ends a held job as dead. CodeJobNotFound, CodeJobState.
func (b *Broker) Reject(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.steer(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobHeld {
			return nil, stateConflict(r, "rejected")
		}
		return (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadRejected, b.store.NowMS()), nil
	})
}

func (b *Broker) steer(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (*api.Job, error) {
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
	r, err := b.jobs.Find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return b.show(ctx, tenant, r)
}

func (b *Broker) show(ctx context.Context, tenant string, r *jobstore.Record) (*api.Job, error) {
	errs, err := b.rdb.LRange(ctx, b.store.JobKeys(tenant).Errors(r.Id), 0, -1).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read a job's errors", err)
	}
	return r.View(errs)
}

// Move takes a job that waits to another queue of its namespace, where it is as
// old as it is. CodeJobNotFound, CodeJobState, CodeQueueReserved.
func (b *Broker) Move(ctx context.Context, tenant, id, queue string) (*api.Job, error) {
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	for range changeTries {
		r, err := b.jobs.Find(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		switch {
		case jobstore.IsFunctionQueue(queue) || jobstore.IsFunctionQueue(r.Spec.Queue):
			return nil, api.Errorf(api.CodeQueueReserved, "queues fn.… are the platform's: jobs are not moved there or away")
		case r.Spec.UniqueKey != "":
			return nil, api.Errorf(api.CodeJobState, "job %s has a unique key in its queue: it cannot be moved", id)
		case r.Run.State.Terminal() || r.Run.State == api.JobActive:
			return nil, stateConflict(r, "moved")
		case r.Spec.Queue == queue:
			return b.show(ctx, tenant, r)
		}
		from := r.Queue(tenant)
		done, err := b.jobs.Requeue(ctx, r, from, jobstore.Queue{Tenant: tenant, Namespace: from.Namespace, Name: queue})
		if err != nil {
			return nil, err
		}
		if !done {
			continue
		}
		b.jobs.ForgetSummary(tenant, id)
		return b.Get(ctx, tenant, id)
	}
	return nil, api.Errorf(api.CodeStoreConflict, "job %s keeps changing", id)
}

// Delete removes a job and its record. One that has not ended is cancelled first,
// so that what depends on it learns of its end. CodeJobNotFound, CodeJobState
// where it is active.
func (b *Broker) Delete(ctx context.Context, tenant, id string) error {
	if err := api.ValidateJobID(id); err != nil {
		return err
	}
	for range changeTries {
		r, err := b.jobs.Find(ctx, tenant, id)
		if err != nil {
			return err
		}
		if r.Run.State == api.JobActive {
			return stateConflict(r, "deleted; cancel it first")
		}
		if !r.Run.State.Terminal() {
			if _, err := b.Cancel(ctx, tenant, id); err != nil {
				return err
			}
			continue
		}
		if err := b.followMarker(ctx, r.Queue(tenant), r.Id); err != nil {
			return err
		}
		deleted, err := b.jobs.Purge(ctx, r.Queue(tenant), r.Run.State, []*jobstore.Record{r})
		if err != nil || deleted == 1 {
			return err
		}
	}
	return api.Errorf(api.CodeStoreConflict, "job %s keeps changing", id)
}
