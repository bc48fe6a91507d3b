// Package turns shares the processor time that the server itself spends on what functions
// write: the search of their logs and errors for secrets, and the encoding of log lines. That
// work is done outside the sandboxes, so none of their limits applies to it.
//
// Two bounds hold. At most Config.Parallel turns run at once, and while several tenants wait
// they take turns one by one, whatever the number of their activations. A tenant whose turns
// took more than its share of the time waits until the excess is paid back. The wait is back
// pressure: the child whose line waits is not read.
package turns

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
)

// maxKnown is the number of tenants from which those without turns and without debt are
// forgotten.
const maxKnown = 1024

// Config configures Turns.
type Config struct {
	// Parallel is the largest number of turns that run at once.
	Parallel int
	// Share is the part of one processor that a tenant may use all the time.
	Share float64
	// Burst is the processor time that a tenant may use ahead of its share.
	Burst time.Duration
}

// ForLogs returns the Turns of logs and errors. All tenants together use a quarter of the
// processors, at least one. A tenant may use a quarter of one all the time, which encodes some
// ten thousand lines a second, and 250 ms ahead.
func ForLogs() *Turns {
	return New(Config{Parallel: max(1, runtime.GOMAXPROCS(0)/4), Share: 0.25, Burst: 250 * time.Millisecond})
}

// Turns hands out turns. It is safe for concurrent use. A nil *Turns hands out all turns at
// once.
type Turns struct {
	cfg           Config
	spent, waited prometheus.Counter

	mu      sync.Mutex
	running int
	known   map[string]*tenant
	queue   []*tenant // tenants that wait, in the order of their next turns
}

// tenant is a tenant with turns or with debt. The mutex of Turns guards it.
type tenant struct {
	name    string
	waiting []chan struct{} // closed when the turn begins
	running int
	// paid is the time at which the tenant's share covers all its turns.
	paid time.Time
}

// New returns Turns by cfg.
func New(cfg Config) *Turns {
	return &Turns{
		cfg: cfg, known: map[string]*tenant{},
		spent: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "log_work_seconds_total",
			Help: "Time that the server spent on the log lines and errors of functions: encoding, and the search for secrets.",
		}),
		waited: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "log_wait_seconds_total",
			Help: "Time that functions waited because their tenant writes more logs than its share of the server's time covers.",
		}),
	}
}

// Register exports the metrics; reg may be nil.
func (t *Turns) Register(reg prometheus.Registerer) error {
	return metrics.Register(reg, t.spent, t.waited)
}

// Turn is a turn that runs until End. It must end once.
type Turn struct {
	turns *Turns
	of    *tenant
	began time.Time
}

// Begin waits for a turn of the tenant: first until its debt is paid, then in the queue.
// Errors: ctx's; CodeRuntimeTimeout if the turn does not begin before until.
func (t *Turns) Begin(ctx context.Context, name string, until time.Time) (Turn, error) {
	if t == nil {
		return Turn{}, nil
	}
	t.mu.Lock()
	of := t.find(name)
	if now := time.Now(); t.debt(of, now) <= 0 && t.start(of) {
		t.mu.Unlock()
		return Turn{t, of, now}, nil
	}
	t.mu.Unlock()
	ctx, cancel := context.WithDeadlineCause(ctx, until, api.Errorf(api.CodeRuntimeTimeout, "the tenant's logs wait for longer than the activation may take"))
	defer cancel()
	began := time.Now()
	defer func() { t.waited.Add(time.Since(began).Seconds()) }()
	if err := t.settle(ctx, of); err != nil {
		return Turn{}, err
	}
	return t.line(ctx, of)
}

// Await waits for a turn of the tenant: until its debt is paid, but at most for maxWait, and
// then in the queue. It does not fail, and is for work that must be done.
func (t *Turns) Await(name string, maxWait time.Duration) Turn {
	turn, err := t.Begin(context.Background(), name, time.Now().Add(maxWait))
	if err == nil {
		return turn
	}
	t.mu.Lock()
	of := t.find(name)
	t.mu.Unlock()
	turn, _ = t.line(context.Background(), of) // without a deadline it has no error
	return turn
}

