// Package shares decides which tenants use the places and the memory of a pool, so that no
// tenant takes them at the expense of others.
//
// A call holds a place and the memory of its version while it runs. A tenant's calls get
// more only within these bounds, of which the tightest applies:
//
//	the reserve       all calls of a tenant hold at most what the reserve leaves: 80 of 100
//	                  places with a reserve of 20
//	what others use   a tenant that holds something gets more only up to a multiple of the
//	                  free rest, which is 4 for a reserve of 20%. So two busy tenants hold 44 places
//	                  each and leave 12, three hold 31 each and leave 7: a newcomer always
//	                  finds room
//	its cap           Share.MaxSandboxes and Share.MaxMemoryBytes
//
// Calls that find no room wait. Room that becomes free goes to the tenant that holds least in
// proportion to its weight; among equals to the one whose turn it is; then to its function
// with the fewest running calls; then to the call that waits longest. turns.go has the order,
// and the bounds within which a call that fits overtakes one that does not.
package shares

import (
	"time"

	"github.com/codesous/sous/invoker/pace"
)

// DefaultWeight is the weight of a tenant whose Share has none.
const DefaultWeight = 100

// Share is the part of the pool that the operator grants a tenant. A zero field means its default.
type Share struct {
	// Weight is the tenant's part of places and processors in proportion to those of other
	// tenants, from 1 to 10,000. Default DefaultWeight.
	Weight int
	// MaxSandboxes bounds the children that serve the tenant's versions, warm ones included.
	// Default: the pool's bounds only.
	MaxSandboxes int
	// MaxMemoryBytes bounds their memory as the pool's budget counts it. Default: the pool's
	// bounds only.
	MaxMemoryBytes int64
}

// Config configures a Ledger. Places and Bytes are what the pool has.
type Config struct {
	Places         int
	Bytes          int64
	ReservedPlaces int           // that one tenant alone leaves free
	ReservedBytes  int64         // as ReservedPlaces
	MaxWaiting     int           // calls of a tenant that wait
	LongWait       time.Duration // that no call is expected to wait behind a few others
	// Share returns a tenant's share. It is called once a second for a tenant with calls,
	// under the pool's mutex, so it must not block. nil means the defaults for all.
	Share func(tenant string) Share
}

// Ledger counts what the tenants hold, and keeps the calls that wait. The pool's mutex guards
// it.
type Ledger struct {
	cfg     Config
	tenants map[string]*Tenant
	busy    int       // places that calls hold
	bytes   int64     // memory that they hold
	pace    pace.Pace // of all calls

	waiting []*Tenant // those with calls that wait
	waiters int
	blocked bool // one of them did not fit when Next looked last
	clock   float64
	turn    uint64
	turned  time.Time // when a place was last taken from one function for another's turn
	hold    hold
	recheck time.Time // when a hold that kept Next from serving a call ends
}

// Tenant counts what a tenant holds. It exists while the pool knows a version of it.
type Tenant struct {
	// Starting is the number of children that load a program. The pool counts it.
	Starting int

	name       string
	share      Share
	asked      time.Time // when Config.Share was asked
	lines      int       // versions that the pool knows
	functions  map[string]*function
	busy       int
	bytes      int64
	children   int       // warm ones included
	childBytes int64     // theirs
	pace       pace.Pace // of its calls

	queues  []*Line // with calls that wait
	waiting int
	pass    float64 // the turn, in which the least of equals comes first
	blocked *Waiter // Next's: the first call that the tenant's own bounds keep from room
	hold    hold    // of the tenant's room
}

// function is one function of a tenant, with all versions that the pool knows.
type function struct {
	lines int
	busy  int
	turn  uint64 // when a call of it was served last
}

// Line is a version of a function with the calls that wait for it.
type Line struct {
	Tenant *Tenant
	// Ready reports whether a call that waits takes room if there is some. It does not if it
	// still waits for a warm child of its version.
	Ready func(*Waiter) bool

	name     string // of its function
	function *function
	need     int64
	waiters  []*Waiter // first come first
	pace     pace.Pace // of its calls
	busy     int
}

// Need returns the memory of a call of line.
func (line *Line) Need() int64 { return line.need }

