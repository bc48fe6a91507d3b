package jobstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// Move takes one job from where it was read to another state.
type Move struct {
	Record  *Record
	To      Run
	Field   string // written with it, "" for none
	Value   string
	Failure string // an error's record, "" for none
	release bool   // lets the unique key go
	follow  bool   // what follows the job's end is to be done
	Spec    string // replaces the spec, "" leaves it

	Outcome string // answer: moved, movedAfter, missing, or the job's run as it is
}

// The answers of the move script that are no run.
const (
	Moved      = "ok"
	MovedAfter = "after" // moved, and something follows
	Missing    = "gone"
)

// End is what every move into a terminal state does beside the state.
func (m Move) End() Move {
	m.release, m.follow = m.Record.Spec.UniqueKey != "", true
	return m
}

// Apply makes moves of jobs of one queue, each if the job still is as it was
// read. The outcome of each move reports whether it was made. follow holds the ids of
// jobs that have ended and whose end has consequences.
func (s *Store) Apply(ctx context.Context, q Queue, moves []*Move) (follow []string, err error) {
	for _, m := range moves {
		if m.Record.Run.State != m.To.State && !allowed(m.Record.Run.State, m.To.State) {
			return nil, api.Errorf(api.CodeInternal, "a job cannot go from %s to %s", m.Record.Run.State, m.To.State)
		}
	}
	keys, args := s.moveArguments(q, moves)
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobMove, keys, args, func(pipe redis.Pipeliner) {
		s.announceMoves(ctx, pipe, q, moves)
	})
	if err != nil {
		return nil, err
	}
	for i, outcome := range Words(reply) {
		m := moves[i]
		m.Outcome = outcome
		if outcome == MovedAfter {
			follow = append(follow, m.Record.Id)
			m.Outcome = Moved
		}
	}
	return follow, nil
}

// moveArguments lays the moves out as job_move.lua reads them.
func (s *Store) moveArguments(q Queue, moves []*Move) (keys []string, args []any) {
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	keys = []string{k.Cursor(), k.After()}
	places := map[string]int{}
	for _, m := range moves {
		for _, state := range []api.JobState{m.Record.Run.State, m.To.State} {
			if set := s.SetOf(q, state, m.Record.Spec.Score); places[set] == 0 {
				keys = append(keys, set)
				places[set] = len(keys)
			}
		}
	}
	sets := len(keys) - 2
	for _, m := range moves {
		keys = append(keys, tenant.Run(m.Record.Id))
	}
	args = append(make([]any, 0, 3+16*len(moves)), sets, len(moves), s.store.NowMS())
	for _, m := range moves {
		meta, failures, unique, spec, rank, at := 0, 0, 0, 0, -1, ScoreText(m.To.At)
		if m.Field != "" {
			keys = append(keys, tenant.Meta(m.Record.Id))
			meta = len(keys)
		}
		if m.Spec != "" {
			keys = append(keys, tenant.Spec(m.Record.Id))
			spec = len(keys)
		}
		if m.Failure != "" {
			keys = append(keys, tenant.Errors(m.Record.Id))
			failures = len(keys)
		}
		if m.release && m.Record.Spec.UniqueKey != "" {
			keys = append(keys, tenant.Unique(q.Namespace, q.Name, m.Record.Spec.UniqueKey))
			unique = len(keys)
		}
		if m.To.State == api.JobPending {
			rank, at = RankOf(m.Record.Spec.Score), ScoreText(m.Record.Spec.Score)
		}
		follow := ""
		if m.follow {
			follow = "1"
		}
		args = append(args, m.Record.Id, m.Record.Stored, m.To.String(),
			places[s.SetOf(q, m.Record.Run.State, m.Record.Spec.Score)], places[s.SetOf(q, m.To.State, m.Record.Spec.Score)],
			at, rank, m.Field, m.Value, meta, failures, m.Failure, unique, m.Spec, spec, follow)
	}
	return keys, args
}

