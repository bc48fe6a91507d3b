package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// The end of a job has consequences: the next job of its chain, the count of its batch, the
// release of jobs that depend on it, and its outcome for a destination. Each of these steps
// is safe to repeat, because the id of each job that it makes is derived from the cause. The
// script that ends the job also writes a marker to the queue's after set, which is removed
// after the last step. Maintenance handles the markers that a crash left. For the first job of
// a chain of two:
//
//	job_ack.lua  j1 enters completed and after, its run becomes completed
//	crash        the worker has its answer or repeats the ack
//	followOne    makes j2 under DerivedJobID("chain", tenant, "j1", "step")
//	crash        j2 may run and end meanwhile
//	followOne    finds j2 by its id and changes nothing; j1 leaves after
//
// Once the marker is removed, the end of j1 must not be followed again: j2 may have been purged
// meanwhile, and would be made a second time.

// followUp handles the consequences of the ends of jobs. Those that fail are left to
// maintenance.
func (b *Broker) followUp(ctx context.Context, q jobstore.Queue, ids []string) {
	for _, id := range ids {
		if err := b.followOne(ctx, q, id); err != nil && ctx.Err() == nil {
			b.log.Warn("the consequences of a job's end were not handled; maintenance tries again", zap.String("tenant", q.Tenant),
				zap.String("job_id", id), zap.Error(err))
		}
	}
}

// followOne handles the consequences of one job's end, or releases a waiting job whose wait
// is over, and removes the job's marker.
func (b *Broker) followOne(ctx context.Context, q jobstore.Queue, id string) error {
	r, err := b.jobs.FindWith(ctx, q.Tenant, id, jobstore.DetailFields...)
	if err != nil {
		return err
	}
	if r != nil {
		switch {
		case r.Run.State == api.JobWaiting:
			err = b.release(ctx, q.Tenant, id)
		case r.Run.State.Terminal():
			err = b.followEnd(ctx, q.Tenant, r)
		}
		if err != nil {
			return err
		}
	}
	return jobstore.Failure(ctx, "remove a marker", b.rdb.ZRem(ctx, b.jobs.Keys(q).After(), id).Err())
}

// followMarker is followOne for a job that may have no marker. Without one all consequences
// were handled, and the jobs that they made may have been deleted and must not be made again.
func (b *Broker) followMarker(ctx context.Context, q jobstore.Queue, id string) error {
	err := b.rdb.ZScore(ctx, b.jobs.Keys(q).After(), id).Err()
	if err != nil {
		return jobstore.Failure(ctx, "read a marker", err)
	}
	return b.followOne(ctx, q, id)
}

// followEnd handles the consequences of r's end. A step that fails does not stop the others.
// All of them are repeated until one call has succeeded in all.
func (b *Broker) followEnd(ctx context.Context, tenant string, r *jobstore.Record) error {
	return errors.Join(
		b.followChain(ctx, tenant, r),
		b.followOutcome(ctx, tenant, r),
		b.countInBatch(ctx, tenant, r),
		b.unmark(ctx, tenant, r),
		b.releaseDependents(ctx, tenant, r.ID),
	)
}

// followChain makes the next jobs of r's chain: the next step if r completed, which takes the
// rest of the chain along; OnExit after the last step; OnFailure and OnExit if r did not
// complete. The jobs of OnFailure and OnExit have no chain.
func (b *Broker) followChain(ctx context.Context, tenant string, r *jobstore.Record) error {
	c := r.Spec.Chain
	if c == nil {
		return nil
	}
	if r.Run.State == api.JobCompleted {
		if len(c.Steps) > 0 {
			rest := *c
			rest.Steps = c.Steps[1:]
			return b.chainOn(ctx, tenant, r, &c.Steps[0], &rest, "step")
		}
		return b.chainOn(ctx, tenant, r, c.OnExit, nil, "exit")
	}
	return errors.Join(
		b.chainOn(ctx, tenant, r, c.OnFailure, nil, "failure"),
		b.chainOn(ctx, tenant, r, c.OnExit, nil, "exit"),
	)
}

