package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// timeline returns the changes of a job as words, with the attempt, and "*" behind those of the
// record, and the reasons why changes may be missing.
func (f *fixture) timeline(t testing.TB, id string) (changes, missing string) {
	t.Helper()
	got, err := f.Timeline(t.Context(), f.tenant, f.get(t, id))
	if err != nil {
		t.Fatalf("Timeline: %v", err)
	}
	var out, reasons []string
	for i, e := range got.Entries {
		word := fmt.Sprint(strings.TrimPrefix(e.Type, "job."), e.Attempt)
		if e.Source == event.SourceRecord {
			word += "*"
		}
		if (e.Source == event.SourceLog) != (e.EventID != "") {
			t.Errorf("Timeline: entry %d: got source %s and event %q, want an event of the log only", i, e.Source, e.EventID)
		}
		if i > 0 && e.AtMS < got.Entries[i-1].AtMS {
			t.Errorf("Timeline: time of entry %d, %s: got %d, want at least that of the entry before it, %d", i, word, e.AtMS, got.Entries[i-1].AtMS)
		}
		if strings.HasPrefix(e.Type, "job.") {
			out = append(out, word)
		}
	}
	for _, m := range got.Missing {
		reasons = append(reasons, m.Reason)
		if m.Detail == "" {
			t.Errorf("Timeline: detail of the reason %s: got none, want words", m.Reason)
		}
	}
	if got.Complete != (len(reasons) == 0) {
		t.Errorf("Timeline: got complete %t with the reasons %q, want complete only without one", got.Complete, reasons)
	}
	return strings.Join(out, " "), strings.Join(reasons, " ")
}

// atPresent sets the clock to that of the store, by which the log is searched.
func (f *fixture) atPresent() { f.clock.ms.Store(time.Now().UnixMilli()) }

// live leads a job through a failure, a lost lease, a continuation, a hold, and its completion.
func (f *fixture) live(t *testing.T) (id string) {
	t.Helper()
	zero := int64(0)
	id = f.add(t, job(`1`))[0].ID
	f.fail(t, f.by(t, "w1", "mail-1"), func(x *api.JobFail) { x.RetryAfterMS = &zero })
	f.clock.advance(5 * time.Millisecond)
	f.tend(t)
	jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w2", Lease: time.Second})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("Fetch: got %v and error %v, want one job", jobs, err)
	}
	f.clock.advance(1005 * time.Millisecond) // its worker died
	f.tend(t)
	leased := f.by(t, "w3", "mail-3")
	f.clock.advance(5 * time.Millisecond)
	f.settleBy(t, api.JobAck{ID: id, LeaseEpoch: leased.LeaseEpoch, Continue: true})
	leased = f.by(t, "w3", "mail-3")
	f.clock.advance(5 * time.Millisecond)
	f.settleBy(t, api.JobAck{ID: id, LeaseEpoch: leased.LeaseEpoch, Hold: "look at it"})
	f.clock.advance(5 * time.Millisecond)
	if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
		t.Fatalf("Approve: %v", err)
	}
	leased = f.by(t, "w4", "mail-4")
	f.clock.advance(5 * time.Millisecond)
	f.ack(t, leased, `{"ok":true}`)
	return id
}

// The timeline of a job has its events where the queue recorded them, its record elsewhere, and says
// what it may lack.
func TestTimelines(t *testing.T) {
	t.Parallel()
	const (
		started = "started1 failed1 retrying1 started2 failed2 retrying2 started3 continued3 started1 held1 released0 started1 completed1"
		record  = "started1* failed1* started2* failed2* started3* continued3* started1* held1* started1*"
	)
	for mode, want := range map[string][2]string{
		event.RecordAll:  {"enqueued0 " + started, ""},
		event.RecordEnds: {"enqueued0* " + record + " completed1", event.MissingSetting},
		event.RecordOff:  {"enqueued0* " + record + " completed1*", event.MissingSetting},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) {
				f.atPresent()
				f.recordEvents(t, mode)
				id := f.live(t)
				f.add(t, job(`1`)) // whose event is none of the job's
				changes, missing := f.timeline(t, id)
				if changes != want[0] || missing != want[1] {
					t.Errorf("timeline:\ngot  %s, missing %q\nwant %s, missing %q", changes, missing, want[0], want[1])
				}
			})
		})
	}
}

// An entry has the host of the attempt, which its event has not.
func TestTimelineEntries(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.atPresent()
	at := f.clock.ms.Load()
	id := f.add(t, job(`1`))[0].ID
	f.clock.advance(time.Millisecond)
	leased := f.by(t, "w1", "mail-1")
	f.clock.advance(time.Millisecond)
	f.fail(t, leased, func(x *api.JobFail) { x.Fatal, x.Error = true, "no route" })
	got, err := f.Timeline(t.Context(), f.tenant, f.get(t, id))
	if err != nil {
		t.Fatalf("Timeline: %v", err)
	}
	of := event.TimelineEntry{Source: event.SourceRecord, Attempt: 1, WorkerID: "w1", Host: "mail-1"}
	start, failed, dead := of, of, of
	start.AtMS, start.Type = at+1, event.JobStarted
	failed.AtMS, failed.Type, failed.Error = at+2, event.JobFailed, "no route"
	dead.AtMS, dead.Type, dead.Source, dead.Reason, dead.Error = at+2, event.JobDead, event.SourceLog, api.DeadFatal, "no route"
	dead.EventID = got.Entries[len(got.Entries)-1].EventID
	want := []event.TimelineEntry{{AtMS: at, Type: event.JobEnqueued, Source: event.SourceRecord}, start, failed, dead}
	if diff := cmp.Diff(want, got.Entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// Changes that an operator made are in the timeline of a job that is cancelled or held.
func TestTimelinesOfSteeredJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.atPresent()
		cancelled := f.add(t, job(`1`))[0].ID
		f.by(t, "w1", "mail-1")
		f.clock.advance(time.Millisecond)
		if _, err := f.Cancel(t.Context(), f.tenant, cancelled); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		held := f.add(t, job(`1`))[0].ID
		if _, err := f.Hold(t.Context(), f.tenant, held, "ask Ada"); err != nil {
			t.Fatalf("Hold: %v", err)
		}
		for id, want := range map[string]string{cancelled: "enqueued0* started1* cancelled1", held: "enqueued0* held0*"} {
			if got, _ := f.timeline(t, id); got != want {
				t.Errorf("timeline: got %s, want %s", got, want)
			}
		}
		f.recordEvents(t, event.RecordAll)
		if changes, missing := f.timeline(t, cancelled); changes != "enqueued0* started1* cancelled1" || missing != event.MissingUnrecorded {
			t.Errorf("timeline of a job that is older than the setting: got %s, missing %q; want missing %q", changes, missing, event.MissingUnrecorded)
		}
	})
}

// A job that is older than the log has what its record keeps.
func TestTimelinesOfOldJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.atPresent()
		f.recordEvents(t, event.RecordAll)
		id := f.live(t)
		f.clock.advance(25 * time.Hour)
		if err := f.store.Client().Del(t.Context(), f.store.JobKeys(f.tenant).Events()).Err(); err != nil { // as time does
			t.Fatalf("Del: %v", err)
		}
		changes, missing := f.timeline(t, id)
		const want = "enqueued0* started1* failed1* started2* failed2* started3* continued3* started1* held1* started1* completed1*"
		if changes != want || missing != event.MissingTrimmed {
			t.Errorf("timeline:\ngot  %s, missing %q\nwant %s, missing %q", changes, missing, want, event.MissingTrimmed)
		}
	})
}
