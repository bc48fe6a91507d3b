package runs

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Park settles the lease l: its run sleeps as p says, or is pending if what it waits for has
// arrived. held is false if the lease was lost. Repeating the call succeeds. Errors:
// CodeStoreUnavailable, CodeStoreConflict.
//
// The entries by which the run is found come before the change of its job: one of a run that does
// not wait is dropped when it is read.
func (r *Runs) Park(ctx context.Context, l step.Lease, p *step.Park) (held bool, err error) {
	known, err := r.jobs.Find(ctx, l.Tenant, l.ID)
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := r.index(ctx, l, known, p); err != nil {
		return false, err
	}
	_, err = r.broker.Change(ctx, l.Tenant, l.ID, func(rec *jobstore.Record) (*jobstore.Move, error) {
		active, asleep := rec.Holds(l.Epoch, jobstore.SettledContinue)
		_, awaits := rec.Holds(l.Epoch, jobstore.SettledApproval)
		held = active || asleep || awaits
		if !active {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		arrived := false
		if len(p.Events) > 0 {
			// After the read of the run: an event that comes later changes the run.
			fields, err := r.arrivals(ctx, l.Tenant, l.ID, p.Taken)
			if err != nil {
				return nil, err
			}
			arrived = slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(p.Events, nameOf(f)) })
		}
		return rec.Parked(p, arrived, r.store.NowMS()), nil
	})
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return false, nil
	}
	return held, err
}

// index adds the entries by which a run that is going to sleep is found: by its events, and, while
// it is held, by the end of its wait.
func (r *Runs) index(ctx context.Context, l step.Lease, rec *jobstore.Record, p *step.Park) error {
	if len(p.Events) == 0 && !p.Approval {
		return nil
	}
	pipe := r.rdb.Pipeline()
	for _, name := range p.Events {
		waiters := r.store.JobKeys(l.Tenant).Waiters(l.Namespace, name)
		pipe.ZAdd(ctx, waiters, redis.Z{Score: float64(p.DueMS), Member: l.ID})
		// Names of events may be used once only: the key ends after the longest wait.
		pipe.PExpireAt(ctx, waiters, time.UnixMilli(r.store.NowMS()+step.MaxWaitMS+24*time.Hour.Milliseconds()))
	}
	if p.Approval {
		due, q := p.DueMS, rec.Queue(l.Tenant)
		if at := rec.Spec.ExpireAtMS; at > 0 {
			due = min(due, max(at, r.store.NowMS()))
		}
		pipe.ZAdd(ctx, r.jobs.Keys(q).Expiry(), redis.Z{Score: float64(due), Member: l.ID})
		r.jobs.MarkDue(ctx, pipe, q, due)
	}
	_, err := pipe.Exec(ctx)
	return jobstore.Failure(ctx, "add the waits of a run", err)
}
