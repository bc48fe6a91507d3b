package sweeper

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/floors"
	"github.com/codesous/sous/storage/schedules"
)

// The kinds of repairs of schedules, as metrics name them.
const (
	repairScheduleIndex  = "schedule_index"     // the index named a schedule that does not exist
	repairScheduleDue    = "schedule_due"       // a schedule was not due at its next tick, or its change was interrupted
	repairScheduleMark   = "schedule_in_flight" // a job was marked as in flight that has ended or does not exist
	repairScheduleTenant = "schedule_tenant"    // a tenant's schedules were in no due set, or due too late
)

// scheduleGraceMS is how long a record must look wrong before it is repaired: the end of a
// job, or a tick, may be in progress.
const scheduleGraceMS = 10_000

// scheduleReads is the cost of one schedule.
const scheduleReads = 4

// scheduleSuspect is a record of a schedule that looks wrong.
type scheduleSuspect struct {
	path storage.SchedulePath
	kind string
}

// scheduleVisitor looks for schedules whose records, due entries and marks of jobs in flight do
// not agree. A suspect is repaired when it has looked the same for scheduleGraceMS:
//
//	a schedule of the index has no record      its remains are deleted
//	state.rev is not the record's revision,    the ticker computes the next tick again
//	  or the due entry is not the next tick
//	a job in flight has ended or is missing    its mark is removed
//	the tenant is due later than its schedule  the tenant is marked
//
// It visits a tenant once, for the last of these, and each of its namespaces for the others.
type scheduleVisitor struct {
	s         *Sweeper
	ticker    *scheduler.Ticker
	schedules *schedules.Repository
	broker    *queue.Broker
	floors    floors.Floors
	suspects  repair.Suspects[scheduleSuspect]
	suspected bool // something looked wrong in this chunk

	at    storage.FunctionPath // the namespace that is visited
	names []string             // the rest of its schedules
}

// visit looks at a tenant as a whole, or at the schedules of a namespace.
func (v *scheduleVisitor) visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (c chunk, err error) {
	if at.Namespace == "" {
		return v.tenant(ctx, at.Tenant, now.UnixMilli(), total)
	}
	if v.at != at {
		v.at = at
		v.names, c.reads, err = v.schedules.AllNames(ctx, at.Tenant, at.Namespace)
		return v.ended(c), err
	}
	n := min(len(v.names), max(1, reads/scheduleReads))
	paths := make([]storage.SchedulePath, n)
	for i, name := range v.names[:n] {
		paths[i] = storage.SchedulePath{Tenant: at.Tenant, Namespace: at.Namespace, Name: name}
	}
	v.names = v.names[n:]
	v.suspected = false
	err = v.compare(ctx, paths, now.UnixMilli(), total)
	return v.ended(chunk{reads: scheduleReads * n, busy: v.suspected}), err
}

// ended sets whether c is the last chunk of the namespace.
func (v *scheduleVisitor) ended(c chunk) chunk {
	c.end = len(v.names) == 0
	if c.end {
		v.at = storage.FunctionPath{}
	}
	return c
}

// tenant compares the tenant's moment in the due sets with that of its next tick.
func (v *scheduleVisitor) tenant(ctx context.Context, tenant string, now int64, total *Counts) (chunk, error) {
	c := chunk{reads: 1, end: true}
	heads, err := v.schedules.Due(ctx, &v.floors, []string{tenant}, now, 1)
	if err != nil || len(heads[0]) == 0 {
		return c, err
	}
	c.reads++
	member := storage.DueSchedulePrefix + tenant
	score, err := v.s.store.Client().ZScore(ctx, storage.KeyDue(storage.DueShard(member)), member).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return c, storage.Failure(ctx, "read a due set", err)
	}
	at, suspect := heads[0][0].AtMS, scheduleSuspect{path: storage.SchedulePath{Tenant: tenant}, kind: repairScheduleTenant}
	// A replica that has claimed the tenant settles its next moment when the claim ends.
	if err == nil && int64(score) <= max(at, now+scheduler.ClaimMS) {
		v.suspects.Clear(suspect)
		return c, nil
	}
	c.busy = true
	if !v.overdue(suspect, "", now) {
		return c, nil
	}
	pipe := v.s.store.Client().Pipeline()
	storage.MarkDue(ctx, pipe, member, at)
	if _, err := pipe.Exec(ctx); err != nil {
		return c, storage.Failure(ctx, "mark a tenant", err)
	}
	v.broker.DueAt(at)
	v.repaired(total, suspect, "", "its schedules were in no due set, or due too late")
	return c, nil
}

