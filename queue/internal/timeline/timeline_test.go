package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// logged returns an event of a job, which is the n-th of the log.
func logged(n int, kind string, atMS int64, attempt int) event.Event {
	return event.Event{
		ID: fmt.Sprintf("%d-0.0", n), Type: kind, Time: time.UnixMilli(atMS).UTC().Format("2006-01-02T15:04:05.000Z"), Data: event.Data{Attempt: attempt},
	}
}

// TestMerge: an event and the change in the record that it records are one entry; attempts of the
// same number are told apart by their times.
func TestMerge(t *testing.T) {
	t.Parallel()
	known := func(kind string, atMS int64, attempt int) event.TimelineEntry {
		return event.TimelineEntry{Type: kind, AtMS: atMS, Attempt: attempt, Source: event.SourceRecord}
	}
	for name, tc := range map[string]struct {
		logged []event.Event
		known  []event.TimelineEntry
		want   string // the number of an event, or the time of a change of the record
	}{
		"nothing":         {nil, nil, ""},
		"the log only":    {[]event.Event{logged(1, event.JobEnqueued, 10, 0), logged(2, event.JobReleased, 20, 0)}, nil, "#1 #2"},
		"the record only": {nil, []event.TimelineEntry{known(event.JobEnqueued, 10, 0), known(event.JobStarted, 10, 1)}, "@10 @10"},
		"both": {
			[]event.Event{logged(1, event.JobEnqueued, 10, 0), logged(2, event.JobStarted, 21, 1)},
			[]event.TimelineEntry{known(event.JobEnqueued, 10, 0), known(event.JobStarted, 20, 1)}, "#1 #2",
		},
		"an event that was recorded twice": {
			[]event.Event{logged(1, event.JobStarted, 20, 1), logged(2, event.JobStarted, 20, 1)},
			[]event.TimelineEntry{known(event.JobStarted, 20, 1)}, "#1",
		},
		"two attempts of one number": {
			[]event.Event{logged(1, event.JobStarted, 20, 1), logged(2, event.JobStarted, 60, 1)},
			[]event.TimelineEntry{known(event.JobStarted, 20, 1), known(event.JobRetrying, 40, 1), known(event.JobStarted, 60, 1)}, "#1 @40 #2",
		},
		"another attempt": {
			[]event.Event{logged(1, event.JobStarted, 60, 2)},
			[]event.TimelineEntry{known(event.JobStarted, 20, 1)}, "@20 #1",
		},
		"an event of another time": {
			[]event.Event{logged(1, event.JobStarted, 20, 1)},
			[]event.TimelineEntry{known(event.JobStarted, 20+sameMS+1, 1)}, "#1 @1021",
		},
		"one millisecond": {
			[]event.Event{logged(1, event.JobDead, 20, 1)},
			[]event.TimelineEntry{known(event.JobStarted, 20, 1), known(event.JobFailed, 20, 1), known(event.JobDead, 20, 1)}, "@20 @20 #1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := merge(tc.logged, tc.known)
			var got []string
			for _, e := range out {
				if e.Source == event.SourceLog {
					number, _, _ := strings.Cut(e.EventID, "-")
					got = append(got, "#"+number)
				} else {
					got = append(got, fmt.Sprint("@", e.AtMS))
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("merge: got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSpans: the spans of a busy log are apart, ascend, begin where the first search ended, and are
// bounded.
func TestSpans(t *testing.T) {
	t.Parallel()
	at := func(times ...int64) (out []event.TimelineEntry) {
		for _, ms := range times {
			out = append(out, event.TimelineEntry{AtMS: ms})
		}
		return out
	}
	for name, tc := range map[string]struct {
		known []event.TimelineEntry
		from  int64
		want  []events.Span
	}{
		"none":               {nil, 0, nil},
		"one":                {at(10_000), 0, []events.Span{{FromMS: 9750, ToMS: 11_000}}},
		"near":               {at(10_000, 11_100), 0, []events.Span{{FromMS: 9750, ToMS: 12_100}}},
		"apart":              {at(10_000, 11_500), 0, []events.Span{{FromMS: 9750, ToMS: 11_000}, {FromMS: 11_250, ToMS: 12_500}}},
		"behind the search":  {at(10_000, 20_000), 10_500, []events.Span{{FromMS: 10_500, ToMS: 11_000}, {FromMS: 19_750, ToMS: 21_000}}},
		"within the search":  {at(10_000), 11_001, nil},
		"backwards by a bit": {at(10_000, 10_100, 10_100), 0, []events.Span{{FromMS: 9750, ToMS: 11_100}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, spansOf(tc.known, tc.from)); diff != "" {
				t.Errorf("spansOf (-want +got):\n%s", diff)
			}
		})
	}
	var many []int64
	for i := range int64(100) {
		many = append(many, i*10_000)
	}
	if got := spansOf(at(many...), 0); len(got) != maxSpans || got[maxSpans-1].ToMS != 991_000 {
		t.Errorf("spansOf 100 times: got %d spans, the last %+v; want the last %d", len(got), got[len(got)-1], maxSpans)
	}
}

// TestBusyLogs: where the events of others use up the first half of the budget, the events around
// the times in the record are found nevertheless, and the timeline says what it may lack.
func TestBusyLogs(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		tenant, now := storagetest.Tenant(t), time.Now().UnixMilli()
		created, ended := now-60_000, now-10_000
		j := &api.Job{ID: api.NewJobID(), State: api.JobCompleted, Attempt: 1, CreatedAtMS: created, EndedAtMS: ended, Attempts: []api.JobAttempt{
			{Attempt: 1, LeaseEpoch: 1, WorkerID: "w1", StartedAtMS: ended - 1, EndedAtMS: ended, Outcome: api.AttemptCompleted},
		}}
		add := func(id, kind string, atMS int64, jobs ...string) {
			t.Helper()
			err := s.Client().Do(t.Context(), "XADD", s.JobKeys(tenant).Events(), id, "type", kind, "queue", "shop/mail", "at", atMS, "ids", strings.Join(jobs, " "), "details", `{"attempt":1}`).Err()
			if err != nil {
				t.Fatalf("XADD: %v", err)
			}
		}
		others := strings.Fields(strings.Repeat("other ", 1000))
		for i := range int64(8) {
			add(fmt.Sprintf("%d-0", created+1+i), event.JobEnqueued, created, others...)
		}
		add(fmt.Sprintf("%d-0", created+30_000), event.JobHeld, created+30_000, j.ID) // in no span
		add(fmt.Sprintf("%d-0", ended+1), event.JobCompleted, ended, "other", j.ID)
		got, err := Of(t.Context(), events.New(s), tenant, j, event.RecordAll, now)
		if err != nil {
			t.Fatalf("Of: %v", err)
		}
		var out []string
		for _, e := range got.Entries {
			out = append(out, e.Source+" "+e.Type)
		}
		if diff := cmp.Diff([]string{"record job.enqueued", "record job.started", "log job.completed"}, out); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
		if len(got.Missing) != 1 || got.Missing[0].Reason != event.MissingBound || got.Complete {
			t.Errorf("missing: got %+v, complete %t; want %s only", got.Missing, got.Complete, event.MissingBound)
		}
	})
}

// TestLongTimelinesAreBounded: a job that is snoozed for ever does not make an answer without end.
func TestLongTimelinesAreBounded(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	tenant, now := storagetest.Tenant(t), time.Now().UnixMilli()
	j := &api.Job{ID: api.NewJobID(), State: api.JobPending, CreatedAtMS: now - 5000}
	pipe := s.Client().Pipeline()
	for i := range int64(1200) {
		pipe.Do(t.Context(), "XADD", s.JobKeys(tenant).Events(), fmt.Sprintf("%d-0", now-2000+i), "type", event.JobRetrying, "queue", "shop/mail", "at", now-2000+i, "ids", j.ID, "details", `{"attempt":1}`)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("XADD: %v", err)
	}
	got, err := Of(t.Context(), events.New(s), tenant, j, event.RecordAll, now)
	if err != nil {
		t.Fatalf("Of: %v", err)
	}
	if len(got.Entries) != maxEntries || got.Entries[maxEntries-1].AtMS != now-2000+1199 || got.Complete {
		t.Errorf("got %d entries, complete %t; want the last %d, not complete", len(got.Entries), got.Complete, maxEntries)
	}
}
