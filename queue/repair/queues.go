package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
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
	queue jobstore.Queue
	kind  string
}

// Queues looks at the next queues of a tenant, for about so many reads: whether what
// is due in each is marked, and whether its sets hold what they say. It goes on where
// the last call for the tenant stopped, until End, which a tenant whose queues cannot
// be read is at as well.
func (r *Repairer) Queues(ctx context.Context, tenant string, now int64, reads int) (look Look, err error) {
	if r.list.tenant != tenant {
		r.list = queueList{tenant: tenant}
	}
	errs := []error{r.queuesAgain(ctx, now, &look)}
	if storage.Fatal(ctx, errs[0]) {
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
		if m.sound(now, r.jobs.RetentionMS) {
			continue
		}
		err := r.queue(ctx, m.queue, m.due, now, &look)
		if storage.Fatal(ctx, err) {
			return look, err
		}
		errs = append(errs, err)
		if look.Reads >= reads {
			break
		}
	}
	look.End = len(r.list.names) == 0 && r.list.cursor == 0
	if look.End {
		r.list = queueList{}
	}
	return look, errors.Join(errs...)
}

// listOn reads on in the list of a tenant's queues.
func (r *Repairer) listOn(ctx context.Context, look *Look) error {
	l := &r.list
	names, cursor, err := r.rdb.SScan(ctx, r.store.JobKeys(l.tenant).Queues(), l.cursor, "", queuePage).Result()
	look.Reads++
	if err != nil {
		r.list = queueList{}
		return jobstore.Failure(ctx, "list queues", err)
	}
	l.begun, l.cursor = true, cursor
	for _, name := range names {
		if _, ok := jobstore.ParseQueue(l.tenant + "/" + name); ok {
			l.names = append(l.names, name)
		}
	}
	return nil
}

// queuesAgain looks once more at queues in which something seemed to be missing.
func (r *Repairer) queuesAgain(ctx context.Context, now int64, look *Look) error {
	var errs []error
	for _, s := range r.queues.overdue(now, repairGraceMS) {
		marks, err := r.marks(ctx, s.queue.Tenant, []string{s.queue.Path()}, look)
		if err == nil && len(marks) == 1 {
			err = r.queue(ctx, s.queue, marks[0].due, now, look)
		}
		if storage.Fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
		r.queues.Clear(s)
	}
	return errors.Join(errs...)
}

// mark is what is known of a queue at a glance.
type mark struct {
	queue jobstore.Queue
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
	pipe := r.rdb.Pipeline()
	due := make([]*redis.FloatCmd, 0, len(names))
	for _, name := range names {
		if q, ok := jobstore.ParseQueue(tenant + "/" + name); ok {
			out = append(out, &mark{queue: q})
			due = append(due, pipe.ZScore(ctx, storage.KeyDue(storage.DueShard(q.Member())), q.Member()))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); jobstore.Failure(ctx, "read marks", err) != nil {
		return nil, jobstore.Failure(ctx, "read marks", err)
	}
	exist := make([]*redis.IntCmd, len(out))
	for i, m := range out {
		k := r.jobs.Keys(m.queue)
		keys := []string{k.After(), k.Expiry()}
		for _, state := range jobstore.LiveStates {
			keys = append(keys, r.jobs.Sets(m.queue, state)...)
		}
		m.due = int64(due[i].Val())
		if m.due == 0 {
			for _, state := range jobstore.EndedStates {
				keys = append(keys, r.jobs.Sets(m.queue, state)...)
			}
		}
		exist[i] = pipe.Exists(ctx, keys...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, jobstore.Failure(ctx, "look at queues", err)
	}
	for i, m := range out {
		m.live = exist[i].Val() > 0
		m.any = m.live || m.due > 0
	}
	look.Reads += queueReads * len(out)
	return out, nil
}

// queue looks closely at one queue; due is its mark.
func (r *Repairer) queue(ctx context.Context, q jobstore.Queue, due, now int64, look *Look) error {
	next, err := r.jobs.NextDue(ctx, q, now)
	look.Reads += 5 + len(jobstore.EndedStates)
	if err != nil {
		return err
	}
	if err := r.dueMark(ctx, q, due, next, now, look); err != nil {
		return err
	}
	if jobstore.IsFunctionQueue(q.Name) {
		if err := r.readyMark(ctx, q, now, look); err != nil {
			return err
		}
	}
	return r.strays(ctx, q, look)
}

// dueMark marks a queue whose next moment is not marked, or too late. One that is being
// looked after is marked at the end of that.
func (r *Repairer) dueMark(ctx context.Context, q jobstore.Queue, due, next, now int64, look *Look) error {
	s := queueSuspect{q, KindDue}
	if next == 0 || due > 0 && due <= next+repairGraceMS {
		r.queues.Clear(s)
		return nil
	}
	if !r.queues.Confirmed(s, "", now, repairGraceMS) {
		look.Busy = true
		return nil
	}
	r.queues.Clear(s)
	key, member := storage.KeyDue(storage.DueShard(q.Member())), q.Member()
	look.Reads++
	var made bool
	var err error
	if due > 0 {
		made, err = r.jobs.SettleDue(ctx, storage.DueMember{Key: key, Member: member, Score: due}, next)
	} else {
		made, err = added(ctx, r.rdb.ZAddNX(ctx, key, redis.Z{Score: float64(next), Member: member}))
	}
	if made {
		look.mended(KindDue, q, "", fmt.Sprintf("something is due at %d, and the mark is at %d", next, due))
		r.owner.DueAt(next)
	}
	return err
}

// readyMark marks an fn queue that has jobs to begin, lets them, and is in no ready set.
func (r *Repairer) readyMark(ctx context.Context, q jobstore.Queue, now int64, look *Look) error {
	k, s := r.jobs.Keys(q), queueSuspect{q, KindReady}
	key := storage.KeyReady(storage.DueShard(q.Member()))
	pipe := r.rdb.Pipeline()
	ready, config := pipe.ZScore(ctx, key, q.Member()), pipe.HMGet(ctx, k.Config(), jobstore.ConfigFields...)
	pending, active := r.jobs.Depth(ctx, pipe, q, api.JobPending), pipe.ZCard(ctx, k.Set(string(api.JobActive)))
	look.Reads += pipe.Len()
	if _, err := pipe.Exec(ctx); jobstore.Failure(ctx, "look at a queue", err) != nil {
		return jobstore.Failure(ctx, "look at a queue", err)
	}
	c := jobstore.ParseConfig(config.Val())
	full := c.MaxConcurrency > 0 && active.Val() >= c.MaxConcurrency
	if ready.Err() == nil || pending() == 0 || c.Paused || full {
		r.queues.Clear(s)
		return nil
	}
	if !r.queues.Confirmed(s, "", now, repairGraceMS) {
		look.Busy = true
		return nil
	}
	r.queues.Clear(s)
	cmd := r.rdb.ZAddNX(ctx, key, redis.Z{Score: float64(now), Member: q.Member()})
	look.Reads++
	made, err := added(ctx, cmd)
	if made {
		look.mended(KindReady, q, "", fmt.Sprintf("%d jobs are pending, and no worker would have looked", pending()))
		r.owner.Wake(q)
	}
	return err
}
