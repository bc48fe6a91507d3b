package invoker

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

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

// gate guards one version. It lives while somebody holds or awaits a place, so
// that a version has one gate and forgotten versions have none.
type gate struct {
	places *semaphore.Weighted
	users  int // holders and waiters; under limits.mu
	inLine int // waiters; under limits.mu
}

func newLimits() *limits { return &limits{gate: make(map[string]*gate)} }

// acquire takes a place among limit, waiting in line for at most maxWait.
// Errors: CodeConcurrencyLimit, or ctx's own.
func (l *limits) acquire(ctx context.Context, version string, limit int) (release func(), err error) {
	g := l.enter(version, limit)
	if !g.places.TryAcquire(1) {
		if err := l.wait(ctx, g); err != nil {
			l.leave(version, g)
			return nil, err
		}
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			g.places.Release(1)
			l.leave(version, g)
		})
	}, nil
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
		return g.users - g.inLine
	}
	return 0
}

func (l *limits) enter(version string, limit int) *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gate[version]
	if g == nil {
		g = &gate{places: semaphore.NewWeighted(int64(limit))}
		l.gate[version] = g
	}
	g.users++
	return g
}

func (l *limits) leave(version string, g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(l.gate, version)
	}
}

func (l *limits) wait(ctx context.Context, g *gate) error {
	if !l.join(g) {
		return concurrencyLimit("the line for this version is full")
	}
	defer l.quit(g)
	waitCtx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := g.places.Acquire(waitCtx, 1); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return concurrencyLimit("no place for this version became free in time")
	}
	return nil
}

func (l *limits) join(g *gate) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.inLine >= maxWaiting {
		return false
	}
	g.inLine++
	return true
}

func (l *limits) quit(g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.inLine--
}

func concurrencyLimit(why string) error {
	err := api.Errorf(api.CodeConcurrencyLimit, "%s; raise max_concurrency or slow down", why)
	err.RetryAfter = time.Second
	return err
}
