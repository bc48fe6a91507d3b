package invoker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// The line before a version's places: how many may stand in it, and for how long.
const (
	maxWaiting = 256
	maxWait    = time.Second
)

// limits hands out each version's places on this replica.
type limits struct {
	mu   sync.Mutex
	gate map[string]*gate
}

// gate guards one version. It lives while a place is taken, so that a version has
// one gate and forgotten versions have none. Its fields are guarded by limits.mu.
type gate struct {
	version string
	limit   int
	taken   int
	line    []*waiter // those without a place, the first to come first
	// expiry fires when the head of the line has waited for maxWait. All wait equally
	// long, so one timer serves the whole line. It is left running when the line
	// empties: a line that comes and goes would otherwise set it for each call.
	expiry *time.Timer
	armed  bool
}

// waiter is a caller in line. placed receives one value: whether it got a place.
type waiter struct {
	placed chan bool
	until  time.Time
}

func newLimits() *limits { return &limits{gate: make(map[string]*gate)} }

// acquire takes a place among limit, waiting in line for at most maxWait.
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

// await takes a place as acquire does, and waits for it as long as ctx lives.
// Errors: ctx's own.
func (l *limits) await(ctx context.Context, version string, limit int) (release func(), err error) {
	for {
		release, err = l.acquire(ctx, version, limit)
		if api.ErrorCode(err) != api.CodeConcurrencyLimit {
			return release, err
		}
		// The line was full, or this one waited its share: it joins again at its end.
		if err := pause(ctx, patience); err != nil {
			return nil, err
		}
	}
}

// patience is after how long a patient caller asks again for what was refused.
const patience = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// used is how many places of a version are taken.
func (l *limits) used(version string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.gate[version]; g != nil {
		return g.taken
	}
	return 0
}

// enter takes a free place (w is nil) or joins the line. Errors:
// CodeConcurrencyLimit where the line is full.
func (l *limits) enter(version string, limit int) (g *gate, w *waiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g = l.gate[version]
	switch {
	case g == nil:
		g = &gate{version: version, limit: limit, taken: 1}
		l.gate[version] = g
		return g, nil, nil
	case g.taken < g.limit:
		g.taken++
		return g, nil, nil
	case len(g.line) >= maxWaiting:
		return nil, nil, concurrencyLimit("the line for this version is full")
	}
	w = &waiter{placed: make(chan bool, 1), until: time.Now().Add(maxWait)}
	g.line = append(g.line, w)
	l.arm(g)
	return g, w, nil
}

// wait returns nil once w has a place.
func (l *limits) wait(ctx context.Context, g *gate, w *waiter) error {
	select {
	case placed := <-w.placed:
		if !placed {
			return concurrencyLimit("no place for this version became free in time")
		}
		return nil
	case <-ctx.Done():
		l.quit(g, w)
		return ctx.Err()
	}
}

// quit takes w out of the line, or gives back the place that it got meanwhile.
func (l *limits) quit(g *gate, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(g.line, w); i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
		return
	}
	if <-w.placed { // it left the line, so the answer is there
		l.pass(g)
	}
}

func (l *limits) release(g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(g)
}

// pass hands a place to the head of the line, if there is one; l.mu is held.
func (l *limits) pass(g *gate) {
	if len(g.line) > 0 {
		g.leaves(true)
		return
	}
	if g.taken--; g.taken == 0 {
		delete(l.gate, g.version)
		if g.armed {
			g.expiry.Stop()
		}
	}
}

// leaves tells the head of the line whether it has a place, and drops it from the line.
func (g *gate) leaves(placed bool) {
	g.line[0].placed <- placed
	g.line = slices.Delete(g.line, 0, 1)
}

// arm makes expiry fire for the head of the line; l.mu is held.
func (l *limits) arm(g *gate) {
	if g.armed {
		return
	}
	g.armed = true
	wait := time.Until(g.line[0].until)
	if g.expiry == nil {
		g.expiry = time.AfterFunc(wait, func() { l.expire(g) })
		return
	}
	g.expiry.Reset(wait)
}

// expire refuses those who have waited for maxWait.
func (l *limits) expire(g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.armed = false
	for now := time.Now(); len(g.line) > 0 && !now.Before(g.line[0].until); {
		g.leaves(false)
	}
	if len(g.line) > 0 {
		l.arm(g)
	}
}

func concurrencyLimit(why string) error {
	err := api.Errorf(api.CodeConcurrencyLimit, "%s; raise max_concurrency or slow down", why)
	err.RetryAfter = time.Second
	return err
}
