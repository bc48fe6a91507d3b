package repair_test

import (
	"testing"

	"github.com/codesous/sous/queue/repair"
)

// TestSuspects ripen with time, each by itself, while they look the same, and are forgotten
// when they look well.
func TestSuspects(t *testing.T) {
	t.Parallel()
	var s repair.Suspects[int]
	if s.Confirmed(1, "a", 1_000, 100) || s.Confirmed(1, "a", 1_099, 100) || !s.Confirmed(1, "a", 1_100, 100) || s.Confirmed(2, "a", 1_100, 100) {
		t.Error("it ripens at another time than after its grace")
	}
	if s.Confirmed(1, "b", 1_150, 100) || s.Confirmed(1, "b", 1_249, 100) || !s.Confirmed(1, "b", 1_250, 100) {
		t.Error("what looks otherwise has looked so all the time")
	}
	s.Clear(1)
	if s.Confirmed(1, "b", 1_260, 100) || !s.Confirmed(2, "a", 1_260, 100) {
		t.Error("another one was forgotten")
	}
}

// TestSuspectsThatNobodyMeetsAgain do not keep others out for ever, nor do later ones keep
// those out that came before.
func TestSuspectsThatNobodyMeetsAgain(t *testing.T) {
	t.Parallel()
	var s repair.Suspects[int]
	const many = 100_000 // more than are remembered
	for k := range many {
		s.Confirmed(k, "", 0, 100)
	}
	if s.Confirmed(-1, "", 1_000, 100) || s.Confirmed(-1, "", 1_100, 100) {
		t.Error("there is no bound")
	}
	if !s.Confirmed(0, "", 1_100, 100) {
		t.Error("one of the first was forgotten for a later one")
	}
	const day = 24 * 60 * 60_000
	if s.Confirmed(-1, "", day, 100) || !s.Confirmed(-1, "", day+100, 100) {
		t.Error("those that nobody meets again keep others out")
	}
}
