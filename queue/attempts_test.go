package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// by claims one job of emails for a worker on a host.
func (f *fixture) by(t testing.TB, worker, host string) api.FetchedJob {
	t.Helper()
	jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: worker, Hostname: host, Count: 1})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("Fetch by %s: got %v and error %v, want one job", worker, jobs, err)
	}
	return jobs[0]
}

// settleBy settles a job by an ack, which must succeed.
func (f *fixture) settleBy(t testing.TB, ack api.JobAck) {
	t.Helper()
	if out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{ack}); err != nil || !out[0].OK {
		t.Fatalf("Ack: got %+v and error %v, want success", out, err)
	}
}

// A job has its attempts, also after its end: who had it where and when, and how each ended.
func TestJobsKeepTheirAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		start := f.clock.ms.Load()
		id := f.add(t, job(`1`, func(j *api.NewJob) { j.MaxAttempts = 3 }))[0].ID
		if got := f.get(t, id).Attempts; got != nil {
			t.Errorf("attempts of a job that no worker had: got %+v, want none", got)
		}
		next := func() { // the job is pending again, a minute later
			f.clock.advance(time.Minute)
			f.tend(t)
		}
		f.fail(t, f.by(t, "w1", "mail-1"), func(x *api.JobFail) { x.Error = strings.Repeat("é", 300) })
		next()
		zero, later := int64(0), int64(1000)
		f.fail(t, f.by(t, "w2", "a host"), func(x *api.JobFail) { x.SnoozeMS = &zero })
		next()
		f.fail(t, f.by(t, "w2", ""), func(x *api.JobFail) { x.SnoozeMS = &later })
		next()
		leased := f.by(t, "w3", "mail-3")
		f.settleBy(t, api.JobAck{ID: id, LeaseEpoch: leased.LeaseEpoch, Continue: true})
		next()
		leased = f.by(t, "w3", "mail-3")
		f.settleBy(t, api.JobAck{ID: id, LeaseEpoch: leased.LeaseEpoch, Hold: "look at it"})
		next()
		if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Approve: %v", err)
		}
		f.by(t, "w4", "mail-4") // its worker dies
		next()
		f.by(t, "w5", "mail-5")
		want := []api.JobAttempt{
			{Attempt: 1, LeaseEpoch: 1, WorkerID: "w1", Host: "mail-1", Outcome: api.AttemptFailed, Error: strings.Repeat("é", 128)},
			{Attempt: 2, LeaseEpoch: 2, WorkerID: "w2", Outcome: api.AttemptReleased},
			{Attempt: 2, LeaseEpoch: 3, WorkerID: "w2", Outcome: api.AttemptSnoozed},
			{Attempt: 2, LeaseEpoch: 4, WorkerID: "w3", Host: "mail-3", Outcome: api.AttemptContinued},
			{Attempt: 1, LeaseEpoch: 5, WorkerID: "w3", Host: "mail-3", Outcome: api.AttemptHeld},
			{Attempt: 1, LeaseEpoch: 6, WorkerID: "w4", Host: "mail-4", Outcome: api.AttemptLost, Code: api.CodeJobLeaseLost, Error: "the lease of worker w4 ran out"},
			{Attempt: 2, LeaseEpoch: 7, WorkerID: "w5", Host: "mail-5", Outcome: api.AttemptRunning},
		}
		for i := range want {
			want[i].StartedAtMS = start + int64(i)*time.Minute.Milliseconds()
			want[i].EndedAtMS = want[i].StartedAtMS
		}
		want[5].EndedAtMS += time.Minute.Milliseconds() // when maintenance found the lease
		want[6].EndedAtMS = 0
		got := f.get(t, id)
		if diff := cmp.Diff(want, got.Attempts); diff != "" || got.Host != "mail-5" {
			t.Errorf("attempts of an active job on %q (-want +got):\n%s", got.Host, diff)
		}
		f.clock.advance(time.Second)
		if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		want[6].Outcome, want[6].EndedAtMS = api.AttemptCancelled, f.clock.ms.Load()
		if diff := cmp.Diff(want, f.get(t, id).Attempts); diff != "" {
			t.Errorf("attempts of a cancelled job (-want +got):\n%s", diff)
		}
		revived, err := f.Retry(t.Context(), f.tenant, id)
		if err != nil || len(revived.Attempts) != len(want) {
			t.Fatalf("Retry: got %+v and error %v, want a job with %d attempts", revived, err, len(want))
		}
		f.ack(t, f.by(t, "w6", "mail-6"), `{"ok":true}`)
		want = append(want, api.JobAttempt{
			Attempt: 3, LeaseEpoch: 8, WorkerID: "w6", Host: "mail-6", StartedAtMS: f.clock.ms.Load(), EndedAtMS: f.clock.ms.Load(), Outcome: api.AttemptCompleted,
		})
		got = f.get(t, id)
		if diff := cmp.Diff(want, got.Attempts); diff != "" {
			t.Errorf("attempts of a completed job (-want +got):\n%s", diff)
		}
		if len(got.Errors) != 2 || got.Errors[0].Error != strings.Repeat("é", 300) {
			t.Errorf("errors: got %d, the first with %d bytes, want those of the failed and the lost attempt, whole", len(got.Errors), len(got.Errors[0].Error))
		}
		page, _, err := f.List(t.Context(), queue.List{Tenant: f.tenant, Namespace: namespace, Queue: emails, State: api.JobCompleted})
		if err != nil || len(page) != 1 || page[0].Attempts != nil || page[0].Host != "mail-6" {
			t.Errorf("List: got %+v and error %v, want a job on mail-6 without attempts", page, err)
		}
	})
}

