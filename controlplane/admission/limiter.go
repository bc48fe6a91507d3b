package admission

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
)

// Class is the order in which requests are refused under overload.
type Class int

const (
	// Interactive requests have a caller that waits for the answer.
	Interactive Class = iota
	// Background requests add work for later, such as jobs. They are refused first.
	Background
)

// The control of a Limiter. Once in each window it compares the average time of the
// platform's own work with the acceptable one, which follows from the usual one:
//
//	usual 1 ms      acceptable 25 ms: a burst is no overload
//	usual 40 ms     acceptable 120 ms, as with a store that is far away
//	usual 200 ms    acceptable 250 ms
//
// While it is acceptable, the limit grows by some steps a second. Otherwise it shrinks in
// proportion, by at most a fifth each window.
const (
	window          = 100 * time.Millisecond
	leastSamples    = 10 // of a window that is judged
	leastAcceptable = 25 * time.Millisecond
	mostAcceptable  = 250 * time.Millisecond
	tolerance       = 3    // multiple of the usual time that is acceptable
	steepest        = 0.5  // the strongest proportion
	smoothing       = 0.4  // share of a proportion that one window applies
	falling         = 0.3  // share of a window in the usual time, if it is shorter
	rising          = .002 // and if it is longer: some 50 s of overload begin to look usual
	// backgroundShare is the share of the limit that Background requests may fill.
	backgroundShare = 0.75
	// forget is the time without a full window after which an overload is over.
	forget = 10 * time.Second
	// longWork is the time from which the work of a request that starts no function is no
	// sign of load: a publish may compile for seconds.
	longWork = time.Second
)

// DefaultLimit is the default largest limit of a Limiter.
const DefaultLimit = 2048

// leastLimit is the limit that overload does not reduce further, and leastFall the one to which
// a single window can reduce a limit that is not used up: many functions that start at the same
// time are slow for a moment.
const (
	leastLimit = 64
	leastFall  = 256
)

// buckets is the number of counters over which tenants are spread. Two tenants may share one;
// which ones differs in each process.
const buckets = 256

// Limiter limits the requests in which the platform is at work: from the header of a request
// to the start of its function, or to its answer. A function that runs does not count, however
// long it takes: sleeping is no load. Bodies that arrive and requests that wait for events do
// not count either.
//
// The limit is adaptive. It is at its largest until the platform's own work takes longer than
// is acceptable, which means that requests queue: for processors, for sandboxes, or for the
// store. Then it shrinks until the work is fast again. A replica with many times the load that
// it can carry thus works on as many requests as keep it busy, and refuses the others
// immediately. Beyond the limit there is a reserve for tenants that have few requests in
// progress, of which each address may use a part. It is safe for concurrent use.
type Limiter struct {
	most     int64
	limit    atomic.Int64
	inFlight atomic.Int64 // without those of the reserve
	reserved atomic.Int64 // requests in progress that the reserve admitted
	seed     maphash.Seed
	counts   [buckets]atomic.Int64 // requests in progress, by bucket
	kept     [buckets]atomic.Int64 // those of the reserve, by the bucket of their address

	mu      sync.Mutex
	ends    time.Time // of the window
	sum     time.Duration
	samples int
	peak    int64   // of inFlight in the window
	usual   float64 // seconds; 0 before the first window
	exact   float64 // limit, before rounding
	rate    float64 // requests a second whose work ended
}

// NewLimiter returns a limiter whose limit is at most the given one (0: DefaultLimit).
func NewLimiter(most int) *Limiter {
	if most <= 0 {
		most = DefaultLimit
	}
	l := &Limiter{most: int64(most), seed: maphash.MakeSeed(), exact: float64(most)}
	l.limit.Store(l.most)
	return l
}

// Limit returns the limit at the moment.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// InFlight returns the number of requests in which the platform is at work.
func (l *Limiter) InFlight() int { return int(l.inFlight.Load() + l.reserved.Load()) }

// Ticket is the admission of one request. The zero value, of no limiter, admits everything. One
// goroutine uses it.
type Ticket struct {
	limiter *Limiter
	count   *atomic.Int64 // of its tenant's bucket
	place   *atomic.Int64 // inFlight or reserved of limiter
	kept    *atomic.Int64 // of its address's bucket; nil for a place outside of the reserve
	since   time.Time     // of the begin of the part that counts now
	worked  time.Duration // in the parts before
	counts  bool
	ended   bool
}

// Enter admits a request of tenant from an address into t, until Started or Done. The tenant is what
// the request names. Errors: CodeOverloaded with the time after which the requests in progress will
// have been worked on.
func (l *Limiter) Enter(t *Ticket, class Class, tenant string, from netip.Addr) error {
	if l == nil {
		return nil
	}
	count := l.bucket(tenant)
	place, kept := &l.inFlight, (*atomic.Int64)(nil)
	if n := place.Add(1); n > l.allowed(class) {
		place.Add(-1)
		kept = l.enterReserve(count, from)
		if kept == nil {
			return l.refusal()
		}
		place = &l.reserved
	}
	count.Add(1)
	*t = Ticket{limiter: l, count: count, place: place, kept: kept, since: time.Now(), counts: true}
	return nil
}

