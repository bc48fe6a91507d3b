// Package pace estimates how long the next call of a queue will wait, so that a call that would
// wait in vain is refused when it arrives, and knows when to come again.
package pace

import (
	"math"
	"time"
)

// memory is the number of calls of which a Pace is the average, more or less.
const memory = 16

// Pace is how long calls hold a place, such as a slot or a sandbox, for which others wait. The
// zero value has seen none. It is not safe for concurrent use. With ten places and calls that
// hold one for 200 ms, a call behind 24 others is expected to wait for 500 ms.
type Pace struct {
	hold  time.Duration // average
	n     int           // calls in hold, at most memory
	since time.Time     // of the last end while calls waited, or of the first wait; zero while none waits
}

// Begin is called when a call begins to wait.
func (p *Pace) Begin(now time.Time) {
	if p.since.IsZero() {
		p.since = now
	}
}

// Count counts a call that has held a place for that long, and ends at now.
func (p *Pace) Count(held time.Duration, now time.Time) {
	p.n = min(p.n+1, memory)
	p.hold += (held - p.hold) / time.Duration(p.n)
	if !p.since.IsZero() {
		p.since = now
	}
}

// End is called when no call waits any more.
func (p *Pace) End() { p.since = time.Time{} }

// Expected returns how long a call is expected to wait at now behind n others, for one of so
// many places that calls hold. No call is taken to hold one for less than none has ended.
func (p *Pace) Expected(n, places int, now time.Time) time.Duration {
	hold := p.hold
	if !p.since.IsZero() {
		hold = max(hold, now.Sub(p.since))
	}
	expected := float64(hold) * (float64(n) + 1) / float64(max(places, 1))
	return time.Duration(min(expected, math.MaxInt64/2))
}
