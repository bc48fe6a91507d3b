package scheduler

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
)

// The kinds of moves, as the metric sous_schedule_ticks_total names them.
const (
	moveFire = "fired"
	moveSkip = "skipped" // by the overlap policy or the queue
	moveMiss = "missed"  // by the catch-up policy
	moveMend = "mended"  // a repair of what a crash left
)

// tickMove moves a schedule on from one tick to the next. For a schedule that ticks each minute
// with the overlap policy skip, whose run of 12:00 takes until 12:01:30:
//
//	at        kind     turn  next tick  seq  in flight   job
//	                   7     12:00      41   —
//	12:00:00  fired    8     12:01      42   J(12:00)    J(12:00) is enqueued
//	12:01:00  skipped  9     12:02      43   J(12:00)    none, reason overlap
//	12:01:30                                 —           J(12:00) ends and leaves the marks
//	12:02:00  fired    10    12:03      44   J(12:02)    J(12:02) is enqueued
//
// J(t) is the id derived from the tick t. Two replicas that decide at 12:00:00 both write with
// turn 7: the second write finds turn 8, and queue.TickMoved is its outcome. If a crash
// interrupts the first after it wrote the job, the schedule has turn 7 still, and the next
// replica writes the same job J(12:00), which exists.
type tickMove struct {
	path   storage.SchedulePath
	kind   string
	state  schedules.State // as it was read
	meta   *schedules.Stored
	tickMS int64       // the tick that is fired or skipped
	nextMS int64       // the tick behind it, 0 for none
	missed int64       // the number of ticks that are left out
	reason string      // of a skip or a repair
	tick   *queue.Tick // the write that makes the move
}

// decide returns the move of a schedule that the due set names. It writes nothing. The first of
// these that applies decides:
//
//	there is no such schedule         mend: remove its entry
//	the state is of another revision  mend: compute the next tick, see tickAfterInterrupt
//	the state's next tick is not due  mend: set the entry to it
//	the timing is invalid             mend: no more ticks
//	catchUp leaves ticks out          miss: go to the first that it keeps
//	the overlap policy refuses        skip
//	otherwise                         fire
func (t *Ticker) decide(ctx context.Context, s *schedules.Loaded, now int64) (*tickMove, error) {
	m := &tickMove{path: s.Path, state: s.State, meta: s.Meta}
	switch {
	case s.Err != nil:
		return nil, s.Err
	case s.Meta == nil:
		return m.mend("it has been deleted", 0, false), nil
	case s.State.Rev != s.Meta.Revision || s.State.Turn == 0:
		return m.mend("its change was interrupted", tickAfterInterrupt(s, now), true), nil
	case s.State.NextTickMS == 0 || s.State.NextTickMS > now:
		return m.mend("its due entry was wrong", s.State.NextTickMS, false), nil
	}
	timing, err := newTiming(s.Path.Tenant, s.Path.Namespace, &s.Meta.Schedule)
	if err != nil {
		return m.mend("its timing is invalid: "+err.Error(), 0, true), nil //nolint:nilerr // this release refuses a timing that an earlier one accepted
	}
	first, missed := catchUp(&s.Meta.Schedule, timing, s.State.NextTickMS, now)
	if missed > 0 {
		m.kind, m.missed, m.nextMS = moveMiss, missed, first
		state := m.next(first, missed)
		state.Missed += missed
		m.write(state)
		return m, nil
	}
	m.tickMS, m.nextMS = first, timing.next(first)
	id := api.DerivedJobID("tick", m.path.Tenant, m.path.Namespace, m.path.Name,
		strconv.FormatInt(m.meta.CreatedAtMS, 10), strconv.FormatInt(m.tickMS, 10))
	overlap, err := t.overlap(ctx, s, id)
	if err != nil {
		return nil, err
	}
	if overlap.refused != "" {
		m.skip(overlap.refused)
		m.tick.Ended = overlap.ended
		return m, nil
	}
	m.kind = moveFire
	state := m.next(m.nextMS, 1)
	m.run(now, state, state.TickSeq, overlap, id)
	return m, nil
}

// firstTick returns the first tick after now, 0 if there is none or s is disabled.
func firstTick(path storage.SchedulePath, s *api.Schedule, now int64) (int64, error) {
	if !s.Enabled {
		return 0, nil
	}
	timing, err := newTiming(path.Tenant, path.Namespace, s)
	if err != nil {
		return 0, err
	}
	return timing.next(now), nil
}

// tickAfterInterrupt returns the next tick of a schedule whose change was interrupted, 0 for
// none. If the new timing still has the tick that the schedule waited for, it is that one: no
// tick is lost.
func tickAfterInterrupt(s *schedules.Loaded, now int64) int64 {
	waited := s.State.NextTickMS
	if waited > 0 {
		if next, err := firstTick(s.Path, &s.Meta.Schedule, waited-1); err == nil && (next == 0 || next == waited) {
			return next
		}
	}
	next, err := firstTick(s.Path, &s.Meta.Schedule, now)
	if err != nil {
		return 0
	}
	return next
}

// next returns the state after the given number of ticks, whose next tick is nextMS. TickSeq
// counts all ticks of the schedule, those that are skipped or missed included.
func (m *tickMove) next(nextMS, ticks int64) schedules.State {
	state := m.state
	state.Turn++
	state.NextTickMS = nextMS
	state.TickSeq += ticks
	return state
}

