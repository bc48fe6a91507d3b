package pace

import (
	"math"
	"testing"
	"time"
)

// TestPace follows the calls, keeps the average while none waits, and sees a queue that stands.
func TestPace(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var p Pace
	now := time.Unix(1e9, 0)
	expect := func(when string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	expect("before a call", p.Expected(24, 10, now), 0)
	p.Begin(now)
	expect("when none has ended for 100 ms", p.Expected(24, 10, now.Add(100*ms)), 250*ms)
	now = now.Add(200 * ms)
	p.Count(200*ms, now)
	expect("after one call of 200 ms", p.Expected(24, 10, now), 500*ms)
	expect("in the next 200 ms", p.Expected(24, 10, now.Add(200*ms)), 500*ms)
	expect("when none has ended since", p.Expected(24, 10, now.Add(300*ms)), 750*ms)
	p.End()
	expect("while none waits", p.Expected(24, 10, now.Add(time.Hour)), 500*ms)
	now = now.Add(time.Hour)
	p.Begin(now)
	p.Begin(now.Add(time.Hour)) // nothing happens
	for range 200 {
		p.Count(100*ms, now)
	}
	if got := p.Expected(24, 10, now); got < 250*ms || got > 251*ms {
		t.Errorf("with calls of 100 ms: got %s, want 250 ms", got)
	}
	if got := p.Expected(math.MaxInt, 0, now.Add(time.Hour)); got <= 0 {
		t.Errorf("behind very many: got %s, want a long time", got)
	}
}
