package events_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// search returns the ids of the found events, and whether the whole span was read.
func (l *log) search(t *testing.T, id string, span events.Span, budget int) (ids []string, whole bool, left int) {
	t.Helper()
	found, err := l.Search(t.Context(), l.tenant, event.KindJobs, id, span, &budget)
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	ids = []string{}
	for _, e := range found.Events {
		ids = append(ids, e.ID)
	}
	return ids, found.Whole, budget
}

// A search finds the events of one job in a span, and of no other subject.
func TestSearch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		l.append(t, entry{id: "10-0", ids: "j1"})
		l.append(t, entry{id: "20-0", ids: "j2 j1 j3 j1"})
		l.append(t, entry{id: "20-1", ids: "j11 xj1"})
		l.append(t, entry{id: "30-0", ids: "j1", at: "never"})
		l.append(t, entry{id: "40-7", ids: "j1"})
		same(t, "all", fmt.Sprint(l.search(t, "j1", events.Span{FromMS: -5, ToMS: 100}, 100)), "[10-0.0 20-0.1 20-0.3 40-7.0] true 91")
		same(t, "a span", fmt.Sprint(l.search(t, "j1", events.Span{FromMS: 20, ToMS: 40}, 100)), "[20-0.1 20-0.3 40-7.0] true 92")
		same(t, "between", fmt.Sprint(l.search(t, "j1", events.Span{FromMS: 11, ToMS: 19}, 100)), "[] true 100")
		same(t, "no span", fmt.Sprint(l.search(t, "j1", events.Span{FromMS: 20, ToMS: 19}, 100)), "[] true 100")
		same(t, "another job", fmt.Sprint(l.search(t, "j4", events.Span{ToMS: 100}, 100)), "[] true 91")
		same(t, "a budget", fmt.Sprint(l.search(t, "j1", events.Span{ToMS: 100}, 3)), "[10-0.0 20-0.1 20-0.3] false -2")
		budget := 100
		found, err := l.Search(t.Context(), l.tenant, event.KindJobs, "j1", events.Span{ToMS: 100}, &budget)
		if err != nil || len(found.Damaged) != 1 || found.Damaged[0] != "30-0" {
			t.Errorf("damaged: got %+v and error %v, want 30-0", found, err)
		}
		if found, err := l.Search(t.Context(), l.tenant, event.KindTasks, "j1", events.Span{ToMS: 100}, &budget); err != nil || len(found.Events) != 0 {
			t.Errorf("a task of that id: got %+v and error %v, want no event", found, err)
		}
	})
}

// A search reads a long log in parts, and continues behind each.
func TestSearchOfALongLog(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		var want []string
		for i := range 1000 {
			id := fmt.Sprintf("%d-0", 10+i)
			ids := "other"
			if i%100 == 99 {
				ids, want = "other j1", append(want, id+".1")
			}
			l.append(t, entry{id: id, ids: ids})
		}
		ids, whole, left := l.search(t, "j1", events.Span{ToMS: 5000}, 5000)
		same(t, "events", strings.Join(ids, " "), strings.Join(want, " "))
		if !whole || left != 5000-1010 {
			t.Errorf("search: got whole %t and %d left, want true and %d", whole, left, 5000-1010)
		}
		found := 500
		part, err := l.Search(t.Context(), l.tenant, event.KindJobs, "j1", events.Span{ToMS: 5000}, &found)
		if err != nil || part.Whole || part.ReachedMS != 10+495 || len(part.Events) != 4 {
			t.Errorf("search of 500 events: got %+v and error %v, want 4 events, up to 505", part, err)
		}
	})
}

// A log is whole from the time on at which its retention begins, or with its first entry if it is
// full.
func TestFirstMS(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *log) {
		want := l.store.NowMS() - events.RetentionMS
		l.append(t, entry{})
		got, err := l.FirstMS(t.Context(), l.tenant)
		if err != nil || got < want || got > l.store.NowMS()-events.RetentionMS {
			t.Errorf("FirstMS: got %d and error %v, want %d or a little more", got, err, want)
		}
	})
}

// A full log is whole from its first entry on: those before it were removed.
func TestFirstMSOfAFullLog(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	l := &log{events.New(s), s, storagetest.Tenant(t)}
	first := s.NowMS() - 3_600_000
	for part := range 10 {
		pipe := s.Client().Pipeline()
		for i := range events.MaxEntries / 10 {
			pipe.Do(t.Context(), "XADD", s.JobKeys(l.tenant).Events(), fmt.Sprintf("%d-%d", first, part*events.MaxEntries+i), "type", event.JobDead)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatalf("XADD: %v", err)
		}
	}
	if got, err := l.FirstMS(t.Context(), l.tenant); err != nil || got != first {
		t.Errorf("FirstMS: got %d and error %v, want %d", got, err, first)
	}
}
