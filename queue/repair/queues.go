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
	// queuePage is how many queues of a tenant one round trip checks.
	queuePage = 100
	// queueReads is how many commands the check of a queue without work takes.
	queueReads = 2
)

// queueList is the position of a pass over the queues of a tenant.
type queueList struct {
	tenant string
	begun  bool
	cursor uint64
	names  []string // read, but not yet checked
}

// queueSuspect is a queue in which one kind of mark seems to be missing.
type queueSuspect struct {
	queue jobstore.Queue
	kind  string
}

// Queues checks the next queues of a tenant: whether each is marked as due and ready when it has
// to be, and whether its sets hold only jobs of their state. One call takes about reads commands
// and continues where the last call for the tenant stopped, until End. The pass also ends if
// the tenant's queues cannot be read. now is a Unix time in milliseconds.
func (r *Repairer) Queues(ctx context.Context, tenant string, now int64, reads int) (findings Findings, err error) {
	if r.list.tenant != tenant {
		r.list = queueList{tenant: tenant}
	}
	errs := []error{r.queuesAgain(ctx, now, &findings)}
	if storage.Fatal(ctx, errs[0]) {
		return findings, errs[0]
	}
	if len(r.list.names) == 0 && (!r.list.begun || r.list.cursor > 0) {
		if err := r.listOn(ctx, &findings); err != nil {
			findings.End = true
			return findings, err
		}
	}
	page := r.list.names[:min(len(r.list.names), max(1, min(queuePage, (reads-findings.Reads)/queueReads)))]
	marks, err := r.marks(ctx, tenant, page, &findings)
	if err != nil {
		r.list, findings.End = queueList{}, true
		return findings, err
	}
	for _, m := range marks {
		r.list.names = r.list.names[1:]
		if m.sound(now, r.jobs.RetentionMS(m.queue.Tenant)) {
			continue
		}
		err := r.queue(ctx, m.queue, m.due, now, &findings)
		if storage.Fatal(ctx, err) {
			return findings, err
		}
		errs = append(errs, err)
		if findings.Reads >= reads {
			break
		}
	}
	findings.End = len(r.list.names) == 0 && r.list.cursor == 0
	if findings.End {
		r.list = queueList{}
	}
	return findings, errors.Join(errs...)
}

