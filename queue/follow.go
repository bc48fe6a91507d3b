package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// What follows a job's end (the next step of its chain, its batch's count, the
// jobs that depend on it, where its outcome is sent) is done in steps that may be
// repeated: everything made has an id derived from its cause. A marker in the
// queue's after set is written with the end and removed when all is done, so that
// maintenance finishes what a crash cut short.

// followUp does what follows the given jobs at once. What fails is left to
// maintenance.
func (b *Broker) followUp(ctx context.Context, q jobstore.Queue, ids []string) {
	for _, id := range ids {
		if err := b.followOne(ctx, q, id); err != nil && ctx.Err() == nil {
			b.log.Warn("what follows a job is left to maintenance", zap.String("tenant", q.Tenant),
				zap.String("job_id", id), zap.Error(err))
		}
	}
}

// followOne does what follows one job, or finds that its wait is over, and
// removes its marker.
func (b *Broker) followOne(ctx context.Context, q jobstore.Queue, id string) error {
	found, err := b.jobs.Load(ctx, q.Tenant, []string{id}, jobstore.DetailFields...)
	if err != nil {
		return err
	}
	if r := found[0]; r != nil {
		switch {
		case r.Run.State == api.JobWaiting:
			err = b.release(ctx, q.Tenant, r)
		case r.Run.State.Terminal():
			err = b.followEnd(ctx, q.Tenant, r)
		}
		if err != nil {
			return err
		}
	}
	return jobstore.Failure(ctx, "remove a marker", b.rdb.ZRem(ctx, b.jobs.Keys(q).After(), id).Err())
}

// followMarker does what follows a job if that is still to be done. What it made
// before may have been deleted since, and is not to be made again.
func (b *Broker) followMarker(ctx context.Context, q jobstore.Queue, id string) error {
	err := b.rdb.ZScore(ctx, b.jobs.Keys(q).After(), id).Err()
	if err != nil {
		return jobstore.Failure(ctx, "read a marker", err)
	}
	return b.followOne(ctx, q, id)
}

func (b *Broker) followEnd(ctx context.Context, tenant string, r *jobstore.Record) error {
	return errors.Join(
		b.followChain(ctx, tenant, r),
		b.followOutcome(ctx, tenant, r),
		b.countInBatch(ctx, tenant, r),
		b.unmark(ctx, tenant, r),
		b.releaseDependents(ctx, tenant, r.Id),
	)
}

// followChain makes the next job of r's chain.
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

// chainOn makes one job of a chain, which goes on with rest. Its id is derived
// from the job before it.
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
		first = r.Id
	}
	spec := &api.JobSpec{
		Payload: step.Payload, JobOptions: step.JobOptions, ParentID: r.Id, ChainID: first, ChainStep: r.Spec.ChainStep + 1,
	}
	spec.Chain = rest
	return b.enqueueInternal(ctx, q, api.DerivedJobID("chain", tenant, r.Id, kind), spec)
}

// releasePage is how many dependents are looked at in one go.
const releasePage = 200

// releaseDependents looks at each job that waited for id.
func (b *Broker) releaseDependents(ctx context.Context, tenant, id string) error {
	key := b.store.JobKeys(tenant).Dependents(id)
	for {
		ids, _, err := b.rdb.SScan(ctx, key, 0, "", releasePage).Result()
		if err != nil || len(ids) == 0 {
			return jobstore.Failure(ctx, "read a job's dependents", err)
		}
		found, err := b.jobs.Load(ctx, tenant, ids, jobstore.DetailFields...)
		if err != nil {
			return err
		}
		gone := make([]any, len(ids))
		for i, r := range found {
			gone[i] = ids[i]
			if r == nil || r.Run.State != api.JobWaiting {
				continue
			}
			if err := b.release(ctx, tenant, r); err != nil {
				return err
			}
		}
		if err := b.rdb.SRem(ctx, key, gone...).Err(); err != nil {
			return jobstore.Failure(ctx, "remove dependents", err)
		}
	}
}

// release lets a waiting job go on, if all that it waits for has ended.
func (b *Broker) release(ctx context.Context, tenant string, r *jobstore.Record) error {
	_, err := b.change(ctx, tenant, r.Id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobWaiting {
			return nil, nil //nolint:nilnil // nothing is to be done
		}
		// A job that was purged ended long ago: had it failed, this one would not wait.
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
				return nil, nil //nolint:nilnil // it has to wait on
			}
		}
		return b.released(r, failed), nil
	})
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return nil
	}
	return err
}

// released decides what becomes of a job that waits no more; failed is one that
// did not complete, if any.
func (b *Broker) released(r *jobstore.Record, failed string) *jobstore.Move {
	now := b.store.NowMS()
	switch {
	case failed == "" && r.Spec.Hold, failed != "" && r.Spec.OnDependencyFailure == api.DependencyHold:
		reason := ""
		if failed != "" {
			reason = "job " + failed + " did not complete"
		}
		return &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, now), Field: jobstore.FieldHoldReason, Value: reason}
	case failed == "" || r.Spec.OnDependencyFailure == api.DependencyContinue:
		return &jobstore.Move{Record: r, To: b.ready(r)}
	}
	return (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadDependency, now)
}

// pendingMarkers reads the jobs whose end, or wait, is to be followed up.
func (b *Broker) pendingMarkers(ctx context.Context, q jobstore.Queue, limit int64) ([]string, error) {
	ids, err := b.rdb.ZRangeByScore(ctx, b.jobs.Keys(q).After(), &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: limit}).Result()
	return ids, jobstore.Failure(ctx, "read markers", err)
}
