package events_test

import (
	stdcmp "cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// log is the log of one tenant.
type log struct {
	*events.Log
	store  *storage.Store
	tenant string
}

// each runs test with an empty log on every store.
func each(t *testing.T, test func(t *testing.T, l *log)) {
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		test(t, &log{events.New(s), s, storagetest.Tenant(t)})
	})
}

// entry has the fields that append writes.
type entry struct{ id, kind, queue, at, ids, details string }

// append adds an entry, as the scripts do. Fields without a value have one that does for most
// tests. It returns the entry's id.
func (l *log) append(t *testing.T, e entry) string {
	t.Helper()
	or := func(value, other string) string {
		if value == "" {
			return other
		}
		return value
	}
	id, err := l.store.Client().XAdd(t.Context(), &redis.XAddArgs{
		Stream: l.store.JobKeys(l.tenant).Events(), ID: or(e.id, "*"),
		Values: []string{
			"type", or(e.kind, event.JobCompleted), "queue", or(e.queue, "shop/mail"), "at", or(e.at, "1760000000998"),
			"ids", or(e.ids, "j1"), "details", or(e.details, `{"attempt":1}`),
		},
	}).Result()
	if err != nil {
		t.Fatalf("XAdd: %v", err)
	}
	return id
}

// trimTo removes the entries before id.
func (l *log) trimTo(t *testing.T, id string) {
	t.Helper()
	if err := l.store.Client().XTrimMinID(t.Context(), l.store.JobKeys(l.tenant).Events(), id).Err(); err != nil {
		t.Fatalf("XTrimMinID: %v", err)
	}
}

func (l *log) read(t *testing.T, from events.Position, limit int) *events.Page {
	t.Helper()
	page, err := l.Read(t.Context(), l.tenant, from, limit)
	if err != nil {
		t.Fatalf("Read(%s): %v", from, err)
	}
	return page
}

// texts returns events as id, type, subject.
func texts(page *events.Page) []string {
	out := []string{}
	for _, e := range page.Events {
		out = append(out, fmt.Sprintf("%s %s %s", e.ID, e.Type, e.Subject))
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// An entry has an event for each id; an empty detail is that of the id before it.
func TestEntryIsDecoded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		l.append(t, entry{id: "1760000001000-0", ids: "j1 j2 j3 j4", details: `{"attempt":1,"worker_id":"w1"}` + "\n\n" + `{"attempt":2,"error":"no such host","reason":"attempts"}` + "\n"})
		l.append(t, entry{id: "1760000001000-1", kind: event.JobDead, queue: "shop/fn.greet", ids: "j5 j6", details: "{}"})
		common := event.Data{Namespace: "shop", Queue: "mail"}
		want := []event.Event{}
		add := func(id, kind, job string, data event.Data) {
			want = append(want, event.Event{
				SpecVersion: "1.0", ID: id, Source: "/v1/tenants/" + l.tenant, Type: kind, Subject: "jobs/" + job, Time: "2025-10-09T08:53:20.998Z", Data: data,
			})
		}
		first, third := common, common
		first.Attempt, first.WorkerID = 1, "w1"
		third.Attempt, third.Error, third.Reason = 2, "no such host", "attempts"
		add("1760000001000-0.0", event.JobCompleted, "j1", first)
		add("1760000001000-0.1", event.JobCompleted, "j2", first)
		add("1760000001000-0.2", event.JobCompleted, "j3", third)
		add("1760000001000-0.3", event.JobCompleted, "j4", third)
		function := event.Data{Namespace: "shop", Queue: "fn.greet", Function: "greet"}
		add("1760000001000-1.0", event.JobDead, "j5", function)
		add("1760000001000-1.1", event.JobDead, "j6", function)
		same(t, "events", l.read(t, "", 100).Events, want)
	})
}

// A log is read in pages of any size, over the borders of entries, without a gap or a repeat.
func TestPagesContinueEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		const entries = 90 // more than one command reads
		want := []string{}
		for i := range entries {
			var ids []string
			for j := range 1 + i%4 {
				ids = append(ids, fmt.Sprintf("j%d_%d", i, j))
				want = append(want, fmt.Sprintf("%d-0.%d job.completed jobs/j%d_%d", 1000+i, j, i, j))
			}
			l.append(t, entry{id: fmt.Sprintf("%d-0", 1000+i), ids: strings.Join(ids, " ")})
		}
		for _, limit := range []int{1, 2, 7, 64, len(want), len(want) + 1} {
			got := []string{}
			var at events.Position
			for range len(want) + 2 {
				page := l.read(t, at, limit)
				if len(page.Events) > limit || page.Gap || page.Damaged != nil {
					t.Fatalf("Read(%s, %d): got %d events, gap %t, damaged %v, want at most %d and neither", at, limit, len(page.Events), page.Gap, page.Damaged, limit)
				}
				got = append(got, texts(page)...)
				at = page.Next
				if !page.More {
					break
				}
			}
			same(t, fmt.Sprintf("pages of %d", limit), got, want)
			if end, err := l.End(t.Context(), l.tenant); err != nil || end != at {
				t.Errorf("End: got %s, %v, want %s as after the last page", end, err, at)
			}
		}
		page := l.read(t, "1003-0.1", 3)
		same(t, "from within an entry", texts(page), []string{"1003-0.2 job.completed jobs/j3_2", "1003-0.3 job.completed jobs/j3_3", "1004-0.0 job.completed jobs/j4_0"})
		if page.Next != "1004-0.0" || !page.More {
			t.Errorf("Next, More: got %s, %t, want 1004-0.0 and true", page.Next, page.More)
		}
		if page := l.read(t, "1003-0.9", 1); len(page.Events) != 1 || page.Events[0].ID != "1004-0.0" {
			t.Errorf("behind the last event of an entry: got %v, want 1004-0.0", texts(page))
		}
	})
}

func TestSinceAndEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		if end, err := l.End(t.Context(), l.tenant); err != nil || end != "" {
			t.Fatalf("End of an empty log: got %q, %v, want none", end, err)
		}
		for _, id := range []string{"2000-0", "2000-1", "3000-0"} {
			l.append(t, entry{id: id, ids: "a b"})
		}
		for ms, want := range map[int64]int{-5: 6, 0: 6, 1: 6, 1999: 6, 2000: 6, 2001: 2, 3000: 2, 3001: 0, time.Now().UnixMilli(): 0} {
			page := l.read(t, events.Since(ms), 100)
			if len(page.Events) != want || page.Gap {
				t.Errorf("since %d: got %d events, gap %t, want %d without a gap", ms, len(page.Events), page.Gap, want)
			}
			if _, err := events.ParsePosition(string(events.Since(ms))); err != nil {
				t.Errorf("ParsePosition of Since(%d): %v", ms, err)
			}
		}
		if end, err := l.End(t.Context(), l.tenant); err != nil || end != "3000-0.1" {
			t.Errorf("End: got %s, %v, want 3000-0.1", end, err)
		}
	})
}

// A reader whose place is gone gets the events that are kept, and is told once.
func TestGapIsReportedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		for i := range 5 {
			l.append(t, entry{id: fmt.Sprintf("%d-0", 1000+i)})
		}
		l.trimTo(t, "1003-0")
		page := l.read(t, "1001-0.0", 1)
		same(t, "behind a gap", texts(page), []string{"1003-0.0 job.completed jobs/j1"})
		if !page.Gap {
			t.Error("Gap: got false, want true")
		}
		if page := l.read(t, page.Next, 10); page.Gap || len(page.Events) != 1 {
			t.Errorf("the next page: got gap %t and %d events, want no gap and 1", page.Gap, len(page.Events))
		}
		if page := l.read(t, "", 10); page.Gap {
			t.Error("Gap from the beginning: got true, want false")
		}
		if page := l.read(t, events.Since(1000), 10); page.Gap {
			t.Error("Gap of a time: got true, want false")
		}
		// All events have expired.
		if err := l.store.Client().Del(t.Context(), l.store.JobKeys(l.tenant).Events()).Err(); err != nil {
			t.Fatalf("Del: %v", err)
		}
		page = l.read(t, "1004-0.0", 10)
		if !page.Gap || page.More || len(page.Events) != 0 {
			t.Errorf("an expired log: got %+v, want a gap and no events", page)
		}
		if again := l.read(t, page.Next, 10); again.Gap || again.Next != page.Next {
			t.Errorf("the next page: got %+v, want the same place without a gap", again)
		}
		l.append(t, entry{id: "1004-1", ids: "j9"})
		same(t, "later events", texts(l.read(t, page.Next, 10)), []string{"1004-1.0 job.completed jobs/j9"})
	})
}

// A damaged entry hides only its own events.
func TestDamagedEntries(t *testing.T) {
	t.Parallel()
	for name, damaged := range map[string]entry{
		"time":          {at: "yesterday"},
		"first details": {details: "{"},
		"later details": {ids: "j1 j2", details: "{}\n[]"},
		"no ids":        {ids: " "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, l *log) {
				l.append(t, entry{id: "1000-0"})
				damaged.id = "1001-0"
				l.append(t, damaged)
				before := l.read(t, "1000-0.0", 10)
				if !before.Gap || before.More || len(before.Events) != 0 || !cmp.Equal(before.Damaged, []string{"1001-0"}) {
					t.Errorf("Read at a damaged entry: got %+v, want a gap and its id", before)
				}
				if page := l.read(t, before.Next, 10); page.Gap || page.Damaged != nil {
					t.Errorf("Read behind it: got %+v, want neither a gap nor its id", page)
				}
				l.append(t, entry{id: "1002-0"})
				page := l.read(t, "", 10)
				same(t, "around it", texts(page), []string{"1000-0.0 job.completed jobs/j1", "1002-0.0 job.completed jobs/j1"})
				if !page.Gap || !cmp.Equal(page.Damaged, []string{"1001-0"}) || page.Next != "1002-0.0" {
					t.Errorf("Read over a damaged entry: got %+v, want a gap, its id and the position of the last event", page)
				}
			})
		})
	}
}

