package tasks_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// seen returns the events of the fixture's type as short texts.
func (f *fixture) seen(t *testing.T, from tasks.Position) []string {
	t.Helper()
	var out []string
	for _, e := range must[[]tasks.Event](t)(f.Events(t.Context(), f.tenant, kind, from)) {
		out = append(out, fmt.Sprintf("%s %s %d %s", e.Task.TaskID, e.Task.State, e.Task.CurrentStep, e.Task.Worker))
	}
	return out
}

// Each change of a task is an event in its order, with the state after it; a sign of life is
// none.
func TestEventsOfTasks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, api.NewTask{StepCount: 3, Payload: []byte(`{"a":1}`)})
		f.clock.advance(time.Second)
		must[*api.Task](t)(f.claim(t, "w1"))
		must[*api.Task](t)(f.claim(t, "w1"))
		must[*api.Task](t)(f.step(t, "w1", 1))
		f.clock.advance(time.Second)
		must[*api.Task](t)(f.step(t, "w1", 1))
		f.clock.advance(time.Hour)
		f.sweep(t)
		middle := must[tasks.Position](t)(f.Latest(t.Context(), f.tenant, kind))
		must[*api.Task](t)(f.claim(t, "w2"))
		must[*api.Task](t)(f.step(t, "w2", 3))
		_, err := f.step(t, "w1", 2)
		refused(t, err, api.CodeTaskState)
		// The clock of this replica is behind: the order stays.
		f.clock.advance(-2 * time.Hour)
		must[*api.Task](t)(f.complete(t, "w2", "s3://out"))
		must[*api.Task](t)(f.complete(t, "w2", "s3://out"))
		first := []string{"job_123 pending 0 ", "job_123 claimed 0 w1", "job_123 running 1 w1", "job_123 pending 1 "}
		second := []string{"job_123 claimed 1 w2", "job_123 running 3 w2", "job_123 completed 3 w2"}
		if diff := cmp.Diff(append(first, second...), f.seen(t, tasks.Position{})); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(second, f.seen(t, middle)); diff != "" {
			t.Errorf("events behind %s (-want +got):\n%s", middle, diff)
		}
		events := must[[]tasks.Event](t)(f.Events(t.Context(), f.tenant, kind, tasks.Position{}))
		for i, e := range events {
			if e.Task.Payload != nil {
				t.Errorf("event %d: got payload %s, want none", i, e.Task.Payload)
			}
			at := must[tasks.Position](t)(tasks.ParsePosition(e.Position.String()))
			if behind := f.seen(t, at); len(behind) != len(events)-1-i {
				t.Errorf("behind event %d: got events %q, want the %d others", i, behind, len(events)-1-i)
			}
		}
		if last := must[tasks.Position](t)(f.Latest(t.Context(), f.tenant, kind)); len(f.seen(t, last)) != 0 {
			t.Errorf("behind the last event: got %q, want none", f.seen(t, last))
		}
		for _, kind := range []string{"progress", "terminal"} {
			if ttl := f.store.Client().PTTL(t.Context(), f.store.TaskEvents(f.tenant, "email-send", kind)).Val(); ttl <= 0 || ttl > api.TaskRetentionMS*time.Millisecond {
				t.Errorf("stream %s: got a time-to-live of %s, want at most that of ended tasks", kind, ttl)
			}
		}
	})
}

// More events than a page has are read in their order, without a gap.
func TestPagesOfEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storagetest.AllBackends()[0].Config(t))
	const all = tasks.EventsPage/2 + 30
	for i := range all {
		name := fmt.Sprintf("t%d", i)
		_, _, err := f.Create(t.Context(), f.tenant, kind, name, api.NewTask{})
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		must[*api.Task](t)(f.Cancel(t.Context(), f.tenant, kind, name))
		f.clock.advance(2 * time.Millisecond)
	}
	var states []api.TaskState
	at := tasks.Position{}
	for pages := 0; ; pages++ {
		page := must[[]tasks.Event](t)(f.Events(t.Context(), f.tenant, kind, at))
		if len(page) == 0 {
			if pages != 2 {
				t.Errorf("got %d pages, want 2", pages)
			}
			break
		}
		for _, e := range page {
			if want := fmt.Sprintf("t%d", len(states)/2); e.Task.TaskID != want {
				t.Fatalf("event %d: got task %s, want %s", len(states), e.Task.TaskID, want)
			}
			states, at = append(states, e.Task.State), e.Position
		}
	}
	if len(states) != 2*all {
		t.Errorf("got %d events, want %d", len(states), 2*all)
	}
}

