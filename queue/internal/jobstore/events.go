package jobstore

import (
	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// events returns the types of the events of m, each after a blank.
func (m *Move) events() string {
	return m.changes() + m.approvalEvents()
}

// approvalEvents returns those of the events of m that are about approvals.
func (m *Move) approvalEvents() (types string) {
	if m.Decision != "" {
		types = " " + event.ApprovalDecided
	}
	if m.To.State == api.JobHeld && (m.Record.Run.State != api.JobHeld || m.Asks) {
		types += " " + event.ApprovalRequested
	}
	return types
}

// changes returns the types of the other events.
func (m *Move) changes() string {
	from, to := m.Record.Run.State, m.To.State
	failed := ""
	if m.Failure != nil {
		failed = " " + event.JobFailed
	}
	switch {
	case from == to: // it is moved to another queue, its lease is extended, or its ledger changed
		return ""
	case to == api.JobCompleted:
		return " " + event.JobCompleted
	case to == api.JobRetrying, to == api.JobPending && from == api.JobActive && failed != "":
		return failed + " " + event.JobRetrying
	case (to == api.JobPending || to == api.JobScheduled) && from == api.JobActive:
		return " " + event.JobContinued
	case to == api.JobDead:
		return failed + " " + event.JobDead
	case to == api.JobCancelled:
		return " " + event.JobCancelled
	case to == api.JobHeld:
		return " " + event.JobHeld
	case from.Terminal():
		return " " + event.JobRevived
	case from == api.JobHeld || from == api.JobWaiting:
		return " " + event.JobReleased
	}
	return "" // its time has come
}

// eventDetail returns the detail of the events of m, which actor makes, "" if unknown.
func (m *Move) eventDetail(actor string) string {
	text, reason := "", ""
	if m.Failure != nil {
		text = m.Failure.Error
	}
	if m.Field == FieldDeadReason || m.Field == FieldHoldReason {
		reason = m.Value
	}
	return m.Record.Run.eventDetail(text, reason, actor, string(m.Decision))
}

// EventDetail returns the detail of an event of a job that has the run r, as package
// storage/events stores it.
func (r Run) EventDetail(text, reason, actor string) string {
	return r.eventDetail(text, reason, actor, "")
}

func (r Run) eventDetail(text, reason, actor, decision string) string {
	d := event.Detail{Data: event.Data{Attempt: r.Attempt, Decision: decision, Error: Shorten(text, event.MaxText), Reason: Shorten(reason, event.MaxText)}, Actor: actor}
	if r.Worker != none {
		d.WorkerID = r.Worker
	}
	return d.Text()
}
