// Package slots hands out the slots in which the activations of a version run on a replica.
package slots

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/invoker/pace"
)

// Bounds of the wait for a slot of a version: how many callers wait for one version, and for
// all of a tenant, and how long. A caller beyond them is refused at once, one that waited for
// maxWait when its time is over; all get CodeConcurrencyLimit.
//
// A caller that is expected to wait for longWait is likely to wait in vain, and is refused at once,
// too. So a version with more calls than its slots can serve refuses those that it cannot serve
// immediately, and serves those that wait.
const (
	maxWaiting         = 256
	maxWaitingOfTenant = 1024
	maxWait            = time.Second
	longWait           = maxWait / 2
	shortLine          = 4 // callers that may wait, however long they are expected to
)

// Limits hands out the slots of each version on this replica. It is safe for concurrent use.
//
// A caller that finds no free slot queues behind the others of its version. A slot that
// becomes free goes to the first waiter directly and never becomes visible as free, so
// that a new caller cannot overtake the waiters:
//
//	limit 1   A acquires                       A holds the slot
//	          B, C acquire                     B and C wait, in this order
//	          A releases                       B holds the slot
//	          B's ctx ends just then           quit passes the slot to C
//
// The bounds are those of one replica: a version with limit n runs at most n times on
// each.
type Limits struct {
	mu       sync.Mutex
	versions map[string]*versionLimit
	waiting  map[string]int // callers, by tenant
}

// versionLimit counts the slots of one version. It exists while a slot is taken, so that
// versions without calls use no memory. Limits.mu guards its fields.
type versionLimit struct {
	version string
	tenant  string
	limit   int
	taken   int
	waiters []*waiter // callers without a slot, in order of arrival
	pace    pace.Pace // of the calls that hold the slots
	// expiry fires when the first waiter has waited for maxWait. All wait equally long, so
	// one timer serves them all. It keeps running when the last waiter leaves: otherwise a
	// version at its limit would set it for each call.
	expiry *time.Timer
	armed  bool
}

// waiter is a waiting caller. admitted receives exactly one value, true if it got a slot;
// the channel has room for it, so the sender never blocks under Limits.mu.
type waiter struct {
	admitted chan bool
	until    time.Time
}

// New returns the slots of a replica.
func New() *Limits {
	return &Limits{versions: make(map[string]*versionLimit), waiting: make(map[string]int)}
}

// Acquire takes one of limit slots of a version, and waits for it for at most maxWait.
// version is the sandbox.Program's key, tenant/namespace/function/version. limit is that of
// the version, so all callers pass the same; the first of them sets it. own, which may be nil,
// is called before a wait. release may be called more than once, and must be called. Errors:
// CodeConcurrencyLimit, or ctx's own.
func (l *Limits) Acquire(ctx context.Context, version string, limit int, own func()) (release func(), err error) {
	v, w, err := l.enter(version, limit)
	if err != nil {
		return nil, err
	}
	if w != nil {
		if own != nil {
			own()
		}
		if err := l.wait(ctx, v, w); err != nil {
			return nil, err
		}
	}
	var once sync.Once
	began := time.Now()
	return func() { once.Do(func() { l.release(v, began) }) }, nil
}

// Await takes a slot as Acquire does, but waits for it until ctx ends.
// Errors: ctx's own.
func (l *Limits) Await(ctx context.Context, version string, limit int) (release func(), err error) {
	for {
		release, err = l.Acquire(ctx, version, limit, nil)
		if api.ErrorCode(err) != api.CodeConcurrencyLimit {
			return release, err
		}
		// Too many waited, or this caller waited for maxWait: it queues again at the end.
		if err := sleep.For(ctx, RetryInterval); err != nil {
			return nil, err
		}
	}
}

// RetryInterval is the time after which a waiting invocation asks again.
const RetryInterval = 50 * time.Millisecond

// Used returns how many slots of a version are taken.
func (l *Limits) Used(version string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.versions[version]; v != nil {
		return v.taken
	}
	return 0
}

