package jobstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// Move is a change of one job from the run that was read to another, and the result. Apply
// computes the sets that the job leaves and enters from the two states and the score of the
// spec.
type Move struct {
	Record *Record
	To     Run
	Field  string // a detail that is written with the run, "" for none
	Value  string // of Field
	// Checkpoint replaces the stored one, "" leaves it. It is written with the run, so that it is
	// never combined with the settlement of another lease.
	Checkpoint string
	// Failure is the error of the attempt that m ends, nil if it did not fail. Lost is set if it
	// failed because its lease ran out.
	Failure *api.JobError
	Lost    bool
	release bool   // releases the unique key
	follow  bool   // marks the consequences of the job's end as to be handled
	Spec    string // replaces the encoded spec; "" leaves it
	// Decision decides the approval of the job, "" for none. Asks is set if the move asks for one of a
	// job that is held already.
	Decision approval.State
	Asks     bool
	// Ledger changes the ledger together with the run, nil leaves it. Apply then makes one move, and
	// the Record was read by FindWithLedger.
	Ledger *Change

	Outcome string // set by the call: Moved, Missing, Stale, or the job's present run
}

// The replies of the move script for a job, unless it replies with the job's run. They cannot
// be mistaken for one, because a run has several words.
const (
	Moved      = "ok"
	MovedAfter = "after" // moved, and its end has consequences
	Missing    = "gone"
	Stale      = "stale" // the ledger is not the one that was read
)

// End returns m with the effects that every move into a terminal state has: it releases the
// unique key and marks the consequences of the end as to be handled.
func (m Move) End() Move {
	m.release, m.follow = m.Record.Spec.UniqueKey != "", true
	return m
}

// After returns the job as it is after m was made.
func (m *Move) After() (*Record, error) {
	after := *m.Record
	after.Run, after.Stored = m.To, m.To.String()
	if m.Field != "" {
		after.Details[m.Field] = m.Value
	}
	if m.Checkpoint != "" {
		after.Details[FieldCheckpoint] = m.Checkpoint
	}
	if m.Spec == "" {
		return &after, nil
	}
	var err error
	after.Spec, err = DecodeSpec(m.Spec)
	return &after, err
}

// Apply makes moves of jobs of q, each if the job's run is still the one that was read, and
// sets their outcomes. Moves are independent: one that is refused does not stop the others. A
// job whose run is already Move.To counts as moved, so that the client may send the script
// again after a lost reply. follow holds the ids of jobs that have ended and whose end has
// consequences; they are marked in the after set until the caller has handled them. Errors:
// CodeInternal for a transition that the state machine does not have, CodeStoreUnavailable.
func (s *Store) Apply(ctx context.Context, q Queue, moves []*Move) (follow []string, err error) {
	for _, m := range moves {
		if m.Record.Run.State != m.To.State && !allowed(m.Record.Run.State, m.To.State) {
			return nil, api.Errorf(api.CodeInternal, "job %s cannot go from %s to %s", m.Record.ID, m.Record.Run.State, m.To.State)
		}
	}
	if err := s.expectExpiries(ctx, q, moves); err != nil {
		return nil, err
	}
	keys, args := s.moveArguments(ctx, q, moves)
	if len(moves) == 1 && moves[0].Ledger != nil {
		keys, args, err = s.ledgerArguments(q, moves[0], s.store.NowMS(), keys, args)
		if err != nil {
			return nil, err
		}
	}
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobMove, keys, args, func(pipe redis.Pipeliner) {
		s.announceMoves(ctx, pipe, q, moves)
		s.events.Trim(ctx, pipe, q.Tenant)
	})
	if err != nil {
		return nil, err
	}
	words := Words(reply)
	if len(words) > len(moves) {
		moves[0].Ledger.cross(words[len(moves)])
	}
	for i, outcome := range words[:min(len(words), len(moves))] {
		m := moves[i]
		m.Outcome = outcome
		if outcome == MovedAfter {
			follow = append(follow, m.Record.ID)
			m.Outcome = Moved
		}
	}
	return follow, nil
}

