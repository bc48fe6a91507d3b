package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/storagetest"
)

// TestHotVisitsInOrder: places are visited in the order in which they are due, each notice included.
func TestHotVisitsInOrder(t *testing.T) {
	t.Parallel()
	h, now := newHot(), time.Unix(1_700_000_000, 0)
	for i := range 100 {
		h.notice(place{"t", "n", fmt.Sprint(i * 37 % 100), kindQueue}, now.Add(time.Duration(i*37%100)*time.Millisecond))
	}
	late := now.Add(time.Minute)
	for i := range 100 {
		p, ok, _ := h.due(late)
		if !ok || p.name != fmt.Sprint(i) {
			t.Fatalf("due: got %q, %t, want %d", p.name, ok, i)
		}
		h.visited(p, false, late)
	}
	for range 100 {
		p, ok, next := h.due(late.Add(maxVisit))
		if !ok || !next.Equal(late.Add(2*firstVisit)) {
			t.Fatalf("due: got %v, %t, %v, want a second visit after 2 s", p, ok, next)
		}
		for range 20 { // until it is left to the passes
			h.visited(p, false, late)
		}
	}
	if p, ok, next := h.due(late); ok || !next.IsZero() {
		t.Errorf("due: got %v at %v, want no place", p, next)
	}
}

// TestHotNeverWalksOverAllPlaces: the search of the next place does not depend on their number, since
// enqueues wait for it.
func TestHotNeverWalksOverAllPlaces(t *testing.T) {
	t.Parallel()
	cost := func(places int) time.Duration {
		h, now := newHot(), time.Unix(1_700_000_000, 0)
		for i := range places {
			h.notice(place{"t", "n", fmt.Sprint(i), kindQueue}, now)
		}
		least := time.Hour
		for range 20 { // the least is that of a processor to itself
			began := time.Now()
			for range 100 {
				h.due(now)
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	if few, many := cost(10), cost(maxHot); many > 20*few+100*time.Microsecond {
		t.Errorf("100 searches: got %v with %d places and %v with 10, want about the same", many, maxHot, few)
	}
}

// TestGapWithinAGapPassIsKept: a gap that is found while the pass after another one is in progress is
// not noted as filled by the end of that pass.
func TestGapWithinAGapPassIsKept(t *testing.T) {
	t.Parallel()
	s := newGapSession(t)
	s.gaps["t_a"], s.gaps["t_b"] = struct{}{}, struct{}{}
	if err := s.advance(t.Context()); err != nil {
		t.Fatalf("advance: %v", err)
	}
	if s.pass == nil || s.pass.Kind != passGap {
		t.Fatalf("got pass %+v, want one after a gap in progress", s.pass)
	}
	s.gaps["t_a"] = struct{}{}
	if err := s.endPass(t.Context()); err != nil {
		t.Fatalf("endPass: %v", err)
	}
	notes, err := s.f.mirror.Notes(t.Context())
	if _, again := s.gaps["t_a"]; err != nil || !again || len(s.gaps) != 1 || notes[noteGap+"t_a"] != "yes" || notes[noteGap+"t_b"] != "" {
		t.Errorf("got gaps %v and notes %v, error %v, want one of t_a", s.gaps, notes, err)
	}
}

// newGapSession returns a session of an empty store, whose file has notes of gaps of t_a and t_b, and
// which has no budget to end a pass at once.
func newGapSession(t *testing.T) *session {
	t.Helper()
	m, err := mirror.New(mirror.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if _, err := m.Apply(t.Context(), &mirror.Batch{Notes: map[string]string{noteGap + "t_a": "yes", noteGap + "t_b": "yes"}}); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	f, err := New(storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), m, noJobs{}, Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	s := &session{f: f, gaps: map[string]struct{}{}, rest: minRest, next: time.Now().Add(minRest)}
	s.passing.debt, s.passing.at = 1e9, time.Now()
	t.Cleanup(s.end)
	return s
}

// noJobs has no jobs.
type noJobs struct{ Jobs }
