// Package sweeper finds and repairs what crashes leave behind where no call and no regular
// maintenance would find it. It has no leader: any number of replicas may run sweepers over
// one store, and each repair is made by one of them.
//
// A Sweeper follows five routes, each with a walker that remembers how far it has come:
//
//	places     tenants.go      tenants, namespaces, functions, with a visitor for each kind of
//	                           record: queues.go, schedules.go, activations.go
//	documents  documents.go    documents that have expired, and counts of usage
//	jobs       jobs.go         the keys of all jobs and batches
//	quotas     quotas.go       the amounts of quotas, and the indexes of cs.kv
//	kv         quotas.go       values of cs.kv that an earlier release has written
//
// A step (RunOnce, once a second) spends about Config.Reads store commands: each route has its
// share, and routes with more to do get the rest. A pass is one time over a whole route. After a
// pass without findings a route is idle, until something is found. All idle routes together cost
// about one command each Config.IdleInterval, no matter how large the store is. The effects of a
// crash are found within two passes.
//
// The sweeper decides what to look at, how fast, and what to log and count. The packages that own
// the records find the faults: queue/repair, scheduler.Ticker.Mend, storage/activations,
// storage/documents. TaskSweeper (tasks.go) is separate: it has a loop of its own, because stuck
// tasks are regular work and must be found in seconds.
package sweeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/schedules"
)

// Config adjusts a Sweeper. A zero value means the default.
type Config struct {
	// Interval is the time between two steps. Default: 1 s.
	Interval time.Duration
	// Reads bounds the commands of the store that one step may cost. Default: 500.
	Reads int
	// IdleInterval is the shortest time for each read after a whole pass has found nothing,
	// until something is found or the store fails. Default: 430 ms.
	IdleInterval time.Duration
	// PassInterval is the shortest time from the start of one pass to the start of the next,
	// which keeps a sweeper of a small store quiet. Default: 5 s.
	PassInterval time.Duration
	// Metrics exports the sweeper's metrics. Default: they are not exported.
	Metrics prometheus.Registerer
}

func (c Config) withDefaults() (Config, error) {
	if c.Interval < 0 || c.Reads < 0 || c.IdleInterval < 0 || c.PassInterval < 0 {
		return c, errors.New("sweeper: the settings must not be negative")
	}
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Reads = cmp.Or(c.Reads, 500)
	c.IdleInterval = cmp.Or(c.IdleInterval, 430*time.Millisecond)
	c.PassInterval = cmp.Or(c.PassInterval, 5*time.Second)
	return c, nil
}

// Counts is the work of one step.
type Counts struct {
	Tenants, Functions      int // visited
	Expired                 int // documents that had expired and were removed
	activations.SweepCounts     // synchronous activations
	// Repairs are those of queues, jobs, batches, asynchronous activations, schedules and
	// documents.
	Repairs []repair.Repair
}

// Sweeper goes over the whole store again and again, a bounded number of reads a step, on
// five routes: all tenants with their namespaces and functions, all documents, all jobs, the quotas
// of all tenants, and all values of cs.kv.
// A route on which a whole pass found nothing is followed slowly. It is not safe for concurrent
// use. Its positions are in memory only, so a new process begins its passes at the start.
type Sweeper struct {
	store      *storage.Store
	cfg        Config
	logger     *zap.Logger
	metrics    *sweepMetrics
	routes     []*progress
	unreadable logged
}