// overdue reports whether a suspect has looked the same, as how says, for scheduleGraceMS. It
// forgets the suspect then.
func (v *scheduleVisitor) overdue(what scheduleSuspect, how string, now int64) bool {
	v.suspected = true
	if !v.suspects.Confirmed(what, how, now, scheduleGraceMS) {
		return false
	}
	v.suspects.Clear(what)
	return true
}

// compare compares schedules with their states, their due entries and their jobs. It reads them one
// after the other, so a tick in between looks like a fault; the grace sorts that out.
func (v *scheduleVisitor) compare(ctx context.Context, paths []storage.SchedulePath, now int64, total *Counts) error {
	loaded, err := v.schedules.LoadMany(ctx, paths)
	if err != nil {
		return err
	}
	entries, err := v.schedules.DueEntries(ctx, paths)
	if err != nil {
		return err
	}
	var errs []error
	for i := range loaded {
		s := &loaded[i]
		switch {
		case s.Err != nil:
			v.s.logUnreadable("schedule " + s.Path.Tenant + "/" + s.Path.Namespace + "/" + s.Path.Name)
			continue
		case s.Meta == nil:
			err = v.dangling(ctx, s, now, total)
		default:
			v.suspects.Clear(scheduleSuspect{s.Path, repairScheduleIndex})
			err = errors.Join(v.due(ctx, s, entries[i], now, total), v.marks(ctx, s, now, total))
		}
		if storage.Fatal(ctx, err) {
			return err
		}
		errs = append(errs, err) // the other schedules have their turn
	}
	return errors.Join(errs...)
}

// dangling removes the remaining keys of a schedule that does not exist: its creation or its
// deletion was interrupted.
func (v *scheduleVisitor) dangling(ctx context.Context, s *schedules.Loaded, now int64, total *Counts) error {
	suspect := scheduleSuspect{path: s.Path, kind: repairScheduleIndex}
	if !v.overdue(suspect, "", now) {
		return nil
	}
	err := v.schedules.Delete(ctx, s)
	switch {
	case api.ErrorCode(err) == api.CodeStoreConflict:
		return nil // it has been created meanwhile
	case err != nil:
		return err
	}
	v.repaired(total, suspect, "", "the index named a schedule that does not exist")
	return nil
}

// due lets the ticker repair a schedule whose due entry is not its next tick, or whose change
// was interrupted.
func (v *scheduleVisitor) due(ctx context.Context, s *schedules.Loaded, entry, now int64, total *Counts) error {
	suspect := scheduleSuspect{path: s.Path, kind: repairScheduleDue}
	if entry == s.State.NextTickMS && s.State.Rev == s.Meta.Revision {
		v.suspects.Clear(suspect)
		return nil
	}
	// A state of another turn is another suspect: the schedule has moved on since.
	if !v.overdue(suspect, strconv.FormatInt(s.State.Turn, 10), now) {
		return nil
	}
	if err := v.ticker.Mend(ctx, s.Path, now); err != nil {
		return err
	}
	v.repaired(total, suspect, "", "its due entry was not its next tick")
	return nil
}

// marks removes the first of the jobs in flight that has ended, or does not exist, from them. Such
// a mark delays no tick, because the overlap policies read the states of the jobs: one for each
// schedule and pass is enough.
func (v *scheduleVisitor) marks(ctx context.Context, s *schedules.Loaded, now int64, total *Counts) error {
	suspect := scheduleSuspect{path: s.Path, kind: repairScheduleMark}
	states, err := v.broker.Standing(ctx, s.Path.Tenant, s.InFlight)
	if err != nil {
		return err
	}
	gone := slices.IndexFunc(states, func(state api.JobState) bool { return state == "" || state.Terminal() })
	if gone < 0 {
		v.suspects.Clear(suspect)
		return nil
	}
	id := s.InFlight[gone]
	if !v.overdue(suspect, id, now) {
		return nil
	}
	removed, err := v.schedules.Unmark(ctx, s.Path, id)
	if removed {
		v.repaired(total, suspect, id, "a job that has ended was in flight")
	}
	return err
}

// repaired counts and logs a repair. Repair names a schedule as queue.
func (v *scheduleVisitor) repaired(total *Counts, what scheduleSuspect, id, reason string) {
	v.s.repaired(repair.Repair{
		Kind: what.kind, Tenant: what.path.Tenant, Namespace: what.path.Namespace, Queue: what.path.Name, ID: id, Reason: reason,
	}, total)
}
