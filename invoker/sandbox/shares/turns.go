package shares

import (
	"slices"
	"time"
)

// Waiter is a call that waits for room.
type Waiter struct {
	Line  *Line
	Since time.Time
	Value any // the pool's

	number    uint64 // in order of arrival
	overtaken int    // by calls of which it would have been served first
	held      bool   // room was held back for it
}

// hold is the room that is held back for a call: that of the pool, or that of its tenant.
type hold struct {
	holder *Waiter
	ends   time.Time
	next   time.Time // before it, none is held back for another call
}

// Bounds of overtaking. A call that does not fit, because its memory limit is large, is
// overtaken by calls that fit. When maxOvertaken have done so, or when it has waited for
// overtakenFor, room is held back for it: calls that come after it in the order wait, too.
// That lasts for holdTime, and happens once in holdsInterval, so that large calls cannot stop
// a pool whose running calls take long.
const (
	maxOvertaken  = 16
	overtakenFor  = 250 * time.Millisecond
	holdTime      = 250 * time.Millisecond
	holdsInterval = time.Second
)

// turnTime is how long a version's calls keep its children from others that hold as little and
// wait: to pass a place on costs a start.
const turnTime = 100 * time.Millisecond

// shortLine is the number of calls that may wait in a line, however long they are expected to.
const shortLine = 4

// MayWait reports whether another call of line may wait at now. It may not where it is expected
// to wait for Config.LongWait, because it is likely to be refused in the end. So a tenant that
// sends more calls than its share of the pool can run is refused at once, and the calls that wait
// are served. A call for which there is room waits for a child to start, or for a warm one.
func (l *Ledger) MayWait(line *Line, now time.Time) bool {
	if line.Tenant.waiting >= l.cfg.MaxWaiting {
		return false
	}
	n := len(line.waiters)
	return n < shortLine || line.busy == 0 || l.Admits(line) || line.pace.Expected(n, line.busy, now) < l.cfg.LongWait
}

// OwnBound reports whether a call of line waits for other calls of its tenant: the tenant holds
// as much as it may, whatever the pool has left.
func (l *Ledger) OwnBound(line *Line) bool {
	return !l.mayHold(line.Tenant, 1) || !l.mayUse(line.Tenant, line.need)
}

// Wait adds a call to its line.
func (l *Ledger) Wait(w *Waiter) {
	line, t := w.Line, w.Line.Tenant
	if len(line.waiters) == 0 {
		t.queues = append(t.queues, line)
	}
	if t.waiting == 0 {
		l.waiting = append(l.waiting, t)
		t.pass = max(t.pass, l.clock)
		l.ask(t, w.Since)
	}
	l.turn++
	w.number = l.turn
	line.waiters = append(line.waiters, w)
	t.waiting++
	l.waiters++
	line.pace.Begin(w.Since)
	t.pace.Begin(w.Since)
	l.pace.Begin(w.Since)
}

// Pass passes the place of a call on to w, of the same line. The call has held it for that long,
// and ends at now.
func (l *Ledger) Pass(w *Waiter, held time.Duration, now time.Time) {
	l.ended(w.Line, held, now)
	l.Remove(w)
}

// Remove removes a call that waits no more.
func (l *Ledger) Remove(w *Waiter) {
	line, t := w.Line, w.Line.Tenant
	i := slices.Index(line.waiters, w)
	line.waiters = slices.Delete(line.waiters, i, i+1)
	if len(line.waiters) == 0 {
		i := slices.Index(t.queues, line)
		t.queues = slices.Delete(t.queues, i, i+1)
		line.pace.End()
	}
	t.waiting--
	l.waiters--
	if t.waiting == 0 {
		i := slices.Index(l.waiting, t)
		l.waiting = slices.Delete(l.waiting, i, i+1)
		t.pace.End()
	}
	for _, h := range []*hold{&l.hold, &t.hold} {
		if h.holder == w {
			h.holder, h.ends = nil, time.Time{}
		}
	}
	if l.waiters == 0 {
		l.blocked = false
		l.pace.End()
	}
}

// Waiters returns the number of calls that wait.
func (l *Ledger) Waiters() int { return l.waiters }

// Waiting returns the calls that wait.
func (l *Ledger) Waiting() []*Waiter {
	var out []*Waiter
	for _, t := range l.waiting {
		for _, line := range t.queues {
			out = append(out, line.waiters...)
		}
	}
	return out
}

// First returns the first call of line that waits, nil if there is none.
func (line *Line) First() *Waiter {
	if len(line.waiters) == 0 {
		return nil
	}
	return line.waiters[0]
}

// Starved reports whether a call of the tenant waits for room, and not only for a warm child.
func (l *Ledger) Starved(tenant string) bool {
	t := l.tenants[tenant]
	return t != nil && slices.ContainsFunc(t.queues, func(line *Line) bool { return line.Ready(line.waiters[0]) })
}

// Direct reports whether a call of line that arrives, and finds a warm child or not, takes room
// without regard to those that wait: it would be the next in any case, or no call waits for
// what it takes.
func (l *Ledger) Direct(line *Line, warm bool) bool {
	return l.waiters == 0 || warm && len(line.waiters) == 0 && !l.blocked
}

