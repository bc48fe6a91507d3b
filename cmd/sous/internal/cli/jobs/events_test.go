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