// listOn reads the next names of the tenant's list of queues.
func (r *Repairer) listOn(ctx context.Context, findings *Findings) error {
	l := &r.list
	names, cursor, err := r.rdb.SScan(ctx, r.store.JobKeys(l.tenant).Queues(), l.cursor, "", queuePage).Result()
	findings.Reads++
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

// queuesAgain checks the queues again that have been suspicious for repairGraceMS, of any
// tenant, so that a repair does not wait for the next pass.
func (r *Repairer) queuesAgain(ctx context.Context, now int64, findings *Findings) error {
	var errs []error
	for _, s := range r.queues.overdue(now, repairGraceMS) {
		marks, err := r.marks(ctx, s.queue.Tenant, []string{s.queue.Path()}, findings)
		if err == nil && len(marks) == 1 {
			err = r.queue(ctx, s.queue, marks[0].due, now, findings)
		}
		if storage.Fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
		r.queues.Clear(s)
	}
	return errors.Join(errs...)
}

// queueMark is the part of a queue's state that decides whether it needs a close check.
type queueMark struct {
	queue jobstore.Queue
	due   int64 // its score in the due set, 0 if it is not in it
	live  bool  // it has jobs that have not ended, or markers of consequences
	any   bool  // it has jobs or a score in the due set
}

// sound reports whether the queue needs no close check: it has no jobs, or only ended ones that
// are due to be purged in time. keepMS is the retention of the tenant; a queue with a longer one
// is checked closely.
func (m *queueMark) sound(now, keepMS int64) bool {
	return !m.any || !m.live && m.due > 0 && m.due <= now+keepMS
}

// marks reads the marks of a tenant's queues in two round trips: their scores in the due set,
// and whether any of their sets exists. An empty set does not exist, so one EXISTS for a queue
// suffices. Names that are no queue's are left out.
func (r *Repairer) marks(ctx context.Context, tenant string, names []string, findings *Findings) (out []*queueMark, err error) {
	pipe := r.rdb.Pipeline()
	due := make([]*redis.FloatCmd, 0, len(names))
	for _, name := range names {
		if q, ok := jobstore.ParseQueue(tenant + "/" + name); ok {
			out = append(out, &queueMark{queue: q})
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
	findings.Reads += queueReads * len(out)
	return out, nil
}

// queue checks one queue closely: its mark in the due set, in the ready set if it is an fn
// queue, and its sets. due is its score in the due set, 0 for none.
func (r *Repairer) queue(ctx context.Context, q jobstore.Queue, due, now int64, findings *Findings) error {
	next, purge, err := r.jobs.NextDue(ctx, q, now)
	findings.Reads += 5 + len(jobstore.EndedStates)
	if err != nil {
		return err
	}
	if err := r.dueMark(ctx, q, due, next, purge, now, findings); err != nil {
		return err
	}
	if jobstore.IsFunctionQueue(q.Name) {
		if err := r.readyMark(ctx, q, now, findings); err != nil {
			return err
		}
	}
	return r.strays(ctx, q, findings)
}

// dueMark makes a queue due at next, if it is not in the due set or more than repairGraceMS too
// late. A replica that maintains the queue at present marks it itself when it finishes, which
// is within the grace. The correction compares the score with the one that was read, so that a
// mark that was set meanwhile stays. It is no repair if it is a purge that is marked too late:
// the retention was lowered since.
func (r *Repairer) dueMark(ctx context.Context, q jobstore.Queue, due, next int64, purge bool, now int64, findings *Findings) error {
	s := queueSuspect{q, KindDue}
	if next == 0 || due > 0 && due <= next+repairGraceMS {
		r.queues.Clear(s)
		return nil
	}
	if !r.queues.Confirmed(s, "", now, repairGraceMS) {
		findings.Busy = true
		return nil
	}
	r.queues.Clear(s)
	key, member := storage.KeyDue(storage.DueShard(q.Member())), q.Member()
	findings.Reads++
	var made bool
	var err error
	if due > 0 {
		made, err = r.jobs.SettleDue(ctx, storage.DueMember{Key: key, Member: member, Score: due}, next)
	} else {
		made, err = added(ctx, r.rdb.ZAddNX(ctx, key, redis.Z{Score: float64(next), Member: member}))
	}
	if made {
		r.owner.DueAt(next)
	}
	if made && (due == 0 || !purge) {
		findings.addRepair(KindDue, q, "", fmt.Sprintf("work was due at %d, but the queue was marked as due at %d", next, due))
	}
	return err
}

// readyMark adds an fn queue to the ready set that has jobs, may start them, and is not in it.
func (r *Repairer) readyMark(ctx context.Context, q jobstore.Queue, now int64, findings *Findings) error {
	k, s := r.jobs.Keys(q), queueSuspect{q, KindReady}
	key := storage.KeyReady(storage.DueShard(q.Member()))
	pipe := r.rdb.Pipeline()
	ready, config := pipe.ZScore(ctx, key, q.Member()), pipe.HMGet(ctx, k.Config(), jobstore.ConfigFields...)
	pending, active := r.jobs.Depth(ctx, pipe, q, api.JobPending), pipe.ZCard(ctx, k.Set(string(api.JobActive)))
	findings.Reads += pipe.Len()
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
		findings.Busy = true
		return nil
	}
	r.queues.Clear(s)
	cmd := r.rdb.ZAddNX(ctx, key, redis.Z{Score: float64(now), Member: q.Member()})
	findings.Reads++
	made, err := added(ctx, cmd)
	if made {
		findings.addRepair(KindReady, q, "", fmt.Sprintf("%d jobs were pending, but the queue was not marked as ready", pending()))
		r.owner.Wake(q)
	}
	return err
}