// Next returns the call that is served next at now, nil if there is none for which there is
// room. The pool removes it, and asks again.
func (l *Ledger) Next(now time.Time) *Waiter {
	l.blocked, l.recheck = false, time.Time{}
	if l.waiters == 0 || l.busy >= l.cfg.Places {
		return nil
	}
	var best, blocked *Waiter
	for _, t := range l.waiting {
		if !l.mayHold(t, 1) {
			continue
		}
		own, large := l.candidate(t, now)
		if own != nil && (best == nil || l.before(own, best)) {
			best = own
		}
		if large != nil && (blocked == nil || l.before(large, blocked)) {
			blocked = large
		}
	}
	l.blocked = l.blocked || blocked != nil
	if best == nil {
		return nil
	}
	overtakes := blocked != nil && l.before(blocked, best)
	if overtakes && l.holdsBack(&l.hold, blocked, now) {
		return nil
	}
	if overtakes {
		blocked.overtaken++
	}
	if own := best.Line.Tenant.blocked; own != nil && l.before(own, best) {
		own.overtaken++
	}
	l.serve(best)
	return best
}

// candidate returns the tenant's call that is served first, and the first of those for which
// the pool has not enough memory. A call that the tenant's own bounds keep from its memory is
// overtaken by the tenant's calls within the same bounds; it is t.blocked then.
func (l *Ledger) candidate(t *Tenant, now time.Time) (best, large *Waiter) {
	t.blocked = nil
	for _, line := range t.queues {
		w := line.waiters[0]
		if !line.Ready(w) {
			continue
		}
		switch {
		case !l.mayUse(t, line.need):
			if t.blocked == nil || l.before(w, t.blocked) {
				t.blocked = w
			}
		case !l.fits(line):
			if large == nil || l.before(w, large) {
				large = w
			}
		case best == nil || l.before(w, best):
			best = w
		}
	}
	l.blocked = l.blocked || t.blocked != nil
	if best != nil && t.blocked != nil && l.before(t.blocked, best) && l.holdsBack(&t.hold, t.blocked, now) {
		best = nil
	}
	return best, large
}

// holdsBack reports whether room of h is held back for w at now.
func (l *Ledger) holdsBack(h *hold, w *Waiter, now time.Time) bool {
	if !w.held && !now.Before(h.next) && (w.overtaken >= maxOvertaken || now.Sub(w.Since) >= overtakenFor) {
		w.held = true
		h.holder, h.ends, h.next = w, now.Add(holdTime), now.Add(holdsInterval)
		l.charge(w.Line.Tenant) // the next time is another tenant's
	}
	if h.holder != w || !now.Before(h.ends) {
		return false
	}
	if l.recheck.IsZero() || h.ends.Before(l.recheck) {
		l.recheck = h.ends
	}
	return true
}

// Recheck returns when Next is to be asked again because room is no longer held back, the zero
// time if no room was held back when it was asked last.
func (l *Ledger) Recheck() time.Time { return l.recheck }

// serve counts the turn of w.
func (l *Ledger) serve(w *Waiter) {
	l.clock = max(l.clock, w.Line.Tenant.pass)
	l.charge(w.Line.Tenant)
	l.turn++
	w.Line.function.turn = l.turn
}

// charge moves a tenant behind the others of its kind, the less the greater its weight.
func (l *Ledger) charge(t *Tenant) { t.pass += 1 / float64(t.share.Weight) }

// before reports whether a is served before b, if there is room for both.
func (l *Ledger) before(a, b *Waiter) bool {
	if c := l.compare(a.Line, b.Line); c != 0 {
		return c < 0
	}
	s, t := a.Line.Tenant, b.Line.Tenant
	switch {
	case s != t && s.pass != t.pass:
		return s.pass < t.pass
	case s == t && a.Line.function.turn != b.Line.function.turn:
		return a.Line.function.turn < b.Line.function.turn
	}
	return a.number < b.number
}

// compare returns -1 if the calls of a hold less than those of b, 1 if they hold more: those
// of the tenant, or within a tenant those of the function.
func (l *Ledger) compare(a, b *Line) int {
	if a.Tenant == b.Tenant {
		return a.function.busy - b.function.busy
	}
	const same = 1e-12 // much less than a place of a tenant of the largest weight
	switch d := l.held(a.Tenant) - l.held(b.Tenant); {
	case d < -same:
		return -1
	case d > same:
		return 1
	}
	return 0
}

// PassesOn reports whether the place of a child of line, whose call has ended at now, may be
// another's, although a call of line waits for it. The warm child is then ended, which costs a
// start. So calls that hold as much as those of line get it only once in turnTime. It is also
// reported where the tenant holds more than it may by now.
func (l *Ledger) PassesOn(line *Line, now time.Time) bool {
	own := line.waiters[0]
	// The call that ended does not count any more.
	l.without(line, -1)
	defer l.without(line, 1)
	if !l.mayHold(line.Tenant, 1) || !l.mayUse(line.Tenant, line.need) {
		return true // others came, or the cap was lowered
	}
	if l.waiters == len(line.waiters) {
		return false
	}
	if l.blocked {
		return true
	}
	for _, t := range l.waiting {
		if !l.mayHold(t, 1) {
			continue
		}
		for _, other := range t.queues {
			w := other.waiters[0]
			if other == line || !l.fits(other) || !l.mayUse(t, other.need) || !other.Ready(w) {
				continue
			}
			c := l.compare(other, line)
			turn := c == 0 && now.Sub(w.Since) >= turnTime && now.Sub(l.turned) >= turnTime && l.before(w, own)
			if turn {
				l.turned = now
			}
			if c < 0 || turn {
				return true
			}
		}
	}
	return false
}

// without changes what line's calls hold by one call, for a comparison.
func (l *Ledger) without(line *Line, by int) {
	l.busy += by
	l.bytes += int64(by) * line.need
	line.Tenant.busy += by
	line.Tenant.bytes += int64(by) * line.need
	line.function.busy += by
}
