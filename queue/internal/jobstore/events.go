package jobstore

import (
	"encoding/json"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// maxEventText is the maximum length of the error and the reason in an event, in bytes.
const maxEventText = 256

// events returns the types of the events of m, each after a blank.
func (m *Move) events() string {
	from, to := m.Record.Run.State, m.To.State
	failed := ""
	if m.Failure != "" {
		failed = " " + event.JobFailed
	}
	switch {
	case from == to: // it is moved to another queue
		return ""
	case to == api.JobRetrying, to == api.JobPending && from == api.JobActive && failed != "":
		return failed + " " + event.JobRetrying
	case to == api.JobPending && from == api.JobActive:
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

// eventDetail returns the detail of the events of m.
func (m *Move) eventDetail() string {
	text, reason := "", ""
	if m.Failure != "" {
		var failure api.JobError
		if json.Unmarshal([]byte(m.Failure), &failure) == nil { // FailureRecord wrote it
			text = failure.Error
		}
	}
	if m.Field == FieldDeadReason || m.Field == FieldHoldReason {
		reason = m.Value
	}
	return m.Record.Run.EventDetail(text, reason)
}

// EventDetail returns the detail of an event of a job that has the run r: event.Data in JSON, as
// package storage/events stores it.
func (r Run) EventDetail(text, reason string) string {
	data := event.Data{Attempt: r.Attempt, Error: Shorten(text, maxEventText), Reason: Shorten(reason, maxEventText)}
	if r.Worker != none {
		data.WorkerID = r.Worker
	}
	raw, err := api.EncodeJSON(&data)
	if err != nil { // it has no value that cannot be encoded
		return "{}"
	}
	return string(raw)
}
