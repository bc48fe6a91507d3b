package invoker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
)

// Bounds of the wait for a slot of a version: how many callers wait, and how long.
const (
	maxWaiting = 256
	maxWait    = time.Second
)

// limits hands out the slots of each version on this replica.
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
type limits struct {
	mu       sync.Mutex
	versions map[string]*versionLimit
}

// versionLimit counts the slots of one version. It exists while a slot is taken, so that
// versions without calls use no memory. limits.mu guards its fields.
type versionLimit struct {
	version string
	limit   int
	taken   int
	waiters []*waiter // callers without a slot, in order of arrival
	// expiry fires when the first waiter has waited for maxWait. All wait equally long, so
	// one timer serves them all. It keeps running when the last waiter leaves: otherwise a
	// version at its limit would set it for each call.
	expiry *time.Timer
	armed  bool
}

// waiter is a waiting caller. admitted receives one value: whether it got a slot.
type waiter struct {
	admitted chan bool
	until    time.Time
}

func newLimits() *limits { return &limits{versions: make(map[string]*versionLimit)} }

// acquire takes one of limit slots, and waits for it for at most maxWait.
// Errors: CodeConcurrencyLimit, or ctx's own.
func (l *limits) acquire(ctx context.Context, version string, limit int) (release func(), err error) {
	g, w, err := l.enter(version, limit)
	if err != nil {
		return nil, err
	}
	if w != nil {
		if err := l.wait(ctx, g, w); err != nil {
			return nil, err
		}
	}
	var once sync.Once
	return func() { once.Do(func() { l.release(g) }) }, nil
}

// await takes a slot as acquire does, but waits for it until ctx ends.
// Errors: ctx's own.
func (l *limits) await(ctx context.Context, version string, limit int) (release func(), err error) {
	for {
		release, err = l.acquire(ctx, version, limit)
		if api.ErrorCode(err) != api.CodeConcurrencyLimit {
			return release, err
		}
		// Too many waited, or this caller waited for maxWait: it queues again at the end.
		if err := sleep.For(ctx, retryInterval); err != nil {
			return nil, err
		}
	}
}

// retryInterval is the time after which a waiting invocation asks again.
const retryInterval = 50 * time.Millisecond

// used returns how many slots of a version are taken.
func (l *limits) used(version string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.versions[version]; g != nil {
		return g.taken
	}
	return 0
}

// enter takes a free slot (w is nil) or queues for one. Errors: CodeConcurrencyLimit
// where maxWaiting callers wait.
func (l *limits) enter(version string, limit int) (g *versionLimit, w *waiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g = l.versions[version]
	switch {
	case g == nil:
		g = &versionLimit{version: version, limit: limit, taken: 1}
		l.versions[version] = g
		return g, nil, nil
	case g.taken < g.limit:
		g.taken++
		return g, nil, nil
	case len(g.waiters) >= maxWaiting:
		return nil, nil, concurrencyLimit("too many calls of this version wait already")
	}
	w = &waiter{admitted: make(chan bool, 1), until: time.Now().Add(maxWait)}
	g.waiters = append(g.waiters, w)
	l.arm(g)
	return g, w, nil
}

// wait returns nil once w has a slot.
func (l *limits) wait(ctx context.Context, g *versionLimit, w *waiter) error {
	select {
	case placed := <-w.admitted:
		if !placed {
			return concurrencyLimit("the version's running calls did not end in time")
		}
		return nil
	case <-ctx.Done():
		l.quit(g, w)
		return ctx.Err()
	}
}

// quit removes w from the waiters, or frees the slot that it got meanwhile.
func (l *limits) quit(g *versionLimit, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(g.waiters, w); i >= 0 {
		g.waiters = slices.Delete(g.waiters, i, i+1)
		return
	}
	if <-w.admitted { // it is no waiter any more, so the answer is there
		l.pass(g)
	}
}

func (l *limits) release(g *versionLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(g)
}

// pass hands a slot to the first waiter, if there is one. The caller holds l.mu.
func (l *limits) pass(g *versionLimit) {
	if len(g.waiters) > 0 {
		g.answerFirst(true)
		return
	}
	g.taken--
	if g.taken == 0 {
		delete(l.versions, g.version)
		if g.armed {
			g.expiry.Stop()
		}
	}
}

// answerFirst tells the first waiter whether it has a slot, and removes it.
func (g *versionLimit) answerFirst(placed bool) {
	g.waiters[0].admitted <- placed
	g.waiters = slices.Delete(g.waiters, 0, 1)
}

// arm makes expiry fire for the first waiter. The caller holds l.mu.
func (l *limits) arm(g *versionLimit) {
	if g.armed {
		return
	}
	g.armed = true
	wait := time.Until(g.waiters[0].until)
	if g.expiry == nil {
		g.expiry = time.AfterFunc(wait, func() { l.expire(g) })
		return
	}
	g.expiry.Reset(wait)
}

// expire refuses the callers that have waited for maxWait.
func (l *limits) expire(g *versionLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.armed = false
	for now := time.Now(); len(g.waiters) > 0 && !now.Before(g.waiters[0].until); {
		g.answerFirst(false)
	}
	if len(g.waiters) > 0 {
		l.arm(g)
	}
}

func concurrencyLimit(why string) error {
	err := api.Errorf(api.CodeConcurrencyLimit, "%s; raise max_concurrency or slow down", why)
	err.RetryAfter = time.Second
	return err
}
