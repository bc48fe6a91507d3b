package repair_test

import (
	"testing"

	"github.com/codesous/sous/queue/repair"
)

// TestSuspects: a suspect is confirmed after its grace if its state has not changed, apart from
// others, and starts again after Clear.
func TestSuspects(t *testing.T) {
	t.Parallel()
	var s repair.Suspects[int]
	if s.Confirmed(1, "a", 1_000, 100) || s.Confirmed(1, "a", 1_099, 100) || !s.Confirmed(1, "a", 1_100, 100) || s.Confirmed(2, "a", 1_100, 100) {
		t.Error("Confirmed did not become true exactly after the grace of 100 ms")
	}
	if s.Confirmed(1, "b", 1_150, 100) || s.Confirmed(1, "b", 1_249, 100) || !s.Confirmed(1, "b", 1_250, 100) {
		t.Error("Confirmed counted the time in another state as part of the grace")
	}
	s.Clear(1)
	if s.Confirmed(1, "b", 1_260, 100) || !s.Confirmed(2, "a", 1_260, 100) {
		t.Error("Clear(1) did not clear 1 alone")
	}
}

// TestSuspectsAreBounded: there is a limit of suspects. New ones do not replace old ones, until
// these are so old that they are forgotten.
func TestSuspectsAreBounded(t *testing.T) {
	t.Parallel()
	var s repair.Suspects[int]
	const many = 100_000 // more than the limit
	for k := range many {
		s.Confirmed(k, "", 0, 100)
	}
	if s.Confirmed(-1, "", 1_000, 100) || s.Confirmed(-1, "", 1_100, 100) {
		t.Error("Confirmed remembers more suspects than the limit")
	}
	if !s.Confirmed(0, "", 1_100, 100) {
		t.Error("one of the first suspects was replaced by a later one")
	}
	const day = 24 * 60 * 60_000
	if s.Confirmed(-1, "", day, 100) || !s.Confirmed(-1, "", day+100, 100) {
		t.Error("suspects of a day ago still keep new ones out")
	}
}
