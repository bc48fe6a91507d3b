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
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
)

// The kinds of repairs of schedules, as metrics name them.
const (
	repairScheduleIndex  = "schedule_index"     // a name in the list was no schedule's
	repairScheduleDue    = "schedule_due"       // a schedule was due at another moment than its next tick, or its change was cut short
	repairScheduleMark   = "schedule_in_flight" // a job that had ended, or is not, was in flight
	repairScheduleTenant = "schedule_tenant"    // a tenant's schedules were in no due set, or too late
)

// scheduleGraceMS is for how long what looks as if a crash had cut it is left alone: the
// end of a job, or a tick, may be under way.
const scheduleGraceMS = 10_000

// scheduleReads is what one schedule costs.
const scheduleReads = 4

// scheduleSuspect is something of a schedule that looks wrong.
type scheduleSuspect struct {
	path storage.SchedulePath
	kind string
}

// scheduleVisitor finds schedules whose records, due entries and marks do not agree.
type scheduleVisitor struct {
	s         *Sweeper
	ticker    *scheduler.Ticker
	schedules *storage.Schedules
	broker    *queue.Broker
	floors    storage.Floors
	suspects  queue.Suspects[scheduleSuspect]
	suspected bool // something is to be looked at again

	at    storage.FunctionPath // the namespace under way
	names []string             // that are left of a page
	after string               // the page's last name, "" where there is no other
}

// visit is a tenant's, or a namespace's.
func (v *scheduleVisitor) visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (p piece, err error) {
	if at.Namespace == "" {
		return v.tenant(ctx, at.Tenant, now.UnixMilli(), total)
	}
	if v.at != at {
		v.at, v.names, v.after = at, nil, ""
	}
	if len(v.names) == 0 {
		v.names, v.after, err = v.schedules.Names(ctx, at.Tenant, at.Namespace, v.after, api.MaxPageLimit)
		return v.ended(piece{reads: 1}), err
	}
	n := min(len(v.names), max(1, reads/scheduleReads))
	paths := make([]storage.SchedulePath, n)
	for i, name := range v.names[:n] {
		paths[i] = storage.SchedulePath{Tenant: at.Tenant, Namespace: at.Namespace, Name: name}
	}
	v.names = v.names[n:]
	v.suspected = false
	err = v.look(ctx, paths, now.UnixMilli(), total)
	return v.ended(piece{reads: scheduleReads * n, busy: v.suspected}), err
}

// ended is p with whether it was the namespace's last.
func (v *scheduleVisitor) ended(p piece) piece {
	if p.end = len(v.names) == 0 && v.after == ""; p.end {
		v.at = storage.FunctionPath{}
	}
	return p
}

// tenant holds the due sets to the tenant's own.
func (v *scheduleVisitor) tenant(ctx context.Context, tenant string, now int64, total *Counts) (piece, error) {
	p := piece{reads: 1, end: true}
	heads, err := v.schedules.Due(ctx, &v.floors, []string{tenant}, now, 1)
	if err != nil || len(heads[0]) == 0 {
		return p, err
	}
	p.reads++
	member := storage.DueSchedulePrefix + tenant
	score, err := v.s.store.Client().ZScore(ctx, storage.KeyDue(storage.DueShard(member)), member).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return p, storage.Failure(ctx, "read a due set", err)
	}
	at, suspect := heads[0][0].AtMS, scheduleSuspect{path: storage.SchedulePath{Tenant: tenant}, kind: repairScheduleTenant}
	// A replica that has claimed it brings it back.
	if err == nil && int64(score) <= max(at, now+scheduler.ClaimMS) {
		v.suspects.Clear(suspect)
		return p, nil
	}
	p.busy = true
	if !v.ripe(suspect, "", now) {
		return p, nil
	}
	pipe := v.s.store.Client().Pipeline()
	storage.MarkDue(ctx, pipe, member, at)
	if _, err := pipe.Exec(ctx); err != nil {
		return p, storage.Failure(ctx, "mark a tenant", err)
	}
	v.broker.DueAt(at)
	v.mended(total, suspect, "", "its schedules were in no due set")
	return p, nil
}

// ripe says whether a suspect has looked as how says for long enough, and forgets it then.
func (v *scheduleVisitor) ripe(what scheduleSuspect, how string, now int64) bool {
	v.suspected = true
	if !v.suspects.Ripe(what, how, now, scheduleGraceMS) {
		return false
	}
	v.suspects.Clear(what)
	return true
}

// look holds schedules to their states, their due entries and their jobs.
func (v *scheduleVisitor) look(ctx context.Context, paths []storage.SchedulePath, now int64, total *Counts) error {
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
			v.s.cannotRead("schedule " + s.Path.Tenant + "/" + s.Path.Namespace + "/" + s.Path.Name)
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
		errs = append(errs, err) // one schedule's trouble is no other's
	}
	return errors.Join(errs...)
}

// dangling removes what is left of a schedule that is not there.
func (v *scheduleVisitor) dangling(ctx context.Context, s *storage.LoadedSchedule, now int64, total *Counts) error {
	suspect := scheduleSuspect{path: s.Path, kind: repairScheduleIndex}
	if !v.ripe(suspect, "", now) {
		return nil
	}
	switch err := v.schedules.Delete(ctx, s); {
	case api.ErrorCode(err) == api.CodeStoreConflict: // it has come to be
	case err != nil:
		return err
	default:
		v.mended(total, suspect, "", "the list named a schedule that is not there")
	}
	return nil
}

// due has the ticker look at a schedule whose due entry is not its next tick, or whose
// change was cut short.
func (v *scheduleVisitor) due(ctx context.Context, s *storage.LoadedSchedule, entry, now int64, total *Counts) error {
	suspect := scheduleSuspect{path: s.Path, kind: repairScheduleDue}
	if entry == s.State.NextTickMS && s.State.Rev == s.Meta.Revision {
		v.suspects.Clear(suspect)
		return nil
	}
	// Another turn is another matter: it was on its way.
	if !v.ripe(suspect, strconv.FormatInt(s.State.Turn, 10), now) {
		return nil
	}
	if err := v.ticker.Mend(ctx, s.Path, now); err != nil {
		return err
	}
	v.mended(total, suspect, "", "its due entry was not its next tick")
	return nil
}

// marks takes the first job out of those in flight that has ended, or is not there.
func (v *scheduleVisitor) marks(ctx context.Context, s *storage.LoadedSchedule, now int64, total *Counts) error {
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
	if !v.ripe(suspect, id, now) {
		return nil
	}
	removed, err := v.schedules.Unmark(ctx, s.Path, id)
	if removed {
		v.mended(total, suspect, id, "a job that has ended was in flight")
	}
	return err
}

// mended counts and logs a repair.
func (v *scheduleVisitor) mended(total *Counts, what scheduleSuspect, id, reason string) {
	r := queue.Repair{Kind: what.kind, Tenant: what.path.Tenant, Namespace: what.path.Namespace, Queue: what.path.Name, ID: id, Reason: reason}
	total.Repairs = append(total.Repairs, r)
	v.s.mended(r)
}