// find returns the tenant of a name. The caller holds mu.
func (t *Turns) find(name string) *tenant {
	of := t.known[name]
	if of != nil {
		return of
	}
	if len(t.known) >= maxKnown {
		now := time.Now()
		for other, of := range t.known {
			if of.running == 0 && len(of.waiting) == 0 && !of.paid.After(now) {
				delete(t.known, other)
			}
		}
	}
	of = &tenant{name: name, paid: time.Now()}
	t.known[name] = of
	return of
}

// debt returns how long the tenant has to wait at now until its share covers its turns but for
// the burst. The caller holds mu.
func (t *Turns) debt(of *tenant, now time.Time) time.Duration {
	return of.paid.Sub(now) - time.Duration(float64(t.cfg.Burst)/t.cfg.Share)
}

// start begins a turn if one is free and no tenant waits. The caller holds mu.
func (t *Turns) start(of *tenant) bool {
	if t.running >= t.cfg.Parallel || len(t.queue) > 0 {
		return false
	}
	t.running++
	of.running++
	return true
}

// settle waits until the tenant has no debt.
func (t *Turns) settle(ctx context.Context, of *tenant) error {
	for {
		t.mu.Lock()
		wait := t.debt(of, time.Now())
		t.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// line waits in the queue for a turn.
func (t *Turns) line(ctx context.Context, of *tenant) (Turn, error) {
	t.mu.Lock()
	if t.start(of) {
		t.mu.Unlock()
		return Turn{t, of, time.Now()}, nil
	}
	granted := make(chan struct{})
	of.waiting = append(of.waiting, granted)
	if len(of.waiting) == 1 {
		t.queue = append(t.queue, of)
	}
	t.known[of.name] = of // it may have been forgotten meanwhile
	t.mu.Unlock()
	select {
	case <-granted:
		return Turn{t, of, time.Now()}, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, other := range of.waiting {
		if other == granted {
			of.waiting = append(of.waiting[:n], of.waiting[n+1:]...)
			t.unqueue(of)
			return Turn{}, context.Cause(ctx)
		}
	}
	// The turn was granted at the same moment: it is returned unused.
	t.end(of, time.Now(), 0)
	return Turn{}, context.Cause(ctx)
}

// unqueue removes a tenant without waiters from the queue. The caller holds mu.
func (t *Turns) unqueue(of *tenant) {
	if len(of.waiting) > 0 {
		return
	}
	for n, other := range t.queue {
		if other == of {
			t.queue = append(t.queue[:n], t.queue[n+1:]...)
			return
		}
	}
}

// end counts a turn of the tenant, which ended at now, and begins the next ones: the tenant at the head of
// the queue has a turn and, if it waits for more, goes to the tail. The caller holds mu.
func (t *Turns) end(of *tenant, now time.Time, took time.Duration) {
	t.running--
	of.running--
	if of.paid.Before(now) {
		of.paid = now
	}
	of.paid = of.paid.Add(time.Duration(float64(took) / t.cfg.Share))
	for t.running < t.cfg.Parallel && len(t.queue) > 0 {
		next := t.queue[0]
		t.queue = t.queue[1:]
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
		if len(next.waiting) > 0 {
			t.queue = append(t.queue, next)
		}
		t.running++
		next.running++
	}
}

// End ends the turn, and charges its time to the tenant.
func (turn *Turn) End() {
	t := turn.turns
	if t == nil {
		return
	}
	now := time.Now()
	took := now.Sub(turn.began)
	t.spent.Add(took.Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(turn.of, now, took)
}

// Pause lets others have a turn in the middle of long work: it ends the turn, and waits for the
// next one in the queue. It does nothing while no tenant waits.
func (turn *Turn) Pause() {
	t := turn.turns
	if t == nil {
		return
	}
	t.mu.Lock()
	waits := len(t.queue) > 0
	t.mu.Unlock()
	if !waits {
		return
	}
	turn.End()
	*turn, _ = t.line(context.Background(), turn.of) // without a deadline it has no error
}