// chainOn makes the job of one step of r's chain. rest is the remaining chain, nil for none.
// The id is derived from r and kind. A nil step makes no job.
func (b *Broker) chainOn(ctx context.Context, tenant string, r *jobstore.Record, step *api.ChainStep, rest *api.Chain, kind string) error {
	if step == nil {
		return nil
	}
	q := r.Queue(tenant)
	if step.Queue != "" {
		q.Name = step.Queue
	}
	first := r.Spec.ChainID
	if first == "" {
		first = r.ID
	}
	spec := &api.JobSpec{
		Payload: step.Payload, JobOptions: step.JobOptions, ParentID: r.ID, ChainID: first, ChainStep: r.Spec.ChainStep + 1,
	}
	spec.Chain = rest
	spec.By = jobstore.AuthorOf(spec, r.Spec.By)
	return b.enqueueInternal(ctx, q, api.DerivedJobID("chain", tenant, r.ID, kind), spec)
}

// releasePage is how many dependents one step reads.
const releasePage = 200

// releaseDependents releases the jobs that waited for id, if id was the last. It removes a
// dependent from the set after it was checked, so that a crash leads to a second check. Each
// step reads the beginning of the set, which shrinks.
func (b *Broker) releaseDependents(ctx context.Context, tenant, id string) error {
	key := b.store.JobKeys(tenant).Dependents(id)
	for {
		ids, _, err := b.rdb.SScan(ctx, key, 0, "", releasePage).Result()
		if err != nil || len(ids) == 0 {
			return jobstore.Failure(ctx, "read a job's dependents", err)
		}
		states, err := b.jobs.States(ctx, tenant, ids)
		if err != nil {
			return err
		}
		gone := make([]any, len(ids))
		for i, state := range states {
			gone[i] = ids[i]
			if state != api.JobWaiting {
				continue
			}
			if err := b.release(ctx, tenant, ids[i]); err != nil {
				return err
			}
		}
		if err := b.rdb.SRem(ctx, key, gone...).Err(); err != nil {
			return jobstore.Failure(ctx, "remove dependents", err)
		}
	}
}

// release moves a waiting job on if all jobs that it waits for have ended.
func (b *Broker) release(ctx context.Context, tenant, id string) error {
	_, err := b.change(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobWaiting {
			return nil, nil //nolint:nilnil // documented by change: there is nothing to write
		}
		// A purged job completed: had it failed, its end would have released r long ago.
		states, err := b.jobs.States(ctx, tenant, r.Spec.DependsOn)
		if err != nil {
			return nil, err
		}
		failed := ""
		for i, state := range states {
			switch {
			case state == "" || state == api.JobCompleted:
			case state.Terminal():
				failed = r.Spec.DependsOn[i]
			default:
				return nil, nil //nolint:nilnil // documented by change: it keeps waiting
			}
		}
		return b.released(r, failed), nil
	})
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return nil
	}
	return err
}

// released returns the move of a job whose wait is over. failed is a job that did not
// complete, "" if all did. OnDependencyFailure decides if there is one: the job is held,
// continues as if failed had completed, or, by default, is dead with the reason
// api.DeadDependency. A job that continues is held if its options ask for that; otherwise it
// is pending or scheduled.
func (b *Broker) released(r *jobstore.Record, failed string) *jobstore.Move {
	now := b.store.NowMS()
	policy, reason := r.Spec.OnDependencyFailure, ""
	switch {
	case failed == "" || policy == api.DependencyContinue:
		if !r.Spec.Hold {
			return &jobstore.Move{Record: r, To: b.ready(r)}
		}
	case policy == api.DependencyHold:
		reason = "job " + failed + " did not complete"
	default:
		return (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadDependency, now)
	}
	return &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, now), Field: jobstore.FieldHoldReason, Value: reason}
}

// pendingMarkers returns the ids of up to limit jobs whose end, or wait, has to be handled.
func (b *Broker) pendingMarkers(ctx context.Context, q jobstore.Queue, limit int64) ([]string, error) {
	ids, err := b.rdb.ZRangeByScore(ctx, b.jobs.Keys(q).After(), &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: limit}).Result()
	return ids, jobstore.Failure(ctx, "read markers", err)
}