// Select returns the events that are admitted, and ends after a bounded number of others.
func TestSelect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		var ids []string
		for i := range 1000 {
			ids = append(ids, "j"+strconv.Itoa(i))
		}
		const entries = 12
		for i := range entries {
			l.append(t, entry{id: fmt.Sprintf("%d-0", 1000+i), ids: strings.Join(ids, " ")})
		}
		l.append(t, entry{id: "2000-0", kind: event.JobDead, ids: "d1 d2 d3"})
		seen := 0
		dead := func(e *event.Event) bool {
			seen++
			return e.Type == event.JobDead
		}
		page, err := l.Select(t.Context(), l.tenant, "", 2, dead)
		if err != nil || len(page.Events) != 0 || !page.More || seen != events.MaxScan {
			t.Fatalf("Select: got %d events after %d, more %t, %v, want none after %d, and more", len(page.Events), seen, page.More, err, events.MaxScan)
		}
		page, err = l.Select(t.Context(), l.tenant, page.Next, 2, dead)
		if err != nil || !page.More {
			t.Fatalf("Select: got more %t, %v, want more", page.More, err)
		}
		same(t, "the second page", texts(page), []string{"2000-0.0 job.dead jobs/d1", "2000-0.1 job.dead jobs/d2"})
		page, err = l.Select(t.Context(), l.tenant, page.Next, 2, dead)
		if err != nil || page.More || page.Next != "2000-0.2" {
			t.Fatalf("Select: got more %t, next %s, %v, want the end at 2000-0.2", page.More, page.Next, err)
		}
		same(t, "the third page", texts(page), []string{"2000-0.2 job.dead jobs/d3"})
	})
}

func TestParsePosition(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0-0.0", "1760000001000-0.3", "1760000001000-18446744073709551615.0"} {
		if got, err := events.ParsePosition(text); err != nil || got != events.Position(text) {
			t.Errorf("ParsePosition(%q): got %q, %v, want it as it is", text, got, err)
		}
	}
	for _, text := range []string{
		"x", "1", "1-0", "1.0", "-.", "-0.0", "1-.0", "1-0.", "1-0.-1", "+1-0.0", "-1-0.0", "1-+0.0", "1-0.+0", "1-0.0.0", "1-0-0.0", " 1-0.0", "1-0.0\n",
		"18446744073709551616-0.0", "1-18446744073709551616.0", "1-0.2147483648",
	} {
		if got, err := events.ParsePosition(text); api.ErrorCode(err) != api.CodeValidationCursor {
			t.Errorf("ParsePosition(%q): got %q, %v, want %s", text, got, err, api.CodeValidationCursor)
		}
	}
}

func TestComparePositions(t *testing.T) {
	t.Parallel()
	order := []events.Position{"", events.Since(1), "9-0.0", "9-0.1", "9-0.10", "9-2.0", "9-10.0", events.Since(10), "10-0.0", "1760000001000-18446744073709551615.3"}
	for i, a := range order {
		for j, b := range order {
			if got := a.Compare(b); got != stdcmp.Compare(i, j) {
				t.Errorf("Position(%q).Compare(%q): got %d, want %d", a, b, got, stdcmp.Compare(i, j))
			}
		}
	}
	if got := events.Position("test-x").Compare(""); got != 0 {
		t.Errorf("Compare of a text without numbers with the beginning: got %d, want 0", got)
	}
}

// Trim removes events that are older than the retention, and lets a log without new events expire.
func TestTrim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		now := time.Now().UnixMilli()
		old, kept := fmt.Sprintf("%d-0", now-events.RetentionMS-60_000), fmt.Sprintf("%d-0", now-events.RetentionMS+60_000)
		l.append(t, entry{id: old})
		l.append(t, entry{id: kept})
		pipe := l.store.Client().Pipeline()
		l.Trim(t.Context(), pipe, l.tenant)
		queued := pipe.Len()
		l.Trim(t.Context(), pipe, l.tenant)
		if queued == 0 || pipe.Len() != queued {
			t.Errorf("commands: got %d after one call and %d after two, want some, of the first only", queued, pipe.Len())
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatalf("Exec: %v", err)
		}
		same(t, "kept events", texts(l.read(t, "", 10)), []string{kept + ".0 job.completed jobs/j1"})
		ttl := l.store.Client().PTTL(t.Context(), l.store.JobKeys(l.tenant).Events()).Val()
		if most := events.RetentionMS*time.Millisecond + time.Minute; ttl <= most-time.Minute || ttl > most {
			t.Errorf("time-to-live: got %s, want about %s", ttl, most)
		}
	})
}