// moveArguments returns the keys and arguments of job_move.lua. Sets that several moves share
// are passed once. As in enqueueArguments, keys that few moves need are named by position. ctx has
// the actor of the moves.
func (s *Store) moveArguments(ctx context.Context, q Queue, moves []*Move) (keys []string, args []any) {
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	keys = []string{k.Cursor(), k.After(), k.Config(), tenant.Events()}
	positions, held := map[string]int{}, false
	for _, m := range moves {
		held = held || m.Record.Run.State == api.JobHeld || m.To.State == api.JobHeld
		for _, state := range []api.JobState{m.Record.Run.State, m.To.State} {
			if set := s.SetOf(q, state, m.Record.Spec.Score); positions[set] == 0 {
				keys = append(keys, set)
				positions[set] = len(keys)
			}
		}
	}
	if held {
		keys = append(keys, tenant.Approvals())
	}
	sets := len(keys) - 4
	for _, m := range moves {
		keys = append(keys, tenant.Run(m.Record.ID))
	}
	now := s.store.NowMS()
	args = append(make([]any, 0, 4+20*len(moves)), sets, len(moves), now, q.Path())
	for _, m := range moves {
		meta, attempts, unique, spec, rank, at := 0, 0, 0, 0, -1, ScoreText(m.To.At)
		if m.Field != "" || m.Checkpoint != "" {
			keys = append(keys, tenant.Meta(m.Record.ID))
			meta = len(keys)
		}
		if m.Spec != "" {
			keys = append(keys, tenant.Spec(m.Record.ID))
			spec = len(keys)
		}
		attempt := m.attempt(now)
		if attempt != "" {
			keys = append(keys, tenant.Errors(m.Record.ID))
			attempts = len(keys)
		}
		if m.release && m.Record.Spec.UniqueKey != "" {
			keys = append(keys, tenant.Unique(q.Namespace, q.Name, m.Record.Spec.UniqueKey))
			unique = len(keys)
		}
		if m.To.State == api.JobPending {
			rank, at = RankOf(m.Record.Spec.Score), ScoreText(m.Record.Spec.Score)
		}
		follow, decides := "", ""
		if m.follow {
			follow = "1"
		}
		if m.Decision != "" {
			decides = "1"
		}
		args = append(args, m.Record.ID, m.Record.Stored, m.To.String(),
			positions[s.SetOf(q, m.Record.Run.State, m.Record.Spec.Score)], positions[s.SetOf(q, m.To.State, m.Record.Spec.Score)],
			at, rank, m.Field, m.Value, m.Checkpoint, meta, attempts, attempt, unique, m.Spec, spec, follow, m.events(), m.eventDetail(event.ActorOf(ctx)), decides)
	}
	return keys, args
}

// announceMoves queues commands on pipe that mark when moved jobs become due, and that an
// fn queue may have work. They run after the moves.
func (s *Store) announceMoves(ctx context.Context, pipe redis.Pipeliner, q Queue, moves []*Move) {
	due, ready := int64(0), false
	for _, m := range moves {
		ready = ready || m.To.State == api.JobPending || m.Record.Run.State == api.JobActive
		at := int64(0)
		switch {
		case m.To.State == api.JobScheduled || m.To.State == api.JobRetrying || m.To.State == api.JobWaiting || m.To.State == api.JobActive:
			at = m.To.At
		case m.follow:
			at = s.store.NowMS()
		case m.To.State == api.JobHeld:
			at = m.asksUntil()
		}
		if m.Record.Run.State == api.JobActive && !m.To.State.Terminal() && m.Record.Spec.ExpireAtMS > 0 && !m.To.AwaitsApproval() {
			// While the job was active, its expiry may have been postponed to its lease's end. A run that
			// awaits an approval has the end of its wait there.
			expires := duework.Sooner(max(m.Record.Spec.ExpireAtMS, s.store.NowMS()), m.asksUntil())
			pipe.ZAdd(ctx, s.Keys(q).Expiry(), redis.Z{Score: float64(expires), Member: m.Record.ID})
			at = duework.Sooner(at, expires)
		}
		due = duework.Sooner(due, at)
	}
	if due > 0 {
		s.MarkDue(ctx, pipe, q, due)
	}
	if ready && IsFunctionQueue(q.Name) {
		s.MarkReady(ctx, pipe, q, s.store.NowMS())
	}
}

