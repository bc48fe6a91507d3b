package examine

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage"
)

// Limits of the difference between a replica's clock and the store's. Replicas write
// times by their own clocks and compare them with those of others, so what counts is the
// difference between two replicas, which is at most twice the difference of either
// from the store.
const (
	// SkewWarning keeps two replicas within 2 s. An asynchronous run's lease has at
	// least 3 s left whenever it is renewed in time (invoker/worker.go): a replica
	// that is further ahead takes runs from replicas that are alive, and begins them
	// again. Schedules tick early or late by the difference.
	SkewWarning = time.Second
	// SkewFailure keeps two replicas within api.LostGraceMS. Beyond it one replica
	// records the calls that another is still ending as lost.
	SkewFailure = 5 * time.Second
)

// defaultClockInterval is the interval at which a ClockWatch compares the clocks.
const defaultClockInterval = 30 * time.Second

// Skew is the difference between the store's clock and this process's.
type Skew struct {
	// Ahead is how far the store's clock is ahead; negative where it is behind.
	Ahead time.Duration
	// Bound is the error of Ahead: half of the round trip.
	Bound time.Duration
	// Server is the address of the server in a cluster whose clock differs most.
	Server string
}

// Level returns the severity of the part of the difference that the round trip cannot
// explain.
func (k Skew) Level() Level {
	switch certain := k.Ahead.Abs() - k.Bound; {
	case certain > SkewFailure:
		return LevelFailure
	case certain > SkewWarning:
		return LevelWarning
	}
	return LevelOK
}

// String describes the difference in words, as a Finding has it.
func (k Skew) String() string {
	direction := "ahead of"
	if k.Ahead < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("the store's clock is %s (±%s) %s this machine's",
		k.Ahead.Abs().Round(10*time.Microsecond), k.Bound.Round(10*time.Microsecond), direction)
}

// finding checks the difference.
func (k Skew) finding() Finding {
	f := Finding{Name: CheckClock, Level: k.Level(), Text: k.String(), Server: k.Server}
	limit, consequence := SkewWarning, "two such replicas may take each other's asynchronous runs, and schedules tick at the wrong time"
	switch f.Level {
	case LevelOK:
		return f
	case LevelFailure:
		limit, consequence = SkewFailure, "two such replicas may record each other's running calls as lost"
	case LevelWarning:
	}
	f.Text += fmt.Sprintf(", more than %s: %s", limit, consequence)
	f.Remedy = "synchronize the clocks of all replicas and of the store by NTP"
	return f
}

// CompareClocks compares the store's clock with that of s; for a cluster it returns the
// Skew of the master that differs most. It fails with api.CodeStoreUnavailable where a
// server does not answer, and with api.CodeInternal where it refuses TIME.
func CompareClocks(ctx context.Context, s *storage.Store) (Skew, error) {
	nodes, err := s.Masters(ctx)
	if err != nil {
		return Skew{}, err
	}
	skew, refusal, err := measureSkew(ctx, s, nodes)
	if err == nil {
		err = storage.Failure(ctx, "compare the clocks", refusal)
	}
	return skew, err
}

// measureSkew is CompareClocks for the given servers. refusal is the error of a server
// that refuses TIME.
//
// The server's answer is compared with the middle of the round trip. If TIME was sent at
// 10.000 s and answered at 10.020 s with 11.510 s, the store is 1.5 s ahead, to 10 ms: at
// least 1.49 s, which exceeds SkewWarning. Of several servers, the one whose difference is
// the largest after that deduction counts.
func measureSkew(ctx context.Context, s *storage.Store, nodes []storage.Node) (worst Skew, refusal, err error) {
	for i, n := range nodes {
		sent := s.Now()
		theirs, err := n.Client.Time(ctx).Result()
		received := s.Now()
		if storage.Refused(err) {
			return Skew{}, err, nil
		}
		if err != nil {
			return Skew{}, nil, storage.Failure(ctx, "compare the clocks", err)
		}
		half := received.Sub(sent) / 2
		k := Skew{Ahead: theirs.Sub(sent.Add(half)), Bound: half, Server: n.Addr}
		if i == 0 || k.Ahead.Abs()-k.Bound > worst.Ahead.Abs()-worst.Bound {
			worst = k
		}
	}
	return worst, nil, nil
}

// ClockWatchConfig adjusts a ClockWatch.
type ClockWatchConfig struct {
	// Interval is the time between two comparisons. Default: 30 s.
	Interval time.Duration
	// Metrics registers the difference. Default: none.
	Metrics prometheus.Registerer
	// Logger receives changes of level. Default: none.
	Logger *zap.Logger
}

// ClockWatch compares the clocks periodically, exports the difference, and logs when it
// crosses a limit. Every replica has one, which limits the difference between two
// replicas, too. It changes nothing else: a replica with a wrong clock continues to work. The
// owner calls Run once; RunOnce is for Run and for tests.
type ClockWatch struct {
	store *storage.Store
	cfg   ClockWatchConfig
	loop  *metrics.Loop

	mu       sync.Mutex
	last     Skew
	compared bool // last is the result of a comparison
}

// NewClockWatch returns a ClockWatch that begins with the Skew of report, which the caller
// has logged: the first comparison logs only a change from it. It fails with
// api.CodeInvalid for a negative interval, and where cfg.Metrics has its metrics already.
func NewClockWatch(s *storage.Store, report Report, cfg ClockWatchConfig) (*ClockWatch, error) {
	if cfg.Interval == 0 {
		cfg.Interval = defaultClockInterval
	}
	if cfg.Interval < 0 {
		return nil, api.Errorf(api.CodeInvalid, "clock watch: the interval %s is negative", cfg.Interval)
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	w := &ClockWatch{store: s, cfg: cfg, loop: metrics.NewLoop("store_clock"), last: report.Skew, compared: report.Skew != (Skew{})}
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metrics.Namespace, Name: "store_clock_skew_seconds",
		Help: "Seconds by which the store's clock is ahead of this replica's in the last comparison; negative if behind, NaN before the first.",
	}, func() float64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.compared {
			return math.NaN()
		}
		return w.last.Ahead.Seconds()
	})
	return w, metrics.Register(cfg.Metrics, gauge, w.loop)
}

// Run compares the clocks immediately and then at each interval, until ctx ends. Of several
// failures in a row it logs the first one.
func (w *ClockWatch) Run(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Interval)
	defer tick.Stop()
	for failing := false; ; {
		began := time.Now()
		err := w.RunOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		w.loop.Round(began, err)
		if err != nil && !failing {
			w.cfg.Logger.Warn("the store's clock could not be compared", zap.Error(err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// RunOnce compares the clocks and logs a change of the Skew's level. A failed comparison leaves
// the last Skew, and returns the error of CompareClocks.
func (w *ClockWatch) RunOnce(ctx context.Context) error {
	skew, err := CompareClocks(ctx, w.store)
	if err != nil {
		return err
	}
	w.mu.Lock()
	before := w.last.Level()
	w.last, w.compared = skew, true
	w.mu.Unlock()
	switch f := skew.finding(); f.Level {
	case before:
	case LevelOK:
		w.cfg.Logger.Info("the clocks agree again: "+f.Text, f.fields()...)
	default:
		w.cfg.Logger.Warn(f.Text, f.fields()...)
	}
	return nil
}
