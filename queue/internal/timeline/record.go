package timeline

import (
	"cmp"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// endings are the types of the changes with which attempts end, by their outcomes.
var endings = map[string]string{
	api.AttemptCompleted: event.JobCompleted,
	api.AttemptFailed:    event.JobFailed, api.AttemptLost: event.JobFailed,
	api.AttemptSnoozed: event.JobRetrying, api.AttemptReleased: event.JobRetrying,
	api.AttemptContinued: event.JobContinued, api.AttemptHeld: event.JobHeld,
	api.AttemptCancelled: event.JobCancelled,
}

// entriesOf returns the changes of j that its record has, oldest first: the enqueue, the begins and
// ends of its attempts, its end, and since when it is held.
func entriesOf(j *api.Job) []event.TimelineEntry {
	out := []event.TimelineEntry{{AtMS: j.CreatedAtMS, Type: event.JobEnqueued}}
	for i := range j.Attempts {
		a := &j.Attempts[i]
		of := event.TimelineEntry{Attempt: a.Attempt, WorkerID: a.WorkerID, Host: a.Host}
		if a.StartedAtMS > 0 {
			start := of
			start.AtMS, start.Type = a.StartedAtMS, event.JobStarted
			out = append(out, start)
		}
		if a.EndedAtMS > 0 && endings[a.Outcome] != "" {
			of.AtMS, of.Type, of.Error = a.EndedAtMS, endings[a.Outcome], a.Error
			out = append(out, of)
		}
	}
	last := event.TimelineEntry{Attempt: j.Attempt, WorkerID: j.WorkerID, Host: j.Host}
	switch j.State {
	case api.JobCompleted:
		last.AtMS, last.Type = j.EndedAtMS, event.JobCompleted
	case api.JobCancelled:
		last.AtMS, last.Type = j.EndedAtMS, event.JobCancelled
	case api.JobDead:
		last.AtMS, last.Type, last.Reason = j.EndedAtMS, event.JobDead, j.DeadReason
	case api.JobHeld:
		last.AtMS, last.Type, last.Reason = j.StateSinceMS, event.JobHeld, j.HoldReason
	}
	// The end of an attempt may be that of the job.
	same := slices.IndexFunc(out, func(e event.TimelineEntry) bool {
		return e.Type == last.Type && max(e.AtMS-last.AtMS, last.AtMS-e.AtMS) <= sameMS
	})
	switch {
	case same >= 0:
		out[same].Reason = last.Reason
	case last.Type != "":
		out = append(out, last)
	}
	for i := range out {
		out[i].Source = event.SourceRecord
	}
	slices.SortStableFunc(out, func(a, b event.TimelineEntry) int { return cmp.Compare(a.AtMS, b.AtMS) })
	return out
}
