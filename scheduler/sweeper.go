// Package scheduler holds the loops that keep the store sound without a leader:
// any number of replicas may run them at once.
package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// SweeperConfig is how fast a Sweeper works; zero values mean the default.
type SweeperConfig struct {
	// Interval between steps (default 1 s).
	Interval time.Duration
	// Reads that one step may spend (default 500).
	Reads int
	// IdleInterval is the least time between two functions once a whole lap has
	// found no activation that it did not know, until one is found (default 2 s).
	IdleInterval time.Duration
	// Lap is the least time from the start of one walk through all functions to
	// the start of the next (default 5 s), so that a small store stays quiet.
	Lap time.Duration
	// Metrics is where the sweeper's metrics are exported (default: nowhere).
	Metrics prometheus.Registerer
}

func (c SweeperConfig) withDefaults() (SweeperConfig, error) {
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
		c.IdleInterval = 2 * time.Second
	}
	if c.Lap == 0 {
		c.Lap = 5 * time.Second
	}
	return c, nil
}

// functionReads is what a function costs even where nothing is found.
const functionReads = 3

// Counts is what one step did.
type Counts struct {
	Functions int // visited
	storage.SweepCounts
}

// Sweeper finds what a crash left behind and nobody has read since: activations
// that still say running although their replica is dead. It walks the indexes
// of all functions, a bounded number of reads a step, lap after lap.
type Sweeper struct {
	activations *storage.Activations
	tenants     *storage.Tenants
	cfg         SweeperConfig
	logger      *zap.Logger
	metrics     *sweeperMetrics

	walk     func() (storage.FunctionPath, error, bool) // nil between laps
	stopWalk func()
	lapBegan time.Time
	lapStart time.Time // the same by the process's own clock
	lapFound bool      // it found something
	idle     bool      // the lap before it did not
	stepped  time.Time // when it took its last step
}

// NewSweeper makes a sweeper over store. A setting below zero is refused, and a
// registry that has a sweeper's metrics.
func NewSweeper(store *storage.Store, cfg SweeperConfig, logger *zap.Logger) (*Sweeper, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	measured := newSweeperMetrics()
	if err := measured.register(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Sweeper{
		metrics:     measured,
		activations: storage.NewActivations(store),
		tenants:     storage.NewTenants(store),
		cfg:         cfg,
		logger:      logger,
	}, nil
}

// Run steps until ctx ends. A failed step is logged and tried again.
func (s *Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	defer s.endLap()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			began := time.Now()
			counts, err := s.RunOnce(ctx, now)
			s.metrics.loop.Round(began, err)
			if err != nil && ctx.Err() == nil && !failing {
				s.logger.Warn("the sweeper cannot work", zap.Error(err))
			}
			failing = err != nil
			if counts.Lost > 0 {
				s.logger.Warn("lost activations were ended", zap.Int("count", counts.Lost))
			}
		}
	}
}

// RunOnce takes one step at the given time: it goes on where the last one
// stopped, until its reads are spent or the lap is over. A function that cannot be
// swept keeps no other from it; after any other error the next step begins a new
// lap. It is not safe for concurrent use.
func (s *Sweeper) RunOnce(ctx context.Context, now time.Time) (total Counts, err error) {
	defer func() { s.metrics.swept(total) }()
	if s.idle && now.Sub(s.stepped) < s.cfg.IdleInterval {
		return total, nil
	}
	if s.walk == nil {
		if now.Sub(s.lapBegan) < s.cfg.Lap {
			return total, nil
		}
		s.lapBegan, s.lapStart, s.lapFound = now, time.Now(), false
		s.walk, s.stopWalk = iter.Pull2(s.tenants.Walk(context.WithoutCancel(ctx)))
	}
	s.stepped = now
	var failed error
	for spent := 0; spent < s.budget() && ctx.Err() == nil; spent += functionReads {
		path, err, more := s.walk()
		if !more {
			s.metrics.lap.Set(time.Since(s.lapStart).Seconds())
			s.idle = !s.lapFound
			s.endLap()
			return total, failed
		}
		if err != nil {
			s.endLap()
			return total, fmt.Errorf("walk functions: %w", err)
		}
		if path.Function == "" {
			continue
		}
		counts, err := s.activations.SweepFunction(ctx, path.Tenant, path.Namespace, path.Function, now.UnixMilli(), s.cfg.Reads-spent)
		total.Functions++
		total.Add(counts)
		spent += counts.Read
		if counts.Read > 0 {
			s.lapFound, s.idle = true, false
		}
		if err == nil {
			continue
		}
		err = fmt.Errorf("sweep function %s/%s/%s: %w", path.Tenant, path.Namespace, path.Function, err)
		if ctx.Err() != nil || api.ErrorCode(err) == api.CodeStoreUnavailable {
			s.endLap()
			return total, err
		}
		failed = cmp.Or(failed, err) // what one function's records are like is no other's business
	}
	return total, cmp.Or(failed, ctx.Err())
}

// budget is how many reads a step may spend: one function's where nothing happens.
func (s *Sweeper) budget() int {
	if s.idle {
		return 1
	}
	return s.cfg.Reads
}

// endLap lets the walk go; the next step begins a new one when it is time.
func (s *Sweeper) endLap() {
	if s.stopWalk != nil {
		s.stopWalk()
	}
	s.walk, s.stopWalk = nil, nil
}
