package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/consent"
	"github.com/codesous/sous/queue/internal/jobstore"
)

const (
	// workPage bounds the jobs of one set that one visit moves, and thus the length of a script.
	workPage = 500
	// workBytes bounds the bytes of these jobs, payloads excepted, with which a visit takes no
	// more of them.
	workBytes = 8 << 20
)

// Tend does the work of one queue that is due at now, a Unix time in milliseconds: it handles
// the consequences of jobs that have ended, promotes and reclaims jobs, ends those that have
// expired, and purges old ones. It returns what it did. An error in one of these steps does
// not stop the others.
//
//	step          reads the set         members with a score of at most
//	followMarked  after                 any
//	promote       scheduled, retrying   now
//	reclaim       active                now
//	expire        expiry                now
//	purgeEnded    ended states          now - retention
//
// Each step handles at most workPage members of each set; the rest remains due. Consequences
// come before the purge, which deletes the records that they need. Concurrent calls, also of
// other replicas, are safe: each change compares the run of its job.
func (b *Broker) Tend(ctx context.Context, tenant, namespace, queue string, now int64) (Counts, error) {
	return b.tend(ctx, jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}, now)
}

func (b *Broker) tend(ctx context.Context, q jobstore.Queue, now int64) (Counts, error) {
	c := Counts{Queues: 1}
	steps := []func(context.Context, jobstore.Queue, int64, *Counts) error{
		b.followMarked, b.promote, b.reclaim, b.expire, b.purgeEnded,
	}
	var errs []error
	for _, step := range steps {
		errs = append(errs, step(ctx, q, now, &c))
	}
	b.metrics.tended(c)
	return c, errors.Join(errs...)
}

// dueJobs reads the jobs of a set whose score is at most upTo. It drops the entries of jobs
// that are not in one of the given states of this queue, and counts them in c as repaired. It
// remembers that the set has nothing left below upTo, if this page was the last: the caller
// must handle all jobs that it returns. Those that remain are found when the set is read
// from its start again, see floors.Floors.
func (b *Broker) dueJobs(ctx context.Context, q jobstore.Queue, key string, upTo, now int64, c *Counts, states ...api.JobState) ([]*jobstore.Record, error) {
	ids, err := b.rdb.ZRangeByScore(ctx, key, &redis.ZRangeBy{
		Min: strconv.FormatInt(b.jobs.Floors.From(key, now), 10), Max: strconv.FormatInt(upTo, 10), Count: workPage,
	}).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read a queue's jobs", err)
	}
	whole, kept := len(ids) < workPage, 0
	found := make([]*jobstore.Record, 0, len(ids))
	for part, err := range b.jobs.Parts(ctx, q.Tenant, ids) {
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
		for _, r := range part {
			if r != nil { // maintenance does not need the payloads, which may be large
				kept += r.Size - len(r.Spec.Payload)
				r.Spec.Payload = nil
			}
		}
		if kept >= workBytes {
			whole = whole && len(found) == len(ids)
			break
		}
	}
	out, strays := jobstore.Partition(q, ids[:len(found)], found, states...)
	dropped, err := b.jobs.Drop(ctx, q, key, strays)
	if err != nil {
		return nil, err
	}
	c.Repaired += dropped
	if whole {
		b.jobs.Floors.Consumed(key, upTo, now)
	}
	return out, nil
}

// promote makes scheduled and retrying jobs pending when their time has come.
func (b *Broker) promote(ctx context.Context, q jobstore.Queue, now int64, c *Counts) error {
	for _, state := range []api.JobState{api.JobScheduled, api.JobRetrying} {
		found, err := b.dueJobs(ctx, q, b.jobs.Keys(q).Set(string(state)), now, now, c, state)
		if err != nil {
			return err
		}
		var moves []*jobstore.Move
		for _, r := range found {
			if r.Run.At <= now {
				moves = append(moves, &jobstore.Move{Record: r, To: r.Run.To(api.JobPending, now)})
			}
		}
		if err := b.moveAll(ctx, q, moves); err != nil {
			return err
		}
		c.Promoted += jobstore.CountMoved(moves)
	}
	return nil
}

// reclaim returns jobs to the queue whose leases have expired, because their workers died or
// hang. A job without another attempt is dead. The attempt counts, and the epoch stays until
// the next claim, which fences the old worker off:
//
//	active 1 3 39000 - w1    becomes at 39500   pending 1 3 39500 - w1
func (b *Broker) reclaim(ctx context.Context, q jobstore.Queue, now int64, c *Counts) error {
	key := b.jobs.Keys(q).Set(string(api.JobActive))
	found, err := b.dueJobs(ctx, q, key, now, now, c, api.JobActive)
	if err != nil {
		return err
	}
	var moves []*jobstore.Move
	for _, r := range found {
		if r.Run.At > now { // a heartbeat that shortens the lease was interrupted before its second write
			if err := b.rdb.ZAddXX(ctx, key, redis.Z{Score: float64(r.Run.At), Member: r.ID}).Err(); err != nil {
				return jobstore.Failure(ctx, "mend a lease", err)
			}
			c.Repaired++
			continue
		}
		if account.TimedOut(r, now) {
			if err := b.timeOut(ctx, q, r, c); err != nil {
				return err
			}
			continue
		}
		m := &jobstore.Move{Record: r, To: r.Run.To(api.JobPending, now), Lost: true}
		m.Failure = &api.JobError{Attempt: r.Run.Attempt, Error: "the lease of worker " + r.Run.Worker + " ran out", AtMS: now}
		if r.Run.Attempt >= r.Spec.WithDefaults().MaxAttempts {
			m = m.Dead(api.DeadCrashed, now)
		}
		moves = append(moves, m)
	}
	if err := b.moveAll(ctx, q, moves); err != nil {
		return err
	}
	c.Reclaimed += jobstore.CountMoved(moves)
	for _, m := range moves {
		if m.Outcome == jobstore.Moved && m.To.State == api.JobDead {
			c.Crashed++
		}
	}
	return nil
}

