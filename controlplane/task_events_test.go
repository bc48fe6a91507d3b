package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// told returns an event of a task as text.
func told(t *testing.T, e event) string {
	t.Helper()
	var task api.Task
	if err := json.Unmarshal([]byte(e.data), &task); err != nil {
		t.Fatalf("Unmarshal(%s): %v", e.data, err)
	}
	if task.Payload != nil {
		t.Errorf("got payload %s in an event, want none", task.Payload)
	}
	return fmt.Sprintf("%s %s %d", e.name, task.State, task.CurrentStep)
}

// A stream of one task has its state now, then each change, and ends with it.
func TestTaskIsFollowed(t *testing.T) {
	t.Parallel()
	h := start(t)
	post := func(verb, body string) {
		t.Helper()
		ok[api.Task](t, h.call(t, "POST", h.at(taskPath+":"+verb), body), 200)
	}
	ok[api.Task](t, h.call(t, "PUT", h.at(taskPath), `{"payload":{"a":1}}`), 201)
	next := map[string]func(){
		"progress pending 0": func() { post("claim", `{"worker":"w1"}`) },
		"progress claimed 0": func() { post("step", `{"worker":"w1","step":2}`) },
		"progress running 2": func() { post("complete", `{"worker":"w1"}`) },
	}
	var got []string
	last := ""
	events(t, h, h.at(taskPath+":events?follow=true"), func(e event) {
		if e.name == "" {
			return
		}
		got = append(got, told(t, e))
		if e.name == "progress" {
			last = e.id
		}
		if act := next[got[len(got)-1]]; act != nil {
			act()
		}
	})
	want := []string{"progress pending 0", "progress claimed 0", "progress running 2", "terminal completed 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	got = nil
	events(t, h, h.at(taskPath+":events?follow=true"), func(e event) {
		if e.name != "" {
			got = append(got, told(t, e))
		}
	}, "Last-Event-ID", last)
	if diff := cmp.Diff(want[3:], got); diff != "" {
		t.Errorf("events of a resumed stream (-want +got):\n%s", diff)
	}
	h.call(t, "GET", h.at(taskPath+":events?follow=true"), "", "Last-Event-ID", "x").refused(t, 400, api.CodeValidationCursor)
	h.call(t, "GET", h.at(taskPath+":events?follow=x"), "").refused(t, 422, api.CodeInvalid)
	h.call(t, "GET", h.at(taskPath+":events?limit=0"), "").refused(t, 422, api.CodeInvalid)
	h.call(t, "GET", h.at(taskPath+":events?cursor=AAAA"), "").refused(t, 400, api.CodeValidationCursor)
	h.call(t, "GET", h.at("T/tasks/email-send/none:events"), "").refused(t, 404, api.CodeTaskNotFound)
	h.call(t, "GET", h.at("T/tasks/Email:events"), "").refused(t, 400, api.CodeValidationName)
}

// Pages of a type and its stream continue each other; a page of one task has its own changes.
func TestTasksOfATypeAreFollowed(t *testing.T) {
	t.Parallel()
	h := start(t)
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	tenant := c.Tenant(h.tenant)
	create := func(id string) {
		t.Helper()
		if _, _, err := tenant.CreateTask(t.Context(), "mail", id, api.NewTask{}); err != nil {
			t.Fatalf("CreateTask: %v", err)
		}
	}
	create("a")
	create("b")
	if _, err := tenant.CancelTask(t.Context(), "mail", "a"); err != nil {
		t.Fatalf("CancelTask: %v", err)
	}
	page := func(id, cursor string, limit int) (texts []string, next string) {
		t.Helper()
		p, err := tenant.TaskEvents(t.Context(), "mail", id, client.PageOptions{Cursor: cursor, Limit: limit})
		if err != nil || p.NextCursor == nil {
			t.Fatalf("TaskEvents = %+v, %v, want a page with a cursor", p, err)
		}
		for _, task := range p.Items {
			texts = append(texts, task.TaskID+" "+string(task.State))
		}
		return texts, *p.NextCursor
	}
	if got, _ := page("a", "", 0); !cmp.Equal(got, []string{"a pending", "a cancelled"}) {
		t.Errorf("events of a: got %q, want its own", got)
	}
	got, cursor := page("", "", 1)
	rest, cursor := page("", cursor, 0)
	got = append(got, rest...)
	if len(got) != 3 {
		t.Errorf("events of the type: got %q, want 3", got)
	}
	if none, again := page("", cursor, 0); len(none) != 0 || again != cursor {
		t.Errorf("behind the last event: got %q and the cursor %s, want none and the same", none, again)
	}
	create("c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var followed []string
	_ = tenant.FollowTasks(ctx, "mail", cursor, func(task api.Task) error { // it ends with ctx
		followed = append(followed, task.TaskID)
		if len(followed) == 1 {
			create("d")
		} else {
			cancel()
		}
		return nil
	})
	if !cmp.Equal(followed, []string{"c", "d"}) {
		t.Errorf("followed %q, want c and d", followed)
	}
}
