package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// What follows a job's end (the next step of its chain, its batch's count, the
// jobs that depend on it, where its outcome is sent) is done in steps that may be
// repeated: everything made has an id derived from its cause. A marker in the
// queue's after set is written with the end and removed when all is done, so that
// maintenance finishes what a crash cut short.

// followUp does what follows the given jobs at once. What fails is left to
// maintenance.
func (b *Broker) followUp(ctx context.Context, q queueKey, ids []string) {
	for _, id := range ids {
		if err := b.followOne(ctx, q, id); err != nil && ctx.Err() == nil {
			b.log.Warn("what follows a job is left to maintenance", zap.String("tenant", q.tenant),
				zap.String("job_id", id), zap.Error(err))
		}
	}
}

// followOne does what follows one job, or finds that its wait is over, and
// removes its marker.
func (b *Broker) followOne(ctx context.Context, q queueKey, id string) error {
	found, err := b.load(ctx, q.tenant, []string{id}, details...)
	if err != nil {
		return err
	}
	if r := found[0]; r != nil {
		switch {
		case r.run.state == api.JobWaiting:
			err = b.release(ctx, q.tenant, r)
		case r.run.state.Terminal():
			err = b.followEnd(ctx, q.tenant, r)
		}
		if err != nil {
			return err
		}
	}
	return b.failure(ctx, "remove a marker", b.rdb.ZRem(ctx, b.keys(q).After(), id).Err())
}

// followMarker does what follows a job if that is still to be done. What it made
// before may have been deleted since, and is not to be made again.
func (b *Broker) followMarker(ctx context.Context, q queueKey, id string) error {
	err := b.rdb.ZScore(ctx, b.keys(q).After(), id).Err()
	if err != nil {
		return b.failure(ctx, "read a marker", err)
	}
	return b.followOne(ctx, q, id)
}

func (b *Broker) followEnd(ctx context.Context, tenant string, r *record) error {
	return errors.Join(
		b.followChain(ctx, tenant, r),
		b.followOutcome(ctx, tenant, r),
		b.countInBatch(ctx, tenant, r),
		b.unmark(ctx, tenant, r),
		b.releaseDependents(ctx, tenant, r.id),
	)
}

// followChain makes the next job of r's chain.
func (b *Broker) followChain(ctx context.Context, tenant string, r *record) error {
	c := r.spec.Chain
	if c == nil {
		return nil
	}
	if r.run.state == api.JobCompleted {
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
func (b *Broker) chainOn(ctx context.Context, tenant string, r *record, step *api.ChainStep, rest *api.Chain, kind string) error {
	if step == nil {
		return nil
	}
	q := r.key(tenant)
	if step.Queue != "" {
		q.queue = step.Queue
	}
	first := r.spec.ChainID
	if first == "" {
		first = r.id
	}
	spec := &api.JobSpec{
		Payload: step.Payload, JobOptions: step.JobOptions, ParentID: r.id, ChainID: first, ChainStep: r.spec.ChainStep + 1,
	}
	spec.Chain = rest
	return b.enqueueInternal(ctx, q, api.DerivedJobID("chain", tenant, r.id, kind), spec)
}

// releasePage is how many dependents are looked at in one go.
const releasePage = 200

// releaseDependents looks at each job that waited for id.
func (b *Broker) releaseDependents(ctx context.Context, tenant, id string) error {
	key := b.store.JobKeys(tenant).Dependents(id)
	for {
		ids, _, err := b.rdb.SScan(ctx, key, 0, "", releasePage).Result()
		if err != nil || len(ids) == 0 {
			return b.failure(ctx, "read a job's dependents", err)
		}
		found, err := b.load(ctx, tenant, ids, details...)
		if err != nil {
			return err
		}
		gone := make([]any, len(ids))
		for i, r := range found {
			gone[i] = ids[i]
			if r == nil || r.run.state != api.JobWaiting {
				continue
			}
			if err := b.release(ctx, tenant, r); err != nil {
				return err
			}
		}
		if err := b.rdb.SRem(ctx, key, gone...).Err(); err != nil {
			return b.failure(ctx, "remove dependents", err)
		}
	}
}

// release lets a waiting job go on, if all that it waits for has ended.
func (b *Broker) release(ctx context.Context, tenant string, r *record) error {
	_, err := b.change(ctx, tenant, r.id, func(r *record) (*move, error) {
		if r.run.state != api.JobWaiting {
			return nil, nil //nolint:nilnil // nothing is to be done
		}
		// A job that was purged ended long ago: had it failed, this one would not wait.
		states, err := b.statesOf(ctx, tenant, r.spec.DependsOn)
		if err != nil {
			return nil, err
		}
		failed := ""
		for i, state := range states {
			switch {
			case state == "" || state == api.JobCompleted:
			case state.Terminal():
				failed = r.spec.DependsOn[i]
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
func (b *Broker) released(r *record, failed string) *move {
	now := b.store.NowMS()
	switch {
	case failed == "" && r.spec.Hold, failed != "" && r.spec.OnDependencyFailure == api.DependencyHold:
		reason := ""
		if failed != "" {
			reason = "job " + failed + " did not complete"
		}
		return &move{record: r, to: r.run.to(api.JobHeld, now), field: fieldHoldReason, value: reason}
	case failed == "" || r.spec.OnDependencyFailure == api.DependencyContinue:
		return &move{record: r, to: b.ready(r)}
	}
	return (&move{record: r, to: r.run}).dead(api.DeadDependency, now)
}

// pendingMarkers reads the jobs whose end, or wait, is to be followed up.
func (b *Broker) pendingMarkers(ctx context.Context, q queueKey, limit int64) ([]string, error) {
	ids, err := b.rdb.ZRangeByScore(ctx, b.keys(q).After(), &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: limit}).Result()
	return ids, b.failure(ctx, "read markers", err)
}