// announceMoves tells, behind the moves, what they made due.
func (s *Store) announceMoves(ctx context.Context, pipe redis.Pipeliner, q Queue, moves []*Move) {
	due, ready := int64(0), false
	for _, m := range moves {
		ready = ready || m.To.State == api.JobPending || m.Record.Run.State == api.JobActive
		at := int64(0)
		switch {
		case m.To.State == api.JobScheduled || m.To.State == api.JobRetrying || m.To.State == api.JobWaiting:
			at = m.To.At
		case m.follow:
			at = s.store.NowMS()
		}
		if m.Record.Run.State == api.JobActive && !m.To.State.Terminal() && m.Record.Spec.ExpireAtMS > 0 {
			// While it was active, its expiry may have been put off to its lease's end.
			expires := max(m.Record.Spec.ExpireAtMS, s.store.NowMS())
			pipe.ZAdd(ctx, s.Keys(q).Expiry(), redis.Z{Score: float64(expires), Member: m.Record.Id})
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

// FailureRecord is an error as the store keeps it. It begins with the epoch, by
// which a repeated write knows its own.
func FailureRecord(epoch int64, e api.JobError) (string, error) {
	raw, err := api.EncodeJSON(e)
	if err != nil {
		return "", fmt.Errorf("queue: encode an error: %w", err)
	}
	return fmt.Sprintf(`{"epoch":%d,%s`, epoch, raw[1:]), nil
}

// Dead makes m end the job.
func (m *Move) Dead(reason string, now int64) *Move {
	m.To = m.To.To(api.JobDead, now)
	m.Field, m.Value = FieldDeadReason, reason
	ended := m.End()
	return &ended
}

func CountMoved(moves []*Move) (n int) {
	for _, m := range moves {
		if m.Outcome == Moved {
			n++
		}
	}
	return n
}

// Requeue moves a job to another queue. It enters the job in its new queue, together with the spec that says so,
// and then takes it out of the old one: entries there that a crash leaves behind
// are dropped by whoever meets them. It says whether the job still was what was
// read.
func (s *Store) Requeue(ctx context.Context, r *Record, from, to Queue) (bool, error) {
	spec := *r.Spec
	spec.Queue = to.Name
	text, err := EncodeSpec(&spec)
	if err != nil {
		return false, err
	}
	if err := s.AddQueue(ctx, to); err != nil {
		return false, err
	}
	// The epoch grows, so that whoever decided on the job in its old queue has to
	// look again, and what a process remembers of it does not outlive the move.
	// What is overdue goes as due now: sets are not read far back, see floors.
	there, now := r.Run, s.store.NowMS()
	if (there.State == api.JobScheduled || there.State == api.JobRetrying) && there.At <= now {
		there = there.To(api.JobPending, now)
	}
	there.Epoch++
	keys, args := s.moveArguments(to, []*Move{{Record: r, To: there, Spec: text}})
	reply, err := s.store.Script(ctx, storage.ScriptJobMove, keys, args...)
	if err != nil {
		return false, err
	}
	switch word := Words(reply)[0]; word {
	case Moved, MovedAfter:
	case Missing:
		return false, NotFound(r.Id)
	default:
		return false, nil
	}
	old := s.Keys(from)
	pipe := s.rdb.Pipeline()
	pipe.ZRem(ctx, s.SetOf(from, r.Run.State, r.Spec.Score), r.Id)
	pipe.ZRem(ctx, old.Expiry(), r.Id)
	if spec.ExpireAtMS > 0 {
		at := max(spec.ExpireAtMS, now)
		pipe.ZAdd(ctx, s.Keys(to).Expiry(), redis.Z{Score: float64(at), Member: r.Id})
		s.MarkDue(ctx, pipe, to, at)
	}
	if there.State == api.JobScheduled || there.State == api.JobRetrying {
		s.MarkDue(ctx, pipe, to, there.At)
	}
	_, err = pipe.Exec(ctx)
	s.notify.Wake(to)
	return true, Failure(ctx, "move a job", err)
}
