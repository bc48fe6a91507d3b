package jobs

import (
	"testing"

	"github.com/codesous/sous/api/event"
)

func TestEventLine(t *testing.T) {
	t.Parallel()
	e := event.Event{Type: event.JobDead, Subject: "jobs/j1", Time: "not a time", Data: event.Data{Namespace: "shop", Queue: "mail"}}
	for want, data := range map[string]event.Data{
		"not a time  job.dead  shop/mail  j1":                            {},
		"not a time  job.dead  shop/mail  j1  attempt 2  worker w1":      {Attempt: 2, WorkerID: "w1"},
		"not a time  job.dead  shop/mail  j1  rejected":                  {Reason: "rejected"},
		`not a time  job.dead  shop/mail  j1  attempts: no\nhost\x1b[2J`: {Reason: "attempts", Error: "no\nhost\x1b[2J"},
	} {
		data.Namespace, data.Queue = "shop", "mail"
		e.Data = data
		if got := eventLine(&e); got != want {
			t.Errorf("eventLine: got %q, want %q", got, want)
		}
	}
}

// The lines of events of other resources name their subjects and what they say.
func TestEventLinesOfOtherResources(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]event.Event{
		"now  alias.set  functions/shop/hello/aliases/prod  by key_1  version 7, before 6": {
			Type: event.AliasSet, Subject: "functions/shop/hello/aliases/prod", Actor: "key_1", Data: event.Data{Alias: "prod", Version: 7, Previous: 6},
		},
		"now  alias.set  functions/shop/hello/aliases/prod  version 7": {
			Type: event.AliasSet, Subject: "functions/shop/hello/aliases/prod", Data: event.Data{Alias: "prod", Version: 7},
		},
		"now  schedule.fired  shop/emails  schedules/shop/nightly  by sous/schedules  job j1": {
			Type: event.ScheduleFired, Subject: "schedules/shop/nightly", Actor: event.ActorSchedules, Data: event.Data{Queue: "emails", JobID: "j1"},
		},
		"now  batch.ended  batches/b  3 jobs: 2 succeeded, 1 failed": {
			Type: event.BatchEnded, Subject: "batches/b", Data: event.Data{Batch: &event.BatchCounts{Total: 3, Succeeded: 2, Failed: 1}},
		},
		"now  task.failed  shop/emails  tasks/reindex/42  worker w1  broke": {
			Type: event.TaskFailed, Subject: "tasks/reindex/42", Data: event.Data{Queue: "emails", WorkerID: "w1", Error: "broke"},
		},
	} {
		e.Time, e.Data.Namespace = "now", "shop"
		if got := eventLine(&e); got != want {
			t.Errorf("eventLine: got %q, want %q", got, want)
		}
	}
}
