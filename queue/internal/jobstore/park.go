package jobstore

import (
	"cmp"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
)

// The beginnings of the fields of a job's hash that have what ends the waits of its run: events, as
// event:ID:NAME, and decisions on approvals, as decision:EPOCH. They are written before the run
// that they wake, and deleted when the wait that they ended is recorded.
const (
	FieldEvent    = step.ArrivalEvent
	FieldDecision = step.ArrivalDecision
)

// Parked returns the move by which an activation of r leaves its run asleep, or pending if what it
// waits for is there. Attempts are counted from 0 again.
func (r *Record) Parked(p *step.Park, arrived bool, now int64) *Move {
	m := &Move{Record: r, To: r.Run.Settle(SettledContinue)}
	m.To.Attempt = 0
	switch {
	case arrived:
		m.To = m.To.To(api.JobPending, now)
	case p.Approval:
		m.To = r.Run.Settle(SettledApproval).To(api.JobHeld, now)
		m.To.Attempt = 0
		m.Field, m.Value = FieldHoldReason, cmp.Or(p.Message, "the run awaits an approval")
	case p.DueMS <= now:
		m.To = m.To.To(api.JobPending, now)
	default:
		m.To = m.To.To(api.JobScheduled, p.DueMS)
	}
	return m
}

// Decided returns the move that resumes the run of r, which awaits a decision. The field of the
// decision has the epoch of the run, so that no other wait takes it. voters are the names of those who voted.
func (r *Record) Decided(approved bool, comment, by string, voters []string, now int64) (*Move, error) {
	raw, err := api.EncodeJSON(step.Decision{Approved: approved, By: by, Comment: comment, Voters: voters, AtMS: now})
	if err != nil {
		return nil, api.Wrap(api.CodeInternal, err, "encode a decision")
	}
	m := r.Undecided(now)
	m.Field, m.Value = FieldDecision+strconv.FormatInt(r.Run.Epoch, 10), string(raw)
	return m, nil
}

// Undecided returns the move that resumes the run of r, whose wait for a decision has ended.
func (r *Record) Undecided(now int64) *Move {
	return &Move{Record: r, To: r.Run.Settle(SettledDecision).To(api.JobPending, now)}
}

// Touched returns a move that changes nothing but the stored run: a decision that was made on the
// run as it was read is made again. value is written to field.
func (r *Record) Touched(field, value string) *Move {
	m := &Move{Record: r, To: r.Run, Field: field, Value: value}
	if r.Run.State == api.JobActive {
		m.To.At++ // the end of its lease
	}
	return m
}

// Woken returns Touched with the run made pending. It no longer awaits an approval.
func (r *Record) Woken(field, value string, now int64) *Move {
	return &Move{Record: r, To: r.Run.Settle(SettledContinue).To(api.JobPending, now), Field: field, Value: value}
}
