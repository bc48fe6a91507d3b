package followup

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// releasePage is how many dependents one step reads.
const releasePage = 200

// releaseDependents releases the jobs that waited for id, if id was the last, and returns those
// that ended by it. It removes a dependent from the set after it was checked, so that a crash
// leads to a second check. Each step reads the beginning of the set, which shrinks.
func (f *Follower) releaseDependents(ctx context.Context, tenant, id string) (ended endedJobs, err error) {
	ended = endedJobs{}
	key, rdb := f.Store.JobKeys(tenant).Dependents(id), f.Store.Client()
	for {
		ids, _, err := rdb.SScan(ctx, key, 0, "", releasePage).Result()
		if err != nil || len(ids) == 0 {
			return ended, jobstore.Failure(ctx, "read a job's dependents", err)
		}
		states, err := f.Jobs.States(ctx, tenant, ids)
		if err != nil {
			return ended, err
		}
		gone := make([]any, len(ids))
		for i, state := range states {
			gone[i] = ids[i]
			if state != api.JobWaiting {
				continue
			}
			more, err := f.release(ctx, tenant, ids[i])
			ended.add(more)
			if err != nil {
				return ended, err
			}
		}
		if err := rdb.SRem(ctx, key, gone...).Err(); err != nil {
			return ended, jobstore.Failure(ctx, "remove dependents", err)
		}
	}
}

// release moves a waiting job on if all jobs that it waits for have ended. ended is the job
// itself if the move ended it.
func (f *Follower) release(ctx context.Context, tenant, id string) (ended endedJobs, err error) {
	r, hasEnded, err := f.Change(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobWaiting {
			return nil, nil //nolint:nilnil // documented by Config.Change: there is nothing to write
		}
		// A purged job completed: had it failed, its end would have released r long ago.
		states, err := f.Jobs.States(ctx, tenant, r.Spec.DependsOn)
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
				return nil, nil //nolint:nilnil // documented by Config.Change: it keeps waiting
			}
		}
		return released(r, failed, f.Store.NowMS()), nil
	})
	switch {
	case api.ErrorCode(err) == api.CodeJobNotFound:
		return nil, nil
	case err != nil || !hasEnded:
		return nil, err
	}
	return endedJobs{r.Queue(tenant): {id}}, nil
}

// released returns the move of a job whose wait is over. failed is a job that did not
// complete, "" if all did. OnDependencyFailure decides if there is one: the job is held,
// continues as if failed had completed, or, by default, is dead with the reason
// api.DeadDependency. A job that continues is held if its options ask for that; otherwise it
// is pending or scheduled.
func released(r *jobstore.Record, failed string, now int64) *jobstore.Move {
	policy, reason := r.Spec.OnDependencyFailure, ""
	switch {
	case failed == "" || policy == api.DependencyContinue:
		if !r.Spec.Hold {
			return &jobstore.Move{Record: r, To: r.Ready(now)}
		}
	case policy == api.DependencyHold:
		reason = "job " + failed + " did not complete"
	default:
		return (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadDependency, now)
	}
	return &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, now), Field: jobstore.FieldHoldReason, Value: reason}
}