// write sets the move's write to one that stores state.
func (m *tickMove) write(state schedules.State) {
	m.tick = &queue.Tick{Path: m.path, Turn: turnText(m.state.Turn), NextMS: state.NextTickMS, State: state.Words()}
}

// turnText returns a turn as it is stored, "" where there is no state.
func turnText(turn int64) string {
	if turn == 0 {
		return ""
	}
	return strconv.FormatInt(turn, 10)
}

// mend turns the move into a repair that sets the schedule's due entry to nextMS, and with
// whole its state as well.
func (m *tickMove) mend(reason string, nextMS int64, whole bool) *tickMove {
	m.kind, m.reason, m.nextMS = moveMend, reason, nextMS
	if whole {
		state := m.next(nextMS, 0)
		state.Rev = m.meta.Revision
		m.write(state)
		return m
	}
	m.tick = &queue.Tick{Path: m.path, Turn: turnText(m.state.Turn), NextMS: nextMS}
	return m
}

// skip turns the move into one that skips the tick.
func (m *tickMove) skip(reason string) *tickMove {
	m.kind, m.reason = moveSkip, reason
	state := m.next(m.nextMS, 1)
	state.Skipped++
	state.LastSkip = &api.ScheduleSkip{TickMS: m.tickMS, Reason: reason}
	m.write(state)
	return m
}

// run turns the move into one that creates job id and stores state.
func (m *tickMove) run(now int64, state schedules.State, seq int64, o overlap, id string) {
	state.Fired++
	state.LastTickMS, state.LastFiredMS, state.LastJobID = m.tickMS, now, id
	m.write(state)
	m.tick.Ended = o.ended
	m.tick.Job = &queue.TickJob{ID: id, Spec: m.spec(seq, o)}
}

// spec returns the job of the tick.
func (m *tickMove) spec(seq int64, o overlap) *api.JobSpec {
	s := &m.meta.Schedule
	spec := &api.JobSpec{
		Payload: s.Payload,
		Schedule: &api.ScheduledTick{
			Schedule: s.Name, Cron: s.Cron, CreatedAtMS: s.CreatedAtMS, TickMS: m.tickMS, TickSeq: seq, Marked: o.marked,
		},
	}
	if len(spec.Payload) == 0 {
		spec.Payload = []byte("{}")
	}
	if len(o.behind) > 0 {
		spec.DependsOn, spec.OnDependencyFailure = o.behind, api.DependencyContinue
	}
	if q := s.Queue; q != nil {
		spec.Queue = q.Name
		spec.UniqueKey, spec.MaxAttempts, spec.Priority = q.UniqueKey, q.MaxAttempts, q.Priority
		return spec
	}
	target := *s.Ref
	if target.Alias == "" && target.Version == 0 {
		target.Alias = api.DefaultAlias
	}
	spec.Queue, spec.Target = api.FunctionQueuePrefix+target.Function, &target
	// The roles that the version requires are checked at each attempt, against the schedule's
	// author.
	spec.Activation = &api.AsyncActivation{
		Trigger: api.Trigger{Type: api.TriggerSchedule}, Principal: m.meta.Principal, Access: m.meta.Access,
	}
	return spec
}

// overlap describes what the overlap policy decides about a tick.
//
//	policy    jobs in flight          decision
//	skip      none                    fire, marked
//	skip      some                    skip
//	queue     fewer than QueueLimit   fire, marked; the job depends on all of them
//	queue     QueueLimit              skip
//	parallel  any                     fire, not marked
type overlap struct {
	refused string   // the reason for which the tick is skipped, "" if it is not
	behind  []string // the jobs that the tick's job waits for
	ended   []string // jobs marked as in flight that have ended
	marked  bool     // the tick's job is to be marked as in flight
}

// overlap applies the overlap policy to a tick whose job is own. It reads the states of the
// jobs that are marked as in flight, because the process that ended a job may have died before
// it removed the mark. own may be among them, from an interrupted attempt to fire this tick.
func (t *Ticker) overlap(ctx context.Context, s *schedules.Loaded, own string) (o overlap, err error) {
	if s.Meta.OverlapPolicy == api.OverlapParallel && len(s.InFlight) == 0 {
		return o, nil
	}
	states, err := t.broker.Standing(ctx, s.Path.Tenant, s.InFlight)
	if err != nil {
		return o, err
	}
	var living []string
	for i, id := range s.InFlight {
		switch {
		case id == own:
		case states[i] == "" || states[i].Terminal():
			o.ended = append(o.ended, id)
		default:
			living = append(living, id)
		}
	}
	o.marked = true
	switch s.Meta.OverlapPolicy {
	case api.OverlapParallel:
		o.marked = false
	case api.OverlapQueue:
		// The job waits for all of them, not only the last: that one may be cancelled while
		// others wait, and the order of one that was run on demand depends on the clock of
		// another replica.
		o.behind = living
		if len(living) >= s.Meta.QueueLimit {
			o.refused = api.SkipQueueFull
		}
	default:
		if len(living) > 0 {
			o.refused = api.SkipOverlap
		}
	}
	return o, nil
}