// Dead returns m with the dead state since now, a Unix time in milliseconds, for the given
// reason.
func (m *Move) Dead(reason string, now int64) *Move {
	m.To = m.To.To(api.JobDead, now)
	m.Field, m.Value = FieldDeadReason, reason
	ended := m.End()
	return &ended
}

// CountMoved returns how many of moves were made.
func CountMoved(moves []*Move) (n int) {
	for _, m := range moves {
		if m.Outcome == Moved {
			n++
		}
	}
	return n
}

// Requeue moves a job that is not active from one queue to another. With a request for its approval, asked,
// the job is held there, unless it still waits for other jobs. It adds the job to the
// new queue, together with the changed spec, and then removes it from the old one: if a
// crash comes between, a later reader of the old queue drops the entry. It reports whether
// it moved the job, which it does only if the job is still as it was read. Errors:
// CodeJobNotFound, CodeStoreUnavailable.
//
// The new queue is listed first, and the old entries are removed last, so that the job is
// always in a set of a listed queue. Between the two it is in both, and its spec decides.
func (s *Store) Requeue(ctx context.Context, r *Record, from, to Queue, asked *approval.Request) (bool, error) {
	spec := *r.Spec
	spec.Queue = to.Name
	if asked != nil {
		spec.Approval, spec.Hold = asked, true
	}
	text, err := EncodeSpec(&spec)
	if err != nil {
		return false, err
	}
	if err := s.AddQueue(ctx, to); err != nil {
		return false, err
	}
	// Incrementing the epoch changes the run, so that concurrent decisions on the job in
	// its old queue fail, and invalidates cached summaries. An overdue job is moved as
	// pending, because due sets are read only from a floor on, see floors.Floors.
	there, now := r.Run, s.store.NowMS()
	if (there.State == api.JobScheduled || there.State == api.JobRetrying) && there.At <= now {
		there = there.To(api.JobPending, now)
	}
	if asked != nil && there.State != api.JobWaiting && there.State != api.JobHeld {
		there = there.To(api.JobHeld, now)
	}
	there.Epoch++
	keys, args := s.moveArguments(ctx, to, []*Move{{Record: r, To: there, Spec: text}})
	reply, err := s.store.Script(ctx, storage.ScriptJobMove, keys, args...)
	if err != nil {
		return false, err
	}
	switch word := Words(reply)[0]; word {
	case Moved, MovedAfter:
	case Missing:
		return false, NotFound(r.ID)
	default:
		return false, nil
	}
	old := s.Keys(from)
	pipe := s.rdb.Pipeline()
	pipe.ZRem(ctx, s.SetOf(from, r.Run.State, r.Spec.Score), r.ID)
	pipe.ZRem(ctx, old.Expiry(), r.ID)
	if at := expiry(&spec, &there); at > 0 {
		at = max(at, now)
		pipe.ZAdd(ctx, s.Keys(to).Expiry(), redis.Z{Score: float64(at), Member: r.ID})
		s.MarkDue(ctx, pipe, to, at)
	}
	if there.State == api.JobScheduled || there.State == api.JobRetrying {
		s.MarkDue(ctx, pipe, to, there.At)
	}
	_, err = pipe.Exec(ctx)
	s.notify.Wake(to)
	return true, Failure(ctx, "move a job", err)
}
