package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

const (
	// queuePage is how many queues of a tenant are looked at in one round trip.
	queuePage = 100
	// queueReads is what a look at a queue without work costs.
	queueReads = 2
)

// queueList is a tenant's list of queues on the way through it.
type queueList struct {
	tenant string
	begun  bool
	cursor uint64
	names  []string // read, and still to be looked at
}

// queueSuspect is a queue in which one kind of mark seems to be missing.
type queueSuspect struct {
	queue queueKey
	kind  string
}

// liveStates are those whose sets no purge empties.
var liveStates = []api.JobState{api.JobPending, api.JobScheduled, api.JobRetrying, api.JobActive, api.JobHeld, api.JobWaiting}

// Queues looks at the next queues of a tenant, for about so many reads: whether what
// is due in each is marked, and whether its sets hold what they say. It goes on where
// the last call for the tenant stopped, until End, which a tenant whose queues cannot
// be read is at as well.
func (r *Repairer) Queues(ctx context.Context, tenant string, now int64, reads int) (look Look, err error) {
	if r.list.tenant != tenant {
		r.list = queueList{tenant: tenant}
	}
	errs := []error{r.queuesAgain(ctx, now, &look)}
	if fatal(ctx, errs[0]) {
		return look, errs[0]
	}
	if len(r.list.names) == 0 && (!r.list.begun || r.list.cursor > 0) {
		if err := r.listOn(ctx, &look); err != nil {
			look.End = true
			return look, err
		}
	}
	page := r.list.names[:min(len(r.list.names), max(1, min(queuePage, (reads-look.Reads)/queueReads)))]
	marks, err := r.marks(ctx, tenant, page, &look)
	if err != nil {
		r.list, look.End = queueList{}, true
		return look, err
	}
	for _, m := range marks {
		r.list.names = r.list.names[1:]
		if m.sound(now, r.b.keepMS) {
			continue
		}
		err := r.queue(ctx, m.queue, m.due, now, &look)
		if fatal(ctx, err) {
			return look, err
		}
		if errs = append(errs, err); look.Reads >= reads {
			break
		}
	}
	if look.End = len(r.list.names) == 0 && r.list.cursor == 0; look.End {
		r.list = queueList{}
	}
	return look, errors.Join(errs...)
}

// listOn reads on in the list of a tenant's queues.
func (r *Repairer) listOn(ctx context.Context, look *Look) error {
	l := &r.list
	names, cursor, err := r.b.rdb.SScan(ctx, r.b.store.JobKeys(l.tenant).Queues(), l.cursor, "", queuePage).Result()
	look.Reads++
	if err != nil {
		r.list = queueList{}
		return r.b.failure(ctx, "list queues", err)
	}
	l.begun, l.cursor = true, cursor
	for _, name := range names {
		if _, ok := parseQueue(l.tenant + "/" + name); ok {
			l.names = append(l.names, name)
		}
	}
	return nil
}

// queuesAgain looks once more at queues in which something seemed to be missing.
func (r *Repairer) queuesAgain(ctx context.Context, now int64, look *Look) error {
	var errs []error
	for _, s := range r.queues.due(now, repairGraceMS) {
		marks, err := r.marks(ctx, s.queue.tenant, []string{s.queue.name()}, look)
		if err == nil && len(marks) == 1 {
			err = r.queue(ctx, s.queue, marks[0].due, now, look)
		}
		if fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
		r.queues.Clear(s)
	}
	return errors.Join(errs...)
}

// mark is what is known of a queue at a glance.
type mark struct {
	queue queueKey
	due   int64 // in the due set, 0 where it is not
	live  bool  // it has jobs that have not ended, or markers
	any   bool  // it has jobs
}

// sound says that nothing can be missing: a queue with work is looked at closely, one
// without only has jobs to purge in time.
func (m *mark) sound(now, keepMS int64) bool {
	return !m.any || !m.live && m.due > 0 && m.due <= now+keepMS
}

