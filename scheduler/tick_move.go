package scheduler

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
)

// The kinds of moves.
const (
	moveFire = "fired"
	moveSkip = "skipped" // by the overlap policy or the queue
	moveMiss = "missed"  // by the catch-up policy
	moveMend = "mended"  // what a crash left
)

// tickMove is how a schedule goes on from one tick.
type tickMove struct {
	path   storage.SchedulePath
	kind   string
	state  storage.ScheduleState // as it was read
	meta   *storage.StoredSchedule
	tickMS int64
	nextMS int64
	missed int64
	reason string
	tick   *queue.Tick
}

// decide says how a schedule goes on that the due set names.
func (t *Ticker) decide(ctx context.Context, s *storage.LoadedSchedule, now int64) (*tickMove, error) {
	m := &tickMove{path: s.Path, state: s.State, meta: s.Meta}
	switch {
	case s.Err != nil:
		return nil, s.Err
	case s.Meta == nil:
		return m.mend("it is deleted", 0, false), nil
	case s.State.Rev != s.Meta.Revision || s.State.Turn == 0:
		return m.mend("its change was cut short", tickAfterCut(s, now), true), nil
	case s.State.NextTickMS == 0 || s.State.NextTickMS > now:
		return m.mend("its due entry was wrong", s.State.NextTickMS, false), nil
	}
	timing, err := newTiming(s.Path.Tenant, s.Path.Namespace, &s.Meta.Schedule)
	if err != nil {
		return m.mend("its timing is none: "+err.Error(), 0, true), nil //nolint:nilerr // what it was made with is refused by this release
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

// firstTick is the first tick after now, 0 where there is none or s is disabled.
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

// tickAfterCut is the next tick of a schedule whose change was cut short, 0 for none: the
// one that it waited for where that is one of its timing still, so that none is lost.
func tickAfterCut(s *storage.LoadedSchedule, now int64) int64 {
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

// next is the state after so many ticks.
func (m *tickMove) next(nextMS, ticks int64) storage.ScheduleState {
	state := m.state
	state.Turn++
	state.NextTickMS = nextMS
	state.TickSeq += ticks
	return state
}

// write makes state the schedule's.
func (m *tickMove) write(state storage.ScheduleState) {
	m.tick = &queue.Tick{Path: m.path, Turn: turnText(m.state.Turn), NextMS: state.NextTickMS, State: state.Words()}
}

func turnText(turn int64) string {
	if turn == 0 {
		return ""
	}
	return strconv.FormatInt(turn, 10)
}

// mend brings the due entry, and the state where that is said, in line with nextMS.
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

// skip passes the tick over.
func (m *tickMove) skip(reason string) *tickMove {
	m.kind, m.reason = moveSkip, reason
	state := m.next(m.nextMS, 1)
	state.Skipped++
	state.LastSkip = &api.ScheduleSkip{TickMS: m.tickMS, Reason: reason}
	m.write(state)
	return m
}

// run makes job id, and state the schedule's with it.
func (m *tickMove) run(now int64, state storage.ScheduleState, seq int64, o overlap, id string) {
	state.Fired++
	state.LastTickMS, state.LastFiredMS, state.LastJobID = m.tickMS, now, id
	m.write(state)
	m.tick.Ended = o.ended
	m.tick.Job = &queue.TickJob{ID: id, Spec: m.spec(seq, o)}
}

// spec is the job of the tick.
func (m *tickMove) spec(seq int64, o overlap) *api.JobSpec {
	s := &m.meta.Schedule
	spec := &api.JobSpec{
		Payload:  s.Payload,
		Schedule: &api.ScheduledTick{Schedule: s.Name, CreatedAtMS: s.CreatedAtMS, TickMS: m.tickMS, TickSeq: seq, Marked: o.marked},
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
	// The version's list of roles is judged at each attempt, by who made the schedule.
	spec.Activation = &api.AsyncActivation{
		Trigger: api.Trigger{Type: api.TriggerSchedule}, Principal: m.meta.Principal, Access: m.meta.Access,
	}
	return spec
}

// overlap is what the runs in flight mean for a tick.
type overlap struct {
	refused string   // why the tick is passed over
	behind  []string // the jobs that it waits for
	ended   []string // jobs that are in flight no more
	marked  bool     // its job is to be kept among those in flight
}

// overlap looks at the jobs in flight themselves: their marks go when they end, but whoever
// ends one may die before that. The tick's own job, which a look that was cut short has
// made, is no other's.
func (t *Ticker) overlap(ctx context.Context, s *storage.LoadedSchedule, own string) (o overlap, err error) {
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
	switch o.marked = true; s.Meta.OverlapPolicy {
	case api.OverlapParallel:
		o.marked = false
	case api.OverlapQueue:
		// Behind all of them: the last one may be cancelled while others wait, and one
		// that was run by hand stands among them by another replica's clock.
		if o.behind = living; len(living) >= s.Meta.QueueLimit {
			o.refused = api.SkipQueueFull
		}
	default:
		if len(living) > 0 {
			o.refused = api.SkipOverlap
		}
	}
	return o, nil
}