// New returns a Ledger without calls.
func New(cfg Config) *Ledger {
	return &Ledger{cfg: cfg, tenants: map[string]*Tenant{}}
}

// Reserve returns how much of total is reserved at percent: no less than least, and no more
// than a third of the total. A pool of 1 or 2 places has no reserve, one of 3 to 5 reserves 1,
// one of 6 to 14 reserves 2.
func Reserve(total, least int64, percent int) int64 {
	if percent <= 0 {
		return 0
	}
	return min(max(total*int64(percent)/100, least), total/3)
}

// Line returns a new line of a function's version whose calls need so much memory each.
// Forget ends it.
func (l *Ledger) Line(tenant, name string, need int64, ready func(*Waiter) bool) *Line {
	t := l.tenants[tenant]
	if t == nil {
		t = &Tenant{name: tenant, functions: map[string]*function{}}
		l.tenants[tenant] = t
		l.ask(t, time.Now())
	}
	f := t.functions[name]
	if f == nil {
		f = &function{}
		t.functions[name] = f
	}
	t.lines++
	f.lines++
	return &Line{Tenant: t, Ready: ready, name: name, function: f, need: need}
}

// Forget removes a line without calls and children.
func (l *Ledger) Forget(line *Line) {
	t, f := line.Tenant, line.function
	t.lines--
	f.lines--
	if f.lines == 0 {
		delete(t.functions, line.name)
	}
	if t.lines == 0 {
		delete(l.tenants, t.name)
	}
}

// shareAge is how long an answer of Config.Share is used.
const shareAge = time.Second

// ask refreshes the tenant's share.
func (l *Ledger) ask(t *Tenant, now time.Time) {
	if now.Sub(t.asked) < shareAge {
		return
	}
	t.asked = now
	if l.cfg.Share != nil {
		t.share = l.cfg.Share(t.name)
	}
	if t.share.Weight <= 0 {
		t.share.Weight = DefaultWeight
	}
}

// Use counts a call of line that begins.
func (l *Ledger) Use(line *Line) {
	l.busy++
	l.bytes += line.need
	line.Tenant.busy++
	line.Tenant.bytes += line.need
	line.function.busy++
	line.busy++
}

// Free counts the end of a call that has held its place for that long.
func (l *Ledger) Free(line *Line, held time.Duration, now time.Time) {
	l.busy--
	l.bytes -= line.need
	line.Tenant.busy--
	line.Tenant.bytes -= line.need
	line.function.busy--
	line.busy--
	l.ended(line, held, now)
}

// ended counts the end of a call of line for estimates.
func (l *Ledger) ended(line *Line, held time.Duration, now time.Time) {
	l.ask(line.Tenant, now)
	line.pace.Count(held, now)
	line.Tenant.pace.Count(held, now)
	l.pace.Count(held, now)
}

// Join counts a child of line, busy or warm.
func (l *Ledger) Join(line *Line) {
	line.Tenant.children++
	line.Tenant.childBytes += line.need
}

// Leave is the end of what Join counts.
func (l *Ledger) Leave(line *Line) {
	line.Tenant.children--
	line.Tenant.childBytes -= line.need
}

// Busy returns the number of places that calls hold.
func (l *Ledger) Busy() int { return l.busy }

// Tenants returns the number of tenants of which the pool knows a version.
func (l *Ledger) Tenants() int { return len(l.tenants) }

// Possible reports whether a call that needs so much memory can ever be served.
func (l *Ledger) Possible(need int64) bool { return need <= l.cfg.Bytes-l.cfg.ReservedBytes }

// Most returns the largest number of places that one tenant may hold.
func (l *Ledger) Most() int { return l.cfg.Places - l.cfg.ReservedPlaces }

// Admits reports whether a call of line may begin now: there is room, and the tenant may have
// it.
func (l *Ledger) Admits(line *Line) bool {
	return l.fits(line) && l.mayHold(line.Tenant, 1) && l.mayUse(line.Tenant, line.need)
}

// fits reports whether places and memory are left for a call of line. Warm children that are
// idle do not count: they are ended for it.
func (l *Ledger) fits(line *Line) bool {
	return l.busy < l.cfg.Places && l.bytes+line.need <= l.cfg.Bytes
}

