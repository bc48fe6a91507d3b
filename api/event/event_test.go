package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	mail := event.Event{Type: event.JobCompleted, Data: event.Data{Namespace: "shop", Queue: "mail"}}
	greet := event.Event{Type: event.JobDead, Data: event.Data{Namespace: "shop", Queue: "fn.greet", Function: "greet"}}
	for name, tc := range map[string]struct {
		filter      event.Filter
		mail, greet bool
	}{
		"all":             {event.Filter{}, true, true},
		"a type":          {event.Filter{Types: []string{event.JobDead}}, false, true},
		"two types":       {event.Filter{Types: []string{event.JobDead, event.JobCompleted}}, true, true},
		"a prefix":        {event.Filter{Types: []string{"job.c*"}}, true, false},
		"all of jobs":     {event.Filter{Types: []string{"job.*"}}, true, true},
		"every type":      {event.Filter{Types: []string{"*"}}, true, true},
		"a queue":         {event.Filter{Queue: "mail"}, true, false},
		"a function":      {event.Filter{Function: "greet"}, false, true},
		"a namespace":     {event.Filter{Namespace: "shop"}, true, true},
		"another":         {event.Filter{Namespace: "default"}, false, false},
		"type and queue":  {event.Filter{Types: []string{event.JobDead}, Queue: "mail"}, false, false},
		"part of a queue": {event.Filter{Queue: "mai"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.filter.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
			if got := tc.filter.Matches(&mail); got != tc.mail {
				t.Errorf("Matches(mail): got %t, want %t", got, tc.mail)
			}
			if got := tc.filter.Matches(&greet); got != tc.greet {
				t.Errorf("Matches(greet): got %t, want %t", got, tc.greet)
			}
		})
	}
}

func TestFilterNamesTypes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "job", "job.", "job.done", "jobs.*", "*.completed", "job.completed*x"} {
		filter := event.Filter{Types: []string{event.JobDead, kind}}
		err := filter.Validate()
		if api.ErrorCode(err) != api.CodeInvalid || !strings.Contains(err.Error(), event.JobCompleted) {
			t.Errorf("Validate(%q): got %v, want %s with the types", kind, err, api.CodeInvalid)
		}
	}
	if !slices.IsSorted(event.Types) {
		t.Errorf("Types: got %q, want them sorted", event.Types)
	}
	for _, kind := range event.Types {
		if filter := (event.Filter{Types: []string{kind}}); filter.Validate() != nil {
			t.Errorf("Validate(%q): got %v, want no error", kind, filter.Validate())
		}
	}
}

// The attributes have the names of CloudEvents, and data without a value are left out.
func TestEventIsACloudEvent(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(event.Event{
		SpecVersion: "1.0", ID: "1-0.0", Source: "/v1/tenants/t_a", Type: event.JobHeld, Subject: "jobs/j1", Time: "2025-10-09T08:53:20.998Z",
		Data: event.Data{Namespace: "shop", Queue: "mail", Reason: "approval"},
	})
	const want = `{"specversion":"1.0","id":"1-0.0","source":"/v1/tenants/t_a","type":"job.held","subject":"jobs/j1","time":"2025-10-09T08:53:20.998Z",` +
		`"data":{"namespace":"shop","queue":"mail","reason":"approval"}}`
	if err != nil || string(text) != want {
		t.Errorf("Marshal: got %s, %v, want %s", text, err, want)
	}
}
