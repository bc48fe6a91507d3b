package storage

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/metrics"
)

// storeMetrics are the metrics of a Store, and the hook through which the client reports
// every call. docs/metrics.md describes each metric.
type storeMetrics struct {
	calls     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	batches   prometheus.Histogram
	changes   *prometheus.CounterVec

	// scripts names each script by its digest and by its text.
	scripts map[string]string
	counted metrics.Memo[callResult, prometheus.Counter]
	timed   metrics.Memo[string, prometheus.Observer]
}

// callResult are the labels of a counted call.
type callResult struct{ command, outcome string }

// The outcomes of a call.
const (
	callOK          = "ok"
	callRefused     = "refused"     // by a script, with a code, or because the server has not got the script yet
	callCancelled   = "cancelled"   // the caller's context ended
	callUnavailable = "unavailable" // not reached, or the server cannot serve now
	callError       = "error"       // any other error that the server answered
)

// commandPipeline is the command label of all pipelines.
const commandPipeline = "pipeline"

// storeSeconds are the bounds of the buckets of a call's duration.
var storeSeconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

func newStoreMetrics(scripts map[string]*redis.Script, texts map[string]string) *storeMetrics {
	m := &storeMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "store_calls_total",
			Help: "Calls of the store, by command (pipelines as one call, scripts by name) and outcome.",
		}, []string{"command", "outcome"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "store_call_duration_seconds",
			Help: "Time spent in calls of the store, retries included, by command.", Buckets: storeSeconds,
		}, []string{"command"}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "store_commit_batch_size",
			Help: "Number of writes in one group commit.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, commitBatch},
		}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "store_changes_received_total",
			Help: "Change notices received, by kind.",
		}, []string{"kind"}),
		scripts: make(map[string]string, 2*len(scripts)),
	}
	for name, script := range scripts {
		m.scripts[script.Hash()] = name
		m.scripts[texts[name]] = name
	}
	return m
}

// register exports the metrics of s, and those of the embedded store under it.
func (m *storeMetrics) register(reg prometheus.Registerer, s *Store, embedded EmbeddedServer) error {
	queued, lag := queueMetrics(s.commits.Waiting)
	collectors := []prometheus.Collector{m.calls, m.durations, m.batches, m.changes, queued, lag, newConnectionMetrics(s)}
	if embedded != nil {
		collectors = append(collectors, embedded.Collectors()...)
	}
	return metrics.Register(reg, collectors...)
}

// called counts a call that began at the given time.
func (m *storeMetrics) called(command, outcome string, began time.Time) {
	took := time.Since(began).Seconds()
	m.counted.Get(callResult{command, outcome}, func(r callResult) prometheus.Counter {
		return m.calls.WithLabelValues(r.command, r.outcome)
	}).Inc()
	m.timed.Get(command, func(command string) prometheus.Observer { return m.durations.WithLabelValues(command) }).Observe(took)
}

// DialHook implements redis.Hook.
func (*storeMetrics) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (m *storeMetrics) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmd)
		m.called(m.command(cmd), callOutcome(ctx, err), began)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook. A command of the pipeline that was
// answered with an error, as a script's refusal, leaves the pipeline ok.
func (m *storeMetrics) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		outcome := callOutcome(ctx, err)
		if outcome == callRefused || outcome == callError {
			outcome = callOK
		}
		m.called(commandPipeline, outcome, began)
		return err
	}
}

// command returns the command label of cmd: for a script, its name. The label has few
// values, since all commands come from this module.
func (m *storeMetrics) command(cmd redis.Cmder) string {
	name := cmd.Name()
	if name != "evalsha" && name != "eval" {
		return name
	}
	if args := cmd.Args(); len(args) > 1 {
		text, _ := args[1].(string)
		if script, ok := m.scripts[text]; ok {
			return script
		}
	}
	return name
}

// callOutcome returns the outcome label of a call, by the same rules as Failure.
func callOutcome(ctx context.Context, err error) string {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return callOK
	case callerEnded(ctx) != nil:
		return callCancelled
	case !errors.As(err, &reply), unavailable(err):
		return callUnavailable
	case redis.HasErrorPrefix(err, "CS_"), redis.HasErrorPrefix(err, "NOSCRIPT"):
		return callRefused
	}
	return callError
}

// heard counts a change notice. Kinds that this release does not know share one label.
func (m *storeMetrics) heard(kind string) {
	switch kind {
	case ChangeFunction, ChangeCancel, ChangeKey, ChangeBinding, ChangeSecret, ChangeLimits, ChangeCall, ChangeResubscribed:
	default:
		kind = metrics.Other
	}
	m.changes.WithLabelValues(kind).Inc()
}

// connectionMetrics exports the client's own statistics of its connections.
type connectionMetrics struct {
	store                          *Store
	connections, gets, waits, lost *prometheus.Desc
}

func newConnectionMetrics(s *Store) *connectionMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metrics.Namespace, "store", name), help, labels, nil)
	}
	return &connectionMetrics{
		store:       s,
		connections: desc("connections", "Connections to the store, except for subscriptions, by state.", "state"),
		gets:        desc("connection_gets_total", "Requests for a pooled connection: an idle one was used (hit), one was dialled (miss), or none became free in time (timeout).", "result"),
		waits:       desc("connection_wait_seconds_total", "Time that calls spent waiting for a connection."),
		lost:        desc("connections_lost_total", "Connections closed because they were broken or stale."),
	}
}

// Describe implements prometheus.Collector.
func (c *connectionMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.connections
	ch <- c.gets
	ch <- c.waits
	ch <- c.lost
}

// Collect implements prometheus.Collector.
func (c *connectionMetrics) Collect(ch chan<- prometheus.Metric) {
	s := c.store.rdb.PoolStats()
	idle := min(s.IdleConns, s.TotalConns)
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(idle), "idle")
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(s.TotalConns-idle), "used")
	ch <- prometheus.MustNewConstMetric(c.gets, prometheus.CounterValue, float64(s.Hits), "hit")
	ch <- prometheus.MustNewConstMetric(c.gets, prometheus.CounterValue, float64(s.Misses), "miss")
	ch <- prometheus.MustNewConstMetric(c.gets, prometheus.CounterValue, float64(s.Timeouts), "timeout")
	ch <- prometheus.MustNewConstMetric(c.waits, prometheus.CounterValue, time.Duration(s.WaitDurationNs).Seconds())
	ch <- prometheus.MustNewConstMetric(c.lost, prometheus.CounterValue, float64(s.StaleConns))
}

// queueMetrics returns the gauges of the writes that wait for a group commit.
func queueMetrics(waiting func(now time.Time) (count int, oldest time.Duration)) (queued, lag prometheus.Collector) {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "store_commit_queued",
			Help: "Writes waiting for the next group commit.",
		}, func() float64 {
			queued, _ := waiting(time.Now())
			return float64(queued)
		}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "store_commit_lag_seconds",
			Help: "Age of the oldest write that waits for a group commit; 0 if none waits.",
		}, func() float64 {
			_, oldest := waiting(time.Now())
			return oldest.Seconds()
		})
}