// expire ends jobs whose expiry has passed, and resumes runs whose wait for a decision has ended. A
// running job may finish: its entry moves to the end of its lease, where it is looked at again. If it
// fails before, Fail ends it.
func (b *Broker) expire(ctx context.Context, q jobstore.Queue, now int64, c *Counts) error {
	key := b.jobs.Keys(q).Expiry()
	found, err := b.dueJobs(ctx, q, key, now, now, c,
		api.JobPending, api.JobScheduled, api.JobRetrying, api.JobWaiting, api.JobHeld, api.JobActive)
	if err != nil {
		return err
	}
	var moves []*jobstore.Move
	var gone []any
	later := map[string]int64{} // by id, the expiry of those that have one later
	for _, r := range found {
		if at := r.ExpiresAfter(); at > now {
			later[r.ID] = at
		}
		lives := r.Spec.ExpireAtMS == 0 || r.Spec.ExpireAtMS > now
		switch {
		case lives && consent.Ends(r, now):
			later[r.ID], err = b.endApproval(ctx, q, r, now)
			if err != nil {
				return err
			}
			gone = append(gone, r.ID)
		case lives:
			gone = append(gone, r.ID) // it was retried, which cleared its expiry, or no longer awaits a decision
		case r.Run.State == api.JobActive:
			// Look again when its lease ends. A failed attempt ends it; a returned job expires then.
			if err := b.rdb.ZAddXX(ctx, key, redis.Z{Score: float64(r.Run.At), Member: r.ID}).Err(); err != nil {
				return jobstore.Failure(ctx, "put off an expiry", err)
			}
		default:
			moves = append(moves, (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadExpired, now))
			gone = append(gone, r.ID)
		}
	}
	if err := b.moveAll(ctx, q, moves); err != nil {
		return err
	}
	for _, m := range moves {
		if m.Outcome == jobstore.Moved && m.To.State == api.JobDead {
			c.Expired++
		}
		if m.Outcome != jobstore.Moved && m.Outcome != jobstore.Missing {
			// It changed meanwhile; the next round looks again.
			gone = slices.DeleteFunc(gone, func(id any) bool { return id == m.Record.ID })
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return b.jobs.DropExpiries(ctx, q, gone, later)
}

// endApproval decides the approval of the held job found by its expiry, and returns when the job expires
// then, 0 for never. It reads the job again, with its payload.
func (b *Broker) endApproval(ctx context.Context, q jobstore.Queue, found *jobstore.Record, now int64) (later int64, err error) {
	r, err := b.Change(ctx, q.Tenant, found.ID, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Stored != found.Stored {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		return consent.Ended(r, now)
	})
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return r.ExpiresAfter(), nil
}

// expireClaimed ends a job that a fetch claimed after its expiry: claims do not read the set of
// expiries, and maintenance may not have reached the job yet. The worker does not see it.
func (b *Broker) expireClaimed(ctx context.Context, tenant, id string) error {
	_, err := b.Change(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if r.Run.State != api.JobActive {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		r.Run.Attempt-- // the claim counted an attempt that did not run
		return (&jobstore.Move{Record: r, To: r.Run}).Dead(api.DeadExpired, b.store.NowMS()), nil
	})
	return err
}

// followMarked handles the consequences of jobs' ends that the process that ended them did
// not handle.
func (b *Broker) followMarked(ctx context.Context, q jobstore.Queue, _ int64, c *Counts) error {
	ids, err := b.follower.Markers(ctx, q, workPage)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if err := b.follower.One(ctx, q, id); err != nil {
			errs = append(errs, err)
			continue
		}
		c.Followed++
	}
	return errors.Join(errs...)
}

// purgeEnded deletes jobs that ended longer ago than the retention, and were followed.
func (b *Broker) purgeEnded(ctx context.Context, q jobstore.Queue, now int64, c *Counts) error {
	keep, err := b.jobs.KeepMS(ctx, q)
	if err != nil {
		return err
	}
	for _, state := range jobstore.EndedStates {
		found, err := b.dueJobs(ctx, q, b.jobs.Keys(q).Set(string(state)), now-keep, now, c, state)
		if err != nil {
			return err
		}
		found, err = b.jobs.Followed(ctx, q, found)
		if err != nil {
			return err
		}
		n, err := b.jobs.Purge(ctx, q, state, found)
		if err != nil {
			return err
		}
		c.Purged += n
	}
	return nil
}