func TestPositionsOfEvents(t *testing.T) {
	t.Parallel()
	for _, good := range []string{",", "1-0,", ",5-18446744073709551615", "1-0,2-0"} {
		if p, err := tasks.ParsePosition(good); err != nil || p.String() != good {
			t.Errorf("ParsePosition(%q) = %s, %v, want it and no error", good, p, err)
		}
	}
	for _, bad := range []string{"", "1-0", "1,2", "1-0,2-0,3-0", "a-0,", "1--1,", "18446744073709551616-0,", "+,", "1-0\n,"} {
		if _, err := tasks.ParsePosition(bad); api.ErrorCode(err) != api.CodeValidationCursor {
			t.Errorf("ParsePosition(%q) = %v, want %s", bad, err, api.CodeValidationCursor)
		}
	}
}

// entries returns the events of the task in the log of the tenant, each with its worker and actor.
func (f *fixture) entries(t *testing.T) (out []string) {
	t.Helper()
	page := must[*events.Page](t)(events.New(f.store).Read(t.Context(), f.tenant, "", 100))
	for _, e := range page.Events {
		if e.Kind() != event.KindTasks {
			continue
		}
		out = append(out, e.Type+" "+e.Data.WorkerID+" "+e.Actor)
		if want := "tasks/" + kind + "/" + id; e.Subject != want || e.Data.Namespace == "" || e.Data.Queue == "" || e.Data.JobID == "" {
			t.Errorf("an event: got %+v, want subject %s with namespace, queue and job", e, want)
		}
	}
	return out
}

// Changes of a task's state are events of the tenant; steps are not.
func TestTasksRecordEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, api.NewTask{StepCount: 3})
		if _, created, err := f.Create(t.Context(), f.tenant, kind, id, api.NewTask{StepCount: 3}); created || err != nil {
			t.Errorf("Create again: got created %t and error %v, want neither", created, err)
		}
		must[*api.Task](t)(f.claim(t, "w1"))
		must[*api.Task](t)(f.claim(t, "w1"))
		must[*api.Task](t)(f.step(t, "w1", 1))
		f.clock.advance(time.Hour)
		f.sweep(t)
		ctx := event.WithActor(t.Context(), "key_1")
		must[*api.Task](t)(f.Claim(ctx, f.tenant, kind, id, api.TaskClaim{Worker: "w2"}))
		must[*api.Task](t)(f.step(t, "w2", 3))
		must[*api.Task](t)(f.complete(t, "w2", "s3://out"))
		must[*api.Task](t)(f.complete(t, "w2", "s3://out"))
		want := []string{"task.created  ", "task.claimed w1 ", "task.republished  sous/tasks", "task.claimed w2 key_1", "task.completed w2 "}
		if diff := cmp.Diff(want, f.entries(t)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A crash of the store within a write loses no event: a repeat of the call adds it.
func TestEventsSurviveCuts(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for cut := range 12 {
		f := newFixture(t, storage.Config{URL: server.URL})
		f.create(t, api.NewTask{})
		broken := tasksOn(t, storagetest.Open(t, storage.Config{URL: server.URL, Clock: f.clock.now, ScriptPrelude: storagetest.CutAfter(cut)}), f.broker, zap.NewNop())
		_, err := broken.Cancel(t.Context(), f.tenant, kind, id)
		if err != nil && f.get(t).State == api.TaskCancelled {
			if got := f.seen(t, tasks.Position{}); len(got) != 2 {
				t.Errorf("cut after %d writes: the task is cancelled with the events %q, want one of its end", cut, got)
			}
			if got := f.entries(t); !slices.Contains(got, "task.cancelled  ") {
				t.Errorf("cut after %d writes: the task is cancelled with the tenant's events %q, want one of its end", cut, got)
			}
		}
		must[*api.Task](t)(f.Cancel(t.Context(), f.tenant, kind, id))
		if got := f.seen(t, tasks.Position{}); len(got) < 2 || got[len(got)-1] != "job_123 cancelled 0 " {
			t.Errorf("cut after %d writes, and again: got events %q, want the end", cut, got)
		}
	}
}