func (r *Repairer) marks(ctx context.Context, tenant string, names []string, look *Look) (out []*mark, err error) {
	b := r.b
	pipe := b.rdb.Pipeline()
	due := make([]*redis.FloatCmd, 0, len(names))
	for _, name := range names {
		if q, ok := parseQueue(tenant + "/" + name); ok {
			out = append(out, &mark{queue: q})
			due = append(due, pipe.ZScore(ctx, storage.KeyDue(storage.DueShard(q.member())), q.member()))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); b.failure(ctx, "read marks", err) != nil {
		return nil, b.failure(ctx, "read marks", err)
	}
	exist := make([]*redis.IntCmd, len(out))
	for i, m := range out {
		k := b.keys(m.queue)
		keys := []string{k.After(), k.Expiry()}
		for _, state := range liveStates {
			keys = append(keys, b.setsOf(m.queue, state)...)
		}
		if m.due = int64(due[i].Val()); m.due == 0 {
			for _, state := range endedStates {
				keys = append(keys, b.setsOf(m.queue, state)...)
			}
		}
		exist[i] = pipe.Exists(ctx, keys...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, b.failure(ctx, "look at queues", err)
	}
	for i, m := range out {
		m.live = exist[i].Val() > 0
		m.any = m.live || m.due > 0
	}
	look.Reads += queueReads * len(out)
	return out, nil
}

// queue looks closely at one queue; due is its mark.
func (r *Repairer) queue(ctx context.Context, q queueKey, due, now int64, look *Look) error {
	next, err := r.b.nextDue(ctx, q, now)
	look.Reads += 5 + len(endedStates)
	if err != nil {
		return err
	}
	if err := r.dueMark(ctx, q, due, next, now, look); err != nil {
		return err
	}
	if isFunctionQueue(q.queue) {
		if err := r.readyMark(ctx, q, now, look); err != nil {
			return err
		}
	}
	return r.strays(ctx, q, look)
}

// dueMark marks a queue whose next moment is not marked, or too late. One that is being
// looked after is marked at the end of that.
func (r *Repairer) dueMark(ctx context.Context, q queueKey, due, next, now int64, look *Look) error {
	s := queueSuspect{q, RepairDue}
	if next == 0 || due > 0 && due <= next+repairGraceMS {
		r.queues.Clear(s)
		return nil
	}
	if !r.queues.Ripe(s, "", now, repairGraceMS) {
		look.Busy = true
		return nil
	}
	r.queues.Clear(s)
	key, member := storage.KeyDue(storage.DueShard(q.member())), q.member()
	look.Reads++
	var made bool
	var err error
	if due > 0 {
		made, err = r.b.settleDue(ctx, storage.DueMember{Key: key, Member: member, Score: due}, next)
	} else {
		made, err = r.b.added(ctx, r.b.rdb.ZAddNX(ctx, key, redis.Z{Score: float64(next), Member: member}))
	}
	if made {
		look.mended(RepairDue, q, "", fmt.Sprintf("something is due at %d, and the mark is at %d", next, due))
		r.b.DueAt(next)
	}
	return err
}

// readyMark marks an fn queue that has jobs to begin, lets them, and is in no ready set.
func (r *Repairer) readyMark(ctx context.Context, q queueKey, now int64, look *Look) error {
	b, k, s := r.b, r.b.keys(q), queueSuspect{q, RepairReady}
	key := storage.KeyReady(storage.DueShard(q.member()))
	pipe := b.rdb.Pipeline()
	ready, config := pipe.ZScore(ctx, key, q.member()), pipe.HMGet(ctx, k.Config(), configFields...)
	pending, active := b.depth(ctx, pipe, q, api.JobPending), pipe.ZCard(ctx, k.Set(string(api.JobActive)))
	look.Reads += pipe.Len()
	if _, err := pipe.Exec(ctx); b.failure(ctx, "look at a queue", err) != nil {
		return b.failure(ctx, "look at a queue", err)
	}
	c := configOf(config.Val())
	full := c.MaxConcurrency > 0 && active.Val() >= c.MaxConcurrency
	if ready.Err() == nil || pending() == 0 || c.Paused || full {
		r.queues.Clear(s)
		return nil
	}
	if !r.queues.Ripe(s, "", now, repairGraceMS) {
		look.Busy = true
		return nil
	}
	r.queues.Clear(s)
	cmd := b.rdb.ZAddNX(ctx, key, redis.Z{Score: float64(now), Member: q.member()})
	look.Reads++
	made, err := b.added(ctx, cmd)
	if made {
		look.mended(RepairReady, q, "", fmt.Sprintf("%d jobs are pending, and no worker would have looked", pending()))
		b.wakes.wake(q)
	}
	return err
}
