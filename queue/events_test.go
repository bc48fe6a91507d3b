package queue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// recorded returns the events of the tenant's log.
func (f *fixture) recorded(t testing.TB) []event.Event {
	t.Helper()
	page, err := events.New(f.store).Read(t.Context(), f.tenant, "", 100_000)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return page.Events
}

// history returns the types of a job's events, without those about approvals, each with the attempt.
func (f *fixture) history(t testing.TB, id string) string {
	t.Helper()
	var out []string
	for _, e := range f.recorded(t) {
		if e.Subject == "jobs/"+id && strings.HasPrefix(e.Type, "job.") {
			out = append(out, strings.TrimPrefix(e.Type, "job.")+string(rune('0'+e.Data.Attempt)))
		}
	}
	return strings.Join(out, " ")
}

func (f *fixture) recordEvents(t testing.TB, mode string) {
	t.Helper()
	if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{Events: &mode}); err != nil {
		t.Fatalf("Configure with events %q: %v", mode, err)
	}
}

// Each change of a job's state is an event, in the order of the changes.
func TestJobsRecordEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.recordEvents(t, event.RecordAll)
		first := f.add(t, job(`1`, func(j *api.NewJob) { j.MaxAttempts = 2 }))[0].ID
		f.fail(t, f.fetch(t, 1)[0], func(x *api.JobFail) { x.Error = "no route" })
		f.clock.advance(time.Hour)
		f.tend(t) // promotes it, which is no event
		f.fail(t, f.fetch(t, 1)[0])
		if _, err := f.Retry(t.Context(), f.tenant, first); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		f.ack(t, f.fetch(t, 1)[0], `{"ok":true}`)
		if got, want := f.history(t, first), "enqueued0 started1 failed1 retrying1 started2 failed2 dead2 revived2 started3 completed3"; got != want {
			t.Errorf("events of a job that is retried:\ngot  %s\nwant %s", got, want)
		}
		at := slices.IndexFunc(f.recorded(t), func(e event.Event) bool { return e.Type == event.JobFailed })
		want := event.Data{Namespace: namespace, Queue: emails, Attempt: 1, WorkerID: "w1", Error: "no route"}
		if diff := cmp.Diff(want, f.recorded(t)[at].Data); diff != "" {
			t.Errorf("data of job.failed (-want +got):\n%s", diff)
		}

		held := f.add(t, job(`1`, func(j *api.NewJob) { j.Hold = true }))[0].ID
		if _, err := f.Approve(t.Context(), f.tenant, held); err != nil {
			t.Fatalf("Approve: %v", err)
		}
		leased := f.fetch(t, 1)[0]
		if _, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: leased.ID, LeaseEpoch: leased.LeaseEpoch, Continue: true}}); err != nil {
			t.Fatalf("Ack: %v", err)
		}
		f.fetch(t, 1)
		f.clock.advance(time.Hour)
		f.tend(t)
		if _, err := f.Cancel(t.Context(), f.tenant, held); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		if got, want := f.history(t, held), "enqueued0 released0 started1 continued1 started1 failed1 retrying1 cancelled1"; got != want {
			t.Errorf("events of a job that is held:\ngot  %s\nwant %s", got, want)
		}
	})
}

// A job that is moved to another queue has not changed its state.
func TestMovesToAnotherQueueAreNoEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.recordEvents(t, event.RecordAll)
		all := event.RecordAll
		if _, err := f.Configure(t.Context(), f.tenant, namespace, "other", queue.Change{Events: &all}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		held := f.add(t, job(`1`, func(j *api.NewJob) { j.Hold = true }))[0].ID
		if _, err := f.Move(t.Context(), f.tenant, held, "other"); err != nil {
			t.Fatalf("Move: %v", err)
		}
		if got, want := f.history(t, held), "enqueued0"; got != want {
			t.Errorf("events of a held job that is moved: got %s, want %s", got, want)
		}
	})
}

