package providers

import (
	"context"
	"sync"
	"time"

	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage"
)

// A limit a minute saves up savedUp thousandths of it, and a replica leases leased thousandths of it at
// most, for leaseFor. In any minute, n replicas together therefore use at most the limit, the 20
// thousandths, n times the 5, and the rest of one call that is larger.
const (
	savedUp  = 20
	leased   = 5
	leaseFor = time.Second
	// lockedWait is the wait that is reported while other calls of the replica wait.
	lockedWait = 25 * time.Millisecond
	maxBuckets = 10_000
)

// Amounts are what a call takes out of the limits of a provider.
type Amounts struct{ Requests, Input, Output int64 }

// list returns the amounts in the order of limitsOf.
func (a Amounts) list() [3]int64 { return [3]int64{a.Requests, a.Input, a.Output} }

// limitNames are the fields of the limits in the store.
var limitNames = [3]string{"requests", "input", "output"}

// limitsOf returns the limits of a provider, 0 for none.
func limitsOf(p *ai.Provider) [3]int64 {
	return [3]int64{p.RequestsPerMinute, p.InputTokensPerMinute, p.OutputTokensPerMinute}
}

// Limiter holds the limits a minute of providers, together with those of other replicas. A call costs
// at most one command of the store, and none while the replica has leased amounts, or without limits.
// It is safe for concurrent use.
type Limiter struct {
	s *storage.Store

	mu      sync.Mutex
	buckets map[string]*bucket
}

// NewLimiter returns the limiter of the providers in s.
func NewLimiter(s *storage.Store) *Limiter { return &Limiter{s: s, buckets: map[string]*bucket{}} }

// bucket has what the replica has leased of the limits of a provider.
type bucket struct {
	// turn holds a token while no call asks the store: calls that wait do so one behind the other.
	turn chan struct{}

	mu   sync.Mutex
	held [3]int64
	ends time.Time // of the lease
	back [3]int64  // what the next call of the store returns; negative: what it takes in addition
}

// of returns the bucket of a provider.
func (l *Limiter) of(tenant, provider string) *bucket {
	key := tenant + "/" + provider
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			clear(l.buckets) // what they have leased is lost, which delays calls a little
		}
		b = &bucket{turn: make(chan struct{}, 1)}
		b.turn <- struct{}{}
		l.buckets[key] = b
	}
	return b
}

// takeHeld takes need out of the leased amounts, all or nothing.
func (b *bucket) takeHeld(limits, need [3]int64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.After(b.ends) {
		for i, n := range b.held {
			b.back[i] += n
			b.held[i] = 0
		}
		return false
	}
	for i := range need {
		if limits[i] > 0 && b.held[i] < need[i] {
			return false
		}
	}
	for i := range need {
		if limits[i] > 0 {
			b.held[i] -= need[i]
		}
	}
	return true
}

// takeBack returns what the next call of the store returns, and the leased amounts.
func (b *bucket) takeBack() (back, held [3]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	back, b.back = b.back, back
	return back, b.held
}

// Take takes the amounts of a call out of the limits of p, and returns 0. If they are used up, it waits
// for up to patience, or returns how long the next try should wait. Calls of a replica that wait are
// served in their order. Errors: CodeStoreUnavailable, ctx's.
func (l *Limiter) Take(ctx context.Context, tenant string, p *ai.Provider, need Amounts, patience time.Duration) (time.Duration, error) {
	limits, amounts := limitsOf(p), need.list()
	if limits == [3]int64{} {
		return 0, nil
	}
	b, until := l.of(tenant, p.Name), time.Now().Add(patience)
	if b.takeHeld(limits, amounts, time.Now()) {
		return 0, nil
	}
	if !b.enter(ctx, patience) {
		return lockedWait, ctx.Err()
	}
	defer func() { b.turn <- struct{}{} }()
	for {
		if b.takeHeld(limits, amounts, time.Now()) {
			return 0, nil
		}
		wait, err := l.ask(ctx, tenant, p, b, amounts, leased)
		if wait == 0 || err != nil || time.Now().Add(wait).After(until) {
			return wait, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
	}
}

// enter waits for the turn of a call, and reports whether it has come.
func (b *bucket) enter(ctx context.Context, patience time.Duration) bool {
	select {
	case <-b.turn:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-b.turn:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// ask takes amounts out of the limits in the store, and leases up to share thousandths of them. It
// returns the wait until the amounts can be taken, 0 if they were.
func (l *Limiter) ask(ctx context.Context, tenant string, p *ai.Provider, b *bucket, need [3]int64, share int64) (time.Duration, error) {
	limits := limitsOf(p)
	back, held := b.takeBack()
	args, leasing := []any{l.s.NowMS(), savedUp}, []int{}
	for i, limit := range limits {
		if limit > 0 {
			args = append(args, limitNames[i], limit, back[i], need[i], max(0, limit*share/1000-held[i]))
			leasing = append(leasing, i)
		}
	}
	reply, err := l.s.Script(ctx, scriptTake, []string{l.s.Keys().Providers(tenant, partLimit+p.Name)}, args...)
	var n []int64
	if err == nil {
		n, err = numbers(reply, 1)
	}
	if err != nil {
		b.returns(back) // it may have been returned: then it counts twice, at most one lease
		return 0, err
	}
	switch {
	case n[0] == 0 && share == 0:
		return 0, nil
	case n[0] > 0 || len(n) <= len(leasing):
		return time.Duration(max(n[0], 1)) * time.Millisecond, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, i := range leasing {
		b.held[i] += n[1+k]
	}
	b.ends = time.Now().Add(leaseFor)
	return 0, nil
}

// returns adds to what the next call of the store returns.
func (b *bucket) returns(amounts [3]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, n := range amounts {
		b.back[i] += n
	}
}

// Settle corrects the amounts that a call has taken to those that it has used. A debt is written to the
// store, so that other replicas wait as well. Errors: CodeStoreUnavailable.
func (l *Limiter) Settle(ctx context.Context, tenant string, p *ai.Provider, taken, used Amounts) error {
	limits, before, after := limitsOf(p), taken.list(), used.list()
	var back [3]int64
	for i := range back {
		if limits[i] > 0 {
			back[i] = before[i] - after[i]
		}
	}
	if back == [3]int64{} {
		return nil
	}
	b := l.of(tenant, p.Name)
	b.returns(back)
	var none [3]int64
	_, err := l.ask(ctx, tenant, p, b, none, 0)
	return err
}