// Ends that no attempt brought add none; those of the last attempt are the end of the job.
func TestAttemptsOfEndedJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		outcomes := func(id string) string {
			var out []string
			for _, a := range f.get(t, id).Attempts {
				out = append(out, fmt.Sprint(a.Attempt, " ", a.Outcome))
			}
			return strings.Join(out, ", ")
		}
		dead := f.add(t, job(`1`))[0].ID
		f.fail(t, f.by(t, "w1", ""), func(x *api.JobFail) { x.Fatal = true })
		crashed := f.add(t, job(`1`, func(j *api.NewJob) { j.MaxAttempts = 1 }))[0].ID
		f.by(t, "w1", "")
		f.clock.advance(time.Hour)
		f.tend(t)
		expires := f.clock.ms.Load() + 1000
		expired := f.add(t, job(`1`, func(j *api.NewJob) { j.ExpireAtMS = expires }))[0].ID
		f.clock.advance(time.Hour)
		if jobs := f.fetch(t, 1); len(jobs) != 0 { // the fetch ends it
			t.Errorf("fetch of an expired job: got %+v, want none", jobs)
		}
		moved := f.add(t, job(`1`))[0].ID
		f.fail(t, f.by(t, "w1", "mail-1"))
		if _, err := f.Move(t.Context(), f.tenant, moved, "other"); err != nil { // which makes a new epoch
			t.Fatalf("Move: %v", err)
		}
		if _, err := f.Cancel(t.Context(), f.tenant, moved); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		for id, want := range map[string]string{dead: "1 failed", crashed: "1 lost", expired: "", moved: "1 failed"} {
			if got := outcomes(id); got != want {
				t.Errorf("attempts of a job that is %s: got %q, want %q", f.get(t, id).DeadReason, got, want)
			}
		}
	})
}

// Records of an earlier release have neither a worker nor a start, and show what they have.
func TestAttemptsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	id := f.add(t, job(`1`))[0].ID
	f.fail(t, f.by(t, "w1", "mail-1"))
	keys := f.store.JobKeys(f.tenant)
	if err := f.store.Client().LSet(t.Context(), keys.Errors(id), 0, `{"epoch":1,"attempt":1,"error":"no route","at_ms":7}`).Err(); err != nil {
		t.Fatalf("LSet: %v", err)
	}
	want := []api.JobAttempt{{Attempt: 1, LeaseEpoch: 1, EndedAtMS: 7, Outcome: api.AttemptFailed, Error: "no route"}}
	if diff := cmp.Diff(want, f.get(t, id).Attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// A job that is continued without end keeps its last hundred attempts.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	id := f.add(t, job(`1`))[0].ID
	for range 102 {
		leased := f.by(t, "w1", "")
		f.settleBy(t, api.JobAck{ID: id, LeaseEpoch: leased.LeaseEpoch, Continue: true})
	}
	got := f.get(t, id).Attempts
	if len(got) != 100 || got[0].LeaseEpoch != 3 || got[99].LeaseEpoch != 102 {
		t.Errorf("got %d attempts, want those of the epochs 3 to 102", len(got))
	}
}

// An attempt of which the store has a failure that it did not complete ended as the run says: here
// the store died between the two, and the worker then acked.
func TestAttemptsOfInterruptedFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	id := f.add(t, job(`1`))[0].ID
	leased := f.by(t, "w1", "")
	if err := f.store.Client().RPush(t.Context(), f.store.JobKeys(f.tenant).Errors(id), `{"epoch":1,"attempt":1,"error":"no route","at_ms":7,"outcome":"failed"}`).Err(); err != nil {
		t.Fatalf("RPush: %v", err)
	}
	f.ack(t, leased, "")
	if got := f.get(t, id).Attempts; len(got) != 1 || got[0].Outcome != api.AttemptCompleted {
		t.Errorf("attempts: got %+v, want a completed one", got)
	}
}