// The event of an ack has the attempt and the worker of the lease that is acked, also where another
// replica gave the job to them, and an earlier lease is known here.
func TestEventsHaveTheAckedLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	other := brokerOn(t, f.store)
	id := f.add(t, job(`1`))[0].ID
	f.fail(t, f.fetch(t, 1)[0]) // which this replica remembers
	f.clock.advance(time.Hour)
	f.tend(t)
	leased, err := other.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: `w@"\2"`, Count: 1})
	if err != nil || len(leased) != 1 {
		t.Fatalf("Fetch: got %v and error %v, want one job", leased, err)
	}
	if out := f.ack(t, leased[0], ""); !out.OK {
		t.Fatalf("ack: got %+v, want success", out)
	}
	found := f.recorded(t)
	want := event.Data{Namespace: namespace, Queue: emails, Attempt: 2, WorkerID: `w@"\2"`}
	if diff := cmp.Diff(want, found[len(found)-1].Data); found[len(found)-1].Subject != "jobs/"+id || diff != "" {
		t.Errorf("data of job.completed of %s (-want +got):\n%s", found[len(found)-1].Subject, diff)
	}
}

// A log that no call trims again expires.
func TestLogsOfEventsExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`)) // the first call, which finds no log to trim
		f.ack(t, f.fetch(t, 1)[0], "")
		left, err := f.store.Client().PTTL(t.Context(), f.store.JobKeys(f.tenant).Events()).Result()
		if err != nil || left <= 0 || left > events.RetentionMS*time.Millisecond+time.Minute {
			t.Errorf("time to live of a new log: got %s and error %v, want about a day", left, err)
		}
	})
}

// A queue records the ends of jobs, if its configuration names no others.
func TestQueuesChooseTheirEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		run := func() (ids []string) {
			for _, j := range f.add(t, job(`1`), job(`2`), job(`3`)) {
				ids = append(ids, j.ID)
			}
			leased := f.fetch(t, 3)
			f.ack(t, leased[0], "")
			f.ack(t, leased[1], `{"ok":true}`)
			f.fail(t, leased[2], func(x *api.JobFail) { x.Fatal = true })
			return ids
		}
		for _, tc := range []struct{ mode, acked, failed string }{
			{"", "completed1", "dead1"},
			{event.RecordOff, "", ""},
			{event.RecordAll, "enqueued0 started1 completed1", "enqueued0 started1 failed1 dead1"},
			{event.RecordEnds, "completed1", "dead1"},
		} {
			if tc.mode != "" {
				f.recordEvents(t, tc.mode)
			}
			ids := run()
			got := []string{f.history(t, ids[0]), f.history(t, ids[1]), f.history(t, ids[2])}
			if diff := cmp.Diff([]string{tc.acked, tc.acked, tc.failed}, got); diff != "" {
				t.Errorf("events of jobs with mode %q (-want +got):\n%s", tc.mode, diff)
			}
		}
	})
}

// A batch is one entry of the log, however many jobs it has.
func TestEventsOfABatchAreOneEntry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		jobs := slices.Repeat([]api.NewJob{job(`1`)}, 64)
		f.add(t, jobs...)
		var acks []api.JobAck
		for _, j := range f.fetch(t, len(jobs)) {
			acks = append(acks, api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch})
		}
		for range 2 { // a repeat records nothing
			if _, err := f.Ack(t.Context(), f.tenant, acks); err != nil {
				t.Fatalf("Ack: %v", err)
			}
		}
		entries, err := f.store.Client().XLen(t.Context(), f.store.JobKeys(f.tenant).Events()).Result()
		if found := f.recorded(t); err != nil || entries != 1 || len(found) != 64 || found[63].Data.WorkerID != "w1" {
			t.Errorf("events of 64 acks: got %d entries, error %v, %d events; want 1 entry and 64 events of w1", entries, err, len(found))
		}
	})
}

// A batch has events of its creation, its seal and its end, with the counts.
func TestBatchesRecordEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := event.WithActor(t.Context(), "key_1")
		batch, err := f.CreateBatch(ctx, f.tenant, namespace, &api.BatchCallback{Queue: "reports"})
		if err != nil {
			t.Fatalf("CreateBatch: %v", err)
		}
		f.add(t, job(`1`, inBatch(batch.ID)), job(`2`, inBatch(batch.ID), func(j *api.NewJob) { j.MaxAttempts = 1 }))
		for range 2 {
			if _, err := f.SealBatch(ctx, f.tenant, namespace, batch.ID); err != nil {
				t.Fatalf("SealBatch: %v", err)
			}
		}
		leased := f.fetch(t, 2)
		f.ack(t, leased[0], "")
		f.fail(t, leased[1])
		f.settle(t)
		var got []event.Event
		for _, e := range f.recorded(t) {
			if e.Kind() == event.KindBatches {
				e.ID, e.Time = "", ""
				got = append(got, e)
			}
		}
		of := func(kind, actor string, d event.Data) event.Event {
			d.Namespace = namespace
			return event.Event{SpecVersion: "1.0", Source: "/v1/tenants/" + f.tenant, Type: kind, Subject: "batches/" + batch.ID, Actor: actor, Data: d}
		}
		want := []event.Event{
			of(event.BatchCreated, "key_1", event.Data{}), of(event.BatchSealed, "key_1", event.Data{}),
			of(event.BatchEnded, "", event.Data{JobID: batch.CallbackID, Batch: &event.BatchCounts{Total: 2, Succeeded: 1, Failed: 1}}),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// Changes that an operator makes have the operator as their actor.
func TestMovesHaveTheirActor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		if _, err := f.Cancel(event.WithActor(t.Context(), "key_1"), f.tenant, id); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		got := f.recorded(t)
		if len(got) != 1 || got[0].Type != event.JobCancelled || got[0].Actor != "key_1" {
			t.Errorf("events: got %+v, want job.cancelled by key_1", got)
		}
	})
}

// An enqueue that was interrupted before its event has it when the sweeper completes it.
func TestCompletedEnqueuesRecordEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for mode, want := range map[string]string{event.RecordAll: "enqueued0", event.RecordEnds: ""} {
			f.recordEvents(t, mode)
			id := f.add(t, job(`1`))[0].ID
			q := f.store.JobKeys(f.tenant).Queue(namespace, emails)
			if err := f.store.Client().ZRem(t.Context(), q.Set(string(api.JobPending)), id).Err(); err != nil {
				t.Fatalf("ZRem: %v", err)
			}
			if err := f.store.Client().Del(t.Context(), f.store.JobKeys(f.tenant).Events()).Err(); err != nil {
				t.Fatalf("Del: %v", err)
			}
			states, err := f.Standing(t.Context(), f.tenant, []string{id}) // completes it, as the sweeper does
			if err != nil || states[0] != api.JobPending {
				t.Fatalf("Standing: got %v, %v, want a pending job", states, err)
			}
			if got := f.history(t, id); got != want {
				t.Errorf("events with %s: got %q, want %q", mode, got, want)
			}
			leased := f.fetch(t, 1)
			f.fail(t, leased[0])
			f.clock.advance(time.Hour)
			f.tend(t)
			if err := f.store.Client().ZRem(t.Context(), q.Set(string(api.JobPending)), id).Err(); err != nil {
				t.Fatalf("ZRem: %v", err)
			}
			before := f.history(t, id)
			if _, err := f.Standing(t.Context(), f.tenant, []string{id}); err != nil {
				t.Fatalf("Standing: %v", err)
			}
			if got := f.history(t, id); got != before {
				t.Errorf("events of a job that has run, with %s: got %q, want %q", mode, got, before)
			}
			f.ack(t, f.fetch(t, 1)[0], "")
		}
	})
}