// mayHold reports whether t may hold so many further places.
func (l *Ledger) mayHold(t *Tenant, more int) bool {
	held := t.busy + more
	if held > l.Most() || t.share.MaxSandboxes > 0 && held > t.share.MaxSandboxes {
		return false
	}
	return t.busy == 0 && more == 1 ||
		l.leaves(t, float64(held), float64(l.cfg.Places-l.busy-more+1), float64(l.cfg.Places), float64(l.cfg.ReservedPlaces))
}

// mayUse reports whether t may use so many further bytes.
func (l *Ledger) mayUse(t *Tenant, more int64) bool {
	used := t.bytes + more
	if used > l.cfg.Bytes-l.cfg.ReservedBytes || t.share.MaxMemoryBytes > 0 && used > t.share.MaxMemoryBytes {
		return false
	}
	return t.bytes == 0 ||
		l.leaves(t, float64(used), float64(l.cfg.Bytes-l.bytes), float64(l.cfg.Bytes), float64(l.cfg.ReservedBytes))
}

// leaves reports whether a tenant that holds so much leaves enough for others: it is at most
// the multiple of the free rest that lets one tenant alone hold all but the reserve.
func (l *Ledger) leaves(t *Tenant, held, free, total, reserved float64) bool {
	if reserved == 0 {
		return true
	}
	return held*reserved <= free*(total-reserved)*float64(t.share.Weight)/DefaultWeight
}

// Headroom returns how many calls of a tenant that need so much memory each could begin now.
func (l *Ledger) Headroom(tenant string, need int64) int {
	t := l.tenants[tenant]
	if t == nil {
		t = &Tenant{name: tenant}
		l.ask(t, time.Now())
	}
	n, most := 0, min(l.cfg.Places-l.busy, int((l.cfg.Bytes-l.bytes)/need))
	for n < most && l.mayHold(t, n+1) && l.mayUse(t, int64(n+1)*need) {
		n++
	}
	return n
}

// Weight returns the weight of a tenant.
func (l *Ledger) Weight(tenant string) int {
	t := l.tenants[tenant]
	if t == nil {
		t = &Tenant{name: tenant}
		l.ask(t, time.Now())
	}
	return t.share.Weight
}

// Weight returns the tenant's weight.
func (t *Tenant) Weight() int { return t.share.Weight }

// Excess reports whether the tenant's cap allows no further child of line besides all that
// it has, warm ones included.
func (t *Tenant) Excess(line *Line) bool {
	return t.share.MaxSandboxes > 0 && t.children+1 > t.share.MaxSandboxes ||
		t.share.MaxMemoryBytes > 0 && t.childBytes+line.need > t.share.MaxMemoryBytes
}

// Kept returns how much of the pool the tenant's children have, warm ones included, in
// proportion to its weight.
func (l *Ledger) Kept(t *Tenant) float64 {
	return l.part(t, t.children, t.childBytes)
}

// held returns how much of the pool the tenant's calls hold, in proportion to its weight.
func (l *Ledger) held(t *Tenant) float64 { return l.part(t, t.busy, t.bytes) }

// part returns the larger of the parts of the pool's places and memory, divided by the
// tenant's weight.
func (l *Ledger) part(t *Tenant, places int, bytes int64) float64 {
	of := max(float64(places)/float64(l.cfg.Places), float64(bytes)/float64(l.cfg.Bytes))
	return of / float64(t.share.Weight)
}

// The least and the longest time after which a refused call is to be repeated.
const (
	leastRetry   = time.Second
	longestRetry = time.Minute
)

// RetryAfter returns when a call of line that is refused at now may find room: after the
// calls before it, if those that run hold their places as long as others did lately.
func (l *Ledger) RetryAfter(line *Line, now time.Time) time.Duration {
	t := line.Tenant
	after := l.pace.Expected(l.waiters, l.busy, now)
	if l.OwnBound(line) {
		after = t.pace.Expected(t.waiting, t.busy, now)
	}
	return min(max(after, leastRetry), longestRetry)
}
