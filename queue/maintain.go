package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

const (
	// workPage bounds the jobs of one set that one visit moves.
	workPage = 500
	// loadPage bounds the jobs whose payloads are read at once.
	loadPage = 50
)

// Tend does the due work of one queue at now: it follows jobs that have ended, promotes and
// reclaims jobs, ends those that have expired, and purges old ones. It returns what it did; an
// error in one of these steps does not keep it from the others.
func (b *Broker) Tend(ctx context.Context, tenant, namespace, queue string, now int64) (Counts, error) {
	return b.tend(ctx, queueKey{tenant, namespace, queue}, now)
}

func (b *Broker) tend(ctx context.Context, q queueKey, now int64) (Counts, error) {
	c := Counts{Queues: 1}
	steps := []func(context.Context, queueKey, int64, *Counts) error{
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
// that are not in one of the given states of this queue, and counts them in c as repaired.
func (b *Broker) dueJobs(ctx context.Context, q queueKey, key string, upTo, now int64, c *Counts, states ...api.JobState) ([]*record, error) {
	ids, err := b.rdb.ZRangeByScore(ctx, key, &redis.ZRangeBy{
		Min: strconv.FormatInt(b.floors.From(key, now), 10), Max: strconv.FormatInt(upTo, 10), Count: workPage,
	}).Result()
	if err != nil {
		return nil, b.failure(ctx, "read a queue's jobs", err)
	}
	found := make([]*record, 0, len(ids))
	for part := range slices.Chunk(ids, loadPage) {
		more, err := b.load(ctx, q.tenant, part)
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			if r != nil { // maintenance does not need the payloads, which may be large
				r.spec.Payload = nil
			}
		}
		found = append(found, more...)
	}
	out, strays := partition(q, ids, found, states...)
	dropped, err := b.drop(ctx, q, key, strays)
	if err != nil {
		return nil, err
	}
	c.Repaired += dropped
	if len(ids) < workPage {
		b.floors.Consumed(key, upTo, now)
	}
	return out, nil
}

// partition separates the members of one of q's sets from its strays: jobs that are not in one
// of the given states of q.
func partition(q queueKey, ids []string, found []*record, states ...api.JobState) (members, strays []*record) {
	for i, r := range found {
		switch {
		case r == nil:
			strays = append(strays, &record{id: ids[i]})
		case r.key(q.tenant) != q || !oneOf(r.run.state, states):
			strays = append(strays, r)
		default:
			members = append(members, r)
		}
	}
	return members, strays
}

// drop removes the strays from a set that have not changed since they were read. It returns
// how many it removed.
func (b *Broker) drop(ctx context.Context, q queueKey, key string, strays []*record) (int, error) {
	dropped, err := b.dropEach(ctx, q, key, strays)
	return len(dropped), err
}

// dropEach is like drop, and returns the ids of the jobs whose entries it removed.
func (b *Broker) dropEach(ctx context.Context, q queueKey, key string, strays []*record) ([]string, error) {
	if len(strays) == 0 {
		return nil, nil
	}
	tenant := b.store.JobKeys(q.tenant)
	keys, args := []string{key}, []any{len(strays)}
	for _, r := range strays {
		keys, args = append(keys, tenant.Run(r.id)), append(args, r.id, r.text)
	}
	reply, err := b.store.Script(ctx, storage.ScriptJobDrop, keys, args...)
	return texts(reply), err
}

// dropFrom is dropEach for strays of several sets, which step names.
func (b *Broker) dropFrom(ctx context.Context, q queueKey, step []position, strays []*record) (dropped []string, err error) {
	sets := make(map[string]string, len(step))
	for _, p := range step {
		sets[p.id] = p.set
	}
	in := map[string][]*record{}
	for _, r := range strays {
		in[sets[r.id]] = append(in[sets[r.id]], r)
	}
	for set, strays := range in {
		some, err := b.dropEach(ctx, q, set, strays)
		dropped = append(dropped, some...)
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

func oneOf(s api.JobState, states []api.JobState) bool {
	for _, state := range states {
		if s == state {
			return true
		}
	}
	return len(states) == 0
}

// promote makes scheduled and retrying jobs pending whose time has come.
func (b *Broker) promote(ctx context.Context, q queueKey, now int64, c *Counts) error {
	for _, state := range []api.JobState{api.JobScheduled, api.JobRetrying} {
		found, err := b.dueJobs(ctx, q, b.keys(q).Set(string(state)), now, now, c, state)
		if err != nil {
			return err
		}
		var moves []*move
		for _, r := range found {
			if r.run.at <= now {
				moves = append(moves, &move{record: r, to: r.run.to(api.JobPending, now)})
			}
		}
		if err := b.moveAll(ctx, q, moves); err != nil {
			return err
		}
		c.Promoted += countMoved(moves)
	}
	return nil
}

func countMoved(moves []*move) (n int) {
	for _, m := range moves {
		if m.outcome == moved {
			n++
		}
	}
	return n
}

// reclaim returns jobs to the queue whose leases have expired: their workers died or hang. A job
// without another attempt is dead.
func (b *Broker) reclaim(ctx context.Context, q queueKey, now int64, c *Counts) error {
	key := b.keys(q).Set(string(api.JobActive))
	found, err := b.dueJobs(ctx, q, key, now, now, c, api.JobActive)
	if err != nil {
		return err
	}
	var moves []*move
	crashed := 0
	for _, r := range found {
		if r.run.at > now { // a heartbeat was interrupted before its second write
			if err := b.rdb.ZAddXX(ctx, key, redis.Z{Score: float64(r.run.at), Member: r.id}).Err(); err != nil {
				return b.failure(ctx, "mend a lease", err)
			}
			c.Repaired++
			continue
		}
		m := &move{record: r, to: r.run.to(api.JobPending, now)}
		m.failure, err = failureRecord(r.run.epoch, api.JobError{
			Attempt: r.run.attempt, Error: "the lease of worker " + r.run.worker + " ran out", AtMS: now,
		})
		if err != nil {
			return err
		}
		if r.run.attempt >= r.spec.WithDefaults().MaxAttempts {
			m = m.dead(api.DeadCrashed, now)
			crashed++
		}
		moves = append(moves, m)
	}
	if err := b.moveAll(ctx, q, moves); err != nil {
		return err
	}
	c.Reclaimed += countMoved(moves)
	c.Crashed += crashed
	return nil
}

// expire ends jobs whose expiry has passed. A running job may finish.
func (b *Broker) expire(ctx context.Context, q queueKey, now int64, c *Counts) error {
	key := b.keys(q).Expiry()
	found, err := b.dueJobs(ctx, q, key, now, now, c,
		api.JobPending, api.JobScheduled, api.JobRetrying, api.JobWaiting, api.JobHeld, api.JobActive)
	if err != nil {
		return err
	}
	var moves []*move
	var gone []any
	for _, r := range found {
		switch {
		case r.spec.ExpireAtMS == 0 || r.spec.ExpireAtMS > now:
			gone = append(gone, r.id) // it was retried, which cleared its expiry
		case r.run.state == api.JobActive:
			// Look again when its lease ends. A failed attempt ends it; a returned job expires then.
			if err := b.rdb.ZAddXX(ctx, key, redis.Z{Score: float64(r.run.at), Member: r.id}).Err(); err != nil {
				return b.failure(ctx, "put off an expiry", err)
			}
		default:
			moves = append(moves, (&move{record: r, to: r.run}).dead(api.DeadExpired, now))
			gone = append(gone, r.id)
		}
	}
	if err := b.moveAll(ctx, q, moves); err != nil {
		return err
	}
	for _, m := range moves {
		if m.outcome != moved && m.outcome != missing {
			gone = without(gone, m.record.id) // it changed meanwhile; the next round looks again
		}
	}
	c.Expired += countMoved(moves)
	if len(gone) == 0 {
		return nil
	}
	return b.failure(ctx, "drop expiries", b.rdb.ZRem(ctx, key, gone...).Err())
}

func without(list []any, v any) []any {
	var out []any
	for _, x := range list {
		if x != v {
			out = append(out, x)
		}
	}
	return out
}

// expireClaimed ends a job that a fetch claimed after its expiry.
func (b *Broker) expireClaimed(ctx context.Context, tenant, id string) error {
	_, err := b.change(ctx, tenant, id, func(r *record) (*move, error) {
		if r.run.state != api.JobActive {
			return nil, nil //nolint:nilnil // documented by change: there is nothing to write
		}
		r.run.attempt-- // the claim counted an attempt that did not run
		return (&move{record: r, to: r.run}).dead(api.DeadExpired, b.store.NowMS()), nil
	})
	return err
}

// followMarked does what follows the ends of jobs, where the process that ended them did not.
func (b *Broker) followMarked(ctx context.Context, q queueKey, _ int64, c *Counts) error {
	ids, err := b.pendingMarkers(ctx, q, workPage)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if err := b.followOne(ctx, q, id); err != nil {
			errs = append(errs, err)
			continue
		}
		c.Followed++
	}
	return errors.Join(errs...)
}

// purgeEnded deletes jobs that ended longer ago than the retention.
func (b *Broker) purgeEnded(ctx context.Context, q queueKey, now int64, c *Counts) error {
	for _, state := range endedStates {
		found, err := b.dueJobs(ctx, q, b.keys(q).Set(string(state)), now-b.keepMS, now, c, state)
		if err != nil {
			return err
		}
		n, err := b.purge(ctx, q, state, found)
		if err != nil {
			return err
		}
		c.Purged += n
	}
	return nil
}

var endedStates = []api.JobState{api.JobCompleted, api.JobDead, api.JobCancelled}

// nextDue returns the moment at which something is due in q next, 0 for never.
func (b *Broker) nextDue(ctx context.Context, q queueKey, now int64) (int64, error) {
	k := b.keys(q)
	type head struct {
		key   string
		delay int64
		cmd   *redis.ZSliceCmd
	}
	heads := []*head{{key: k.After()}, {key: k.Expiry()}}
	for _, state := range []api.JobState{api.JobScheduled, api.JobRetrying, api.JobActive} {
		heads = append(heads, &head{key: k.Set(string(state))})
	}
	for _, state := range endedStates {
		heads = append(heads, &head{key: k.Set(string(state)), delay: b.keepMS})
	}
	pipe := b.rdb.Pipeline()
	for _, h := range heads {
		h.cmd = b.dueIn(ctx, pipe, h.key, b.floors.From(h.key, now), 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, b.failure(ctx, "read a queue's heads", err)
	}
	next := int64(0)
	for _, h := range heads {
		for _, z := range h.cmd.Val() {
			if at := int64(z.Score) + h.delay; next == 0 || at < next {
				next = at
			}
		}
	}
	if next > 0 {
		next = max(next, now+duework.RestMS)
	}
	return next, nil
}