// enter takes a free slot (w is nil) or queues for one. Errors: CodeConcurrencyLimit
// where maxWaiting callers wait.
func (l *Limits) enter(version string, limit int) (v *versionLimit, w *waiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v = l.versions[version]
	switch {
	case v == nil:
		tenant, _, _ := strings.Cut(version, "/")
		v = &versionLimit{version: version, tenant: tenant, limit: limit, taken: 1}
		l.versions[version] = v
		return v, nil, nil
	case v.taken < v.limit:
		v.taken++
		return v, nil, nil
	case len(v.waiters) >= maxWaiting:
		return nil, nil, concurrencyLimit("too many calls of this version wait already")
	}
	if l.waiting[v.tenant] >= maxWaitingOfTenant {
		return nil, nil, concurrencyLimit("too many calls of this tenant wait for their versions already")
	}
	now := time.Now()
	if n := len(v.waiters); n >= shortLine && v.pace.Expected(n, v.limit, now) >= longWait {
		return nil, nil, concurrencyLimit("the calls of this version that wait already will take too long")
	}
	w = &waiter{admitted: make(chan bool, 1), until: now.Add(maxWait)}
	v.waiters = append(v.waiters, w)
	v.pace.Begin(now)
	l.waiting[v.tenant]++
	l.arm(v)
	return v, w, nil
}

// wait returns nil once w has a slot. A ctx that ends at the same moment as a slot is
// passed on returns ctx's error; quit then passes the slot to the next waiter.
func (l *Limits) wait(ctx context.Context, v *versionLimit, w *waiter) error {
	select {
	case admitted := <-w.admitted:
		if !admitted {
			return concurrencyLimit("the version's running calls did not end in time")
		}
		return nil
	case <-ctx.Done():
		l.quit(v, w)
		return ctx.Err()
	}
}

// quit removes w from the waiters, or frees the slot that it got meanwhile.
func (l *Limits) quit(v *versionLimit, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(v.waiters, w); i >= 0 {
		l.remove(v, i)
		return
	}
	if <-w.admitted { // it is no waiter any more, so the answer is there
		l.pass(v)
	}
}

// release returns a slot that was taken at began. Acquire wraps it, so that a second call does
// nothing.
func (l *Limits) release(v *versionLimit, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	v.pace.Count(now.Sub(began), now)
	l.pass(v)
}

// pass hands a slot to the first waiter: taken stays as it is, since the slot only changes
// its owner. Without a waiter the slot becomes free, and the last free slot removes the
// version's entry. The caller holds l.mu.
func (l *Limits) pass(v *versionLimit) {
	if len(v.waiters) > 0 {
		l.answerFirst(v, true)
		return
	}
	v.taken--
	if v.taken == 0 {
		delete(l.versions, v.version)
		if v.armed {
			v.expiry.Stop()
		}
	}
}

// answerFirst sends the first waiter its answer, true for a slot, and removes it. The
// caller holds l.mu.
func (l *Limits) answerFirst(v *versionLimit, admitted bool) {
	v.waiters[0].admitted <- admitted
	l.remove(v, 0)
}

// remove removes the waiter at index i. The caller holds l.mu.
func (l *Limits) remove(v *versionLimit, i int) {
	v.waiters = slices.Delete(v.waiters, i, i+1)
	if len(v.waiters) == 0 {
		v.pace.End()
	}
	l.waiting[v.tenant]--
	if l.waiting[v.tenant] == 0 {
		delete(l.waiting, v.tenant)
	}
}

// arm makes expiry fire for the first waiter. The caller holds l.mu.
func (l *Limits) arm(v *versionLimit) {
	if v.armed {
		return
	}
	v.armed = true
	wait := time.Until(v.waiters[0].until)
	if v.expiry == nil {
		v.expiry = time.AfterFunc(wait, func() { l.expire(v) })
		return
	}
	v.expiry.Reset(wait)
}

// expire refuses the callers that have waited for maxWait, and sets the timer for the next.
// It runs on the timer's goroutine. v may have left the table of versions by then; it has
// no waiters in that case.
func (l *Limits) expire(v *versionLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v.armed = false
	for now := time.Now(); len(v.waiters) > 0 && !now.Before(v.waiters[0].until); {
		l.answerFirst(v, false)
	}
	if len(v.waiters) > 0 {
		l.arm(v)
	}
}

// concurrencyLimit returns the refusal for want of a slot, which callers may repeat after a
// second.
func concurrencyLimit(why string) error {
	err := api.Errorf(api.CodeConcurrencyLimit, "%s; raise max_concurrency or slow down", why)
	err.RetryAfter = time.Second
	return err
}