// bucket returns the counter of a tenant's requests.
func (l *Limiter) bucket(tenant string) *atomic.Int64 {
	return &l.counts[maphash.String(l.seed, tenant)%buckets]
}

// allowed returns how many requests may be in progress with one of that class.
func (l *Limiter) allowed(class Class) int64 {
	limit := l.limit.Load()
	if class == Background {
		return max(1, int64(float64(limit)*backgroundShare))
	}
	return limit
}

// The reserve has a fourth of the limit, but at least leastReserve places, and is for tenants
// that have at most a sixteenth of the limit in progress, or little. A caller can name a tenant that
// does not exist, and another one for each request, so one address has a fourth of the reserve.
const (
	leastReserve = 16
	little       = 4
)

// enterReserve takes a place of the reserve for a tenant with that count of requests, and returns the
// counter of the address's places, nil if there is none.
func (l *Limiter) enterReserve(count *atomic.Int64, from netip.Addr) *atomic.Int64 {
	limit := l.limit.Load()
	if count.Load() >= max(little, limit/littleParts) {
		return nil
	}
	kept := &l.kept[maphash.Comparable(l.seed, from)%buckets]
	reserve := max(leastReserve, limit/reserveParts)
	if kept.Add(1) > max(little, reserve/reserveParts) {
		kept.Add(-1)
		return nil
	}
	if l.reserved.Add(1) > reserve {
		l.reserved.Add(-1)
		kept.Add(-1)
		return nil
	}
	return kept
}

// refusal returns the error of a refused request.
func (l *Limiter) refusal() error {
	l.mu.Lock()
	wait := time.Second
	if l.rate > 0 {
		wait = time.Duration(float64(l.InFlight()) / l.rate * float64(time.Second))
	}
	l.mu.Unlock()
	err := api.Errorf(api.CodeOverloaded, "this replica has as many requests in progress as it can work on")
	err.RetryAfter = min(max(wait, time.Second), 30*time.Second)
	return err
}

// Demote makes t a Background request. The error is that of Enter.
func (t *Ticket) Demote() error {
	l := t.limiter
	if l == nil || !t.counts || l.inFlight.Load() <= l.allowed(Background) || t.count.Load() <= little {
		return nil
	}
	return l.refusal()
}

// Pause excludes the time until Resume, in which the client sends its body.
func (t *Ticket) Pause() {
	if !t.counts {
		return
	}
	t.worked += time.Since(t.since)
	t.leave()
}

// Resume ends a Pause. It is not refused, whatever the limit.
func (t *Ticket) Resume() {
	if t.limiter == nil || t.ended || t.counts {
		return
	}
	t.counts, t.since = true, time.Now()
	t.place.Add(1)
	t.count.Add(1)
	if t.kept != nil {
		t.kept.Add(1)
	}
}

// Started ends the part of an invocation that counts: its function starts now.
func (t *Ticket) Started() { t.end(true) }

// Waits ends the part that counts of a request that waits from now on: for events, or for other
// requests of its tenant.
func (t *Ticket) Waits() { t.end(false) }

// Done ends the request. Nothing happens after Started or Waits.
func (t *Ticket) Done() { t.end(true) }

func (t *Ticket) end(sample bool) {
	if t.limiter == nil || t.ended {
		return
	}
	now, counted := time.Now(), t.counts
	if counted {
		t.worked += now.Sub(t.since)
		t.leave()
	}
	t.ended = true
	if sample && t.worked <= longWork+longWork/2 {
		t.limiter.observe(now, t.worked)
	}
}

func (t *Ticket) leave() {
	t.counts = false
	t.place.Add(-1)
	t.count.Add(-1)
	if t.kept != nil {
		t.kept.Add(-1)
	}
}

// observe adds the time of a request's work to the window, and judges the window at its end.
func (l *Limiter) observe(now time.Time, worked time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum += worked
	l.samples++
	l.peak = max(l.peak, l.inFlight.Load()+1)
	if now.Before(l.ends) || l.samples < leastSamples {
		return
	}
	took := now.Sub(l.ends) + window
	if took > forget {
		l.exact = float64(l.most) // also before the first window
	} else {
		l.rate = float64(l.samples) / took.Seconds()
		l.judge(l.sum.Seconds() / float64(l.samples))
	}
	l.limit.Store(int64(l.exact))
	l.sum, l.samples, l.peak, l.ends = 0, 0, 0, now.Add(window)
}

// judge adapts the limit to a window in which the work took so many seconds on average. A limit
// of which less than half was used falls to twice of that first: above it, it bounds nothing.
func (l *Limiter) judge(average float64) {
	switch {
	case l.usual == 0:
		l.usual = average
	case average < l.usual:
		l.usual += (average - l.usual) * falling
	default:
		l.usual += (average - l.usual) * rising
	}
	acceptable := min(max(tolerance*l.usual, leastAcceptable.Seconds()), mostAcceptable.Seconds())
	if used := max(2*float64(l.peak), leastFall); average > acceptable && used < l.exact {
		l.exact = used
		return
	}
	proportion := max(min(acceptable/average, 1), steepest)
	next := l.exact*proportion + math.Sqrt(l.exact)
	l.exact = min(max(l.exact+(next-l.exact)*smoothing, leastLimit), float64(l.most))
}
