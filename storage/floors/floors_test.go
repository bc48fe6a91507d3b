package floors_test

import (
	"testing"

	"github.com/codesous/sous/storage/floors"
)

func TestFloors(t *testing.T) {
	t.Parallel()
	const now = 1_760_000_000_000
	var f floors.Floors
	read := func(what string, at, want int64) {
		t.Helper()
		if from := f.From("set", at); from != want {
			t.Errorf("%s: it is read from %d, want %d", what, from, want)
		}
	}
	read("at first", now, 0)
	f.Consumed("set", now-5, now)
	read("once consumed", now, now-5-floors.MarginMS)
	f.Consumed("set", now-900_000, now)
	read("a late entry", now, now-5-floors.MarginMS)
	f.Consumed("set", now+1_000, now+1_000)
	read("consumed further", now+1_000, now+1_000-floors.MarginMS)
	if from := f.From("other", now); from != 0 {
		t.Errorf("From of another set: got %d, want 0", from)
	}
	read("after a while", now+600_000, 0)
	f.Consumed("set", now+600_000, now+600_000)
	read("and again", now+600_000, now+600_000-floors.MarginMS)
}

// TestFloorsOutliveAWrongClock that was ahead by a day: until then nothing would be due.
func TestFloorsOutliveAWrongClock(t *testing.T) {
	t.Parallel()
	const now, day = 1_760_000_000_000, 24 * 60 * 60_000
	var f floors.Floors
	f.Consumed("set", now+day, now+day)
	if from := f.From("set", now); from > now-floors.MarginMS {
		t.Fatalf("From: got %d ms after now, want at most %d", from-now, -floors.MarginMS)
	}
	f.Consumed("set", now, now)
	if from := f.From("set", now); from != now-floors.MarginMS {
		t.Errorf("From after the restart: got %d, want %d", from, now-floors.MarginMS)
	}
}
