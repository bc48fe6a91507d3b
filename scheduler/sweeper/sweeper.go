// Package sweeper finds and repairs what crashes leave behind where no call and no regular
// maintenance would find it. It has no leader: any number of replicas may run sweepers over
// one store, and each repair is made by one of them.
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
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/documents"
)

// Config is how fast a Sweeper works; zero values mean the default.
type Config struct {
	// Interval between steps (default 1 s).
	Interval time.Duration
	// Reads that one step may spend (default 500).
	Reads int
	// IdleInterval is the least time for each read once a whole lap has found
	// nothing, until something is found or the store fails (default 600 ms).
	IdleInterval time.Duration
	// Lap is the least time from the start of one lap to the start of the next
	// (default 5 s), so that a small store stays quiet.
	Lap time.Duration
	// Metrics is where the sweeper's metrics are exported (default: nowhere).
	Metrics prometheus.Registerer
}

func (c Config) withDefaults() (Config, error) {
	if c.Interval < 0 || c.Reads < 0 || c.IdleInterval < 0 || c.Lap < 0 {
		return c, errors.New("scheduler: a sweeper's settings are not negative")
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Reads == 0 {
		c.Reads = 500
	}
	if c.IdleInterval == 0 {
		c.IdleInterval = 600 * time.Millisecond
	}
	if c.Lap == 0 {
		c.Lap = 5 * time.Second
	}
	return c, nil
}

// Counts is what one step did.
type Counts struct {
	Tenants, Functions int // visited
	Expired            int // documents, removed
	activations.SweepCounts
	// Repairs are those of queues, jobs, batches, asynchronous activations and documents.
	Repairs []queue.Repair
}

// Sweeper finds what a crash left behind and nobody has come upon since, and mends
// it. It goes over the store in three courses, one through all tenants, namespaces and
// functions, one through all documents, one through all jobs, lap after lap, a bounded
// number of reads a step. Where a lap found nothing it goes slowly.
type Sweeper struct {
	store   *storage.Store
	cfg     Config
	logger  *zap.Logger
	metrics *sweepMetrics
	laps    []*lap
	told    told
}

// New makes a sweeper over store, in which broker keeps its jobs. A setting
// below zero is refused, and a registry that has a sweeper's metrics.
func New(store *storage.Store, broker *queue.Broker, cfg Config, logger *zap.Logger) (*Sweeper, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	measured := newSweepMetrics()
	if err := measured.register(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	s := &Sweeper{store: store, cfg: cfg, logger: logger, metrics: measured}
	repairer := broker.NewRepairer()
	// What it mends is the sweeper's to count and to log.
	ticker, err := scheduler.NewTicker(store, broker, nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	s.laps = []*lap{
		{name: "places", share: 3, course: s.places(broker, repairer, ticker)},
		{name: "documents", share: 1, course: &documentCourse{s: s, documents: documents.NewRepository(s.store), tenants: storage.NewTenants(s.store)}},
		{name: "jobs", share: 1, course: &jobCourse{s: s, repairer: repairer}},
	}
	return s, nil
}

// places is the course through the tenants, with all who visit them.
func (s *Sweeper) places(broker *queue.Broker, repairer *queue.Repairer, ticker *scheduler.Ticker) *placeCourse {
	schedules := &scheduleVisitor{s: s, ticker: ticker, schedules: storage.NewSchedules(s.store), broker: broker}
	return &placeCourse{
		tenants:     storage.NewTenants(s.store),
		ofTenant:    []visitor{&queueVisitor{s, repairer}, schedules},
		ofNamespace: []visitor{schedules},
		ofFunction:  []visitor{&activationVisitor{s, activations.New(s.store), repairer}},
	}
}

// Run steps until ctx ends. A failed step is logged and tried again.
func (s *Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	defer func() {
		for _, l := range s.laps {
			l.course.stop()
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
				s.logger.Warn("the sweeper cannot work", zap.Error(err))
			}
			failing = err != nil
		}
	}
}

// RunOnce takes one step at the given time: each course goes on where it stopped,
// until the reads are spent or its lap is over. What cannot be looked at keeps nothing
// else from it; when the store fails, all courses are hurried again, since it may have
// lost the end of what it did. It is not safe for concurrent use.
func (s *Sweeper) RunOnce(ctx context.Context, now time.Time) (total Counts, err error) {
	spent, shares := 0, 0
	for _, l := range s.laps {
		shares += l.share
	}
	step := func(l *lap, budget int) (more bool) {
		n, failed := s.advance(ctx, l, now, budget, s.cfg.IdleInterval*time.Duration(shares)/time.Duration(l.share), &total)
		spent += n
		if err = cmp.Or(err, failed); storage.Fatal(ctx, failed) {
			for _, l := range s.laps {
				l.idle = false
			}
			return false
		}
		return true
	}
	goesOn := true
	for _, l := range s.laps {
		if goesOn {
			goesOn = step(l, s.cfg.Reads*l.share/shares+1)
		}
	}
	// What is left of the reads is for whoever has more to do.
	for _, l := range s.laps {
		if left := s.cfg.Reads - spent; goesOn && left > 0 && l.under && !l.idle {
			goesOn = step(l, left)
		}
	}
	s.metrics.swept(total)
	return total, cmp.Or(err, ctx.Err())
}

// advance takes a lap's share of a step, and says how many reads it took; quiet is the
// least time for each of them where the lap is idle.
func (s *Sweeper) advance(ctx context.Context, l *lap, now time.Time, budget int, quiet time.Duration, total *Counts) (spent int, failed error) {
	if !l.ready(now, s.cfg.Lap) {
		return 0, nil
	}
	slow := l.idle
	if slow {
		budget = 1
	}
	for spent < budget && ctx.Err() == nil {
		p, err := l.course.piece(ctx, now, budget-spent, total)
		spent += max(1, p.reads)
		if p.busy {
			l.found, l.idle = true, false
		}
		failed = cmp.Or(failed, err)
		if storage.Fatal(ctx, err) {
			return spent, err
		}
		if p.end {
			s.metrics.lap.WithLabelValues(l.name).Set(time.Since(l.start).Seconds())
			l.under, l.idle = false, !l.found
			break
		}
	}
	if slow {
		l.rest = now.Add(time.Duration(spent) * quiet)
	}
	return spent, failed
}