// New returns a Sweeper over store, in which broker keeps its jobs. It refuses a negative
// setting, and a registry that has a sweeper's metrics already.
func New(store *storage.Store, broker *queue.Broker, cfg Config, logger *zap.Logger) (*Sweeper, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Sweeper{store: store, cfg: cfg, logger: logger, metrics: newSweepMetrics()}
	if err := s.metrics.register(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("sweeper: %w", err)
	}
	// The sweeper itself counts and logs what this ticker repairs.
	ticker, err := scheduler.NewTicker(store, broker, nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	repairer := broker.NewRepairer()
	tenants := storage.NewTenants(store)
	s.routes = []*progress{
		{name: "places", share: 3, walker: s.tenantWalker(tenants, broker, repairer, ticker)},
		{name: "documents", share: 1, walker: &documentWalker{s: s, documents: documents.NewRepository(store), tenants: tenants}},
		{name: "jobs", share: 1, walker: &jobWalker{s: s, repairer: repairer}},
		{name: "quotas", share: 1, walker: s.quotaWalker(tenants)},
		{name: "kv", share: 1, walker: &kvWalker{kvstore.NewAdoption(store)}},
	}
	return s, nil
}

// tenantWalker returns the walker over tenants, with its visitors.
func (s *Sweeper) tenantWalker(tenants *storage.Tenants, broker *queue.Broker, repairer *repair.Repairer, ticker *scheduler.Ticker) *tenantWalker {
	bySchedule := &scheduleVisitor{s: s, ticker: ticker, schedules: schedules.New(s.store), broker: broker}
	return &tenantWalker{
		places:      tenants.Walk,
		ofTenant:    []visitor{&queueVisitor{s, repairer}, bySchedule},
		ofNamespace: []visitor{bySchedule},
		ofFunction:  []visitor{&activationVisitor{s, activations.New(s.store), repairer}},
	}
}

// Run calls RunOnce at each interval until ctx ends. It logs the first of several failures in
// a row. Call it once.
func (s *Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	defer func() {
		for _, r := range s.routes {
			r.walker.stop()
		}
	}()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			began := time.Now()
			_, err := s.RunOnce(ctx, s.store.Now())
			s.metrics.loop.Round(began, err)
			if err != nil && ctx.Err() == nil && !failing {
				s.logger.Warn("a step of the sweeper failed; the next one tries again", zap.Error(err))
			}
			failing = err != nil
		}
	}
}

// RunOnce takes one step at the given time: each route is continued where it was left, until
// its share of the reads is spent or its pass has ended; the remaining reads then go to the
// routes that have more to do. An error in one record does not keep the step from the
// others. When the store fails, no route is idle any more: the store may have lost its last
// writes. RunOnce returns what it did and the first error, and is not safe for concurrent use.
//
// With the default of 500 reads and five busy routes, places may spend 215 reads, and the others 72
// each. If documents end their pass after 20 reads, places and
// then jobs continue with the rest of the 500.
func (s *Sweeper) RunOnce(ctx context.Context, now time.Time) (total Counts, err error) {
	shares := 0
	for _, r := range s.routes {
		shares += r.share
	}
	step := &step{s: s, now: now, shares: shares, total: &total}
	for _, r := range s.routes {
		step.advance(ctx, r, s.cfg.Reads*r.share/shares+1)
	}
	for _, r := range s.routes {
		if left := s.cfg.Reads - step.spent; left > 0 && r.running && !r.idle {
			step.advance(ctx, r, left)
		}
	}
	s.metrics.swept(total)
	return total, cmp.Or(step.err, ctx.Err())
}

// step is one call of RunOnce.
type step struct {
	s      *Sweeper
	now    time.Time
	shares int // the sum of all routes' shares
	total  *Counts
	spent  int   // reads
	err    error // the first one
	failed bool  // the store failed, which ends the step
}

// advance continues a route for about budget reads. An idle route does one chunk, and then
// pauses in proportion to its cost and to the inverse of its share, so that all idle routes
// together cost one read each IdleInterval.
func (t *step) advance(ctx context.Context, r *progress, budget int) {
	if t.failed || !r.ready(t.now, t.s.cfg.PassInterval) {
		return
	}
	spent := 0
	defer func() { t.spent += spent }()
	slow := r.idle
	if slow {
		budget = 1
	}
	for spent < budget && ctx.Err() == nil {
		c, err := r.walker.chunk(ctx, t.now, budget-spent, t.total)
		spent += max(1, c.reads)
		if c.busy {
			r.found, r.idle = true, false
		}
		t.err = cmp.Or(t.err, err)
		if storage.Fatal(ctx, err) {
			t.fail()
			return
		}
		if c.end {
			t.s.metrics.pass.WithLabelValues(r.name).Set(time.Since(r.clock).Seconds())
			r.running, r.idle = false, !r.found
			break
		}
	}
	if slow {
		r.pauseUntil = t.now.Add(time.Duration(spent) * t.s.cfg.IdleInterval * time.Duration(t.shares) / time.Duration(r.share))
	}
}

// fail ends the step because the store failed.
func (t *step) fail() {
	t.failed = true
	for _, r := range t.s.routes {
		r.idle = false
	}
}
