package invoker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/usage"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage/activations"
)

// engineMetrics are the metrics of an Invoker. docs/metrics.md explains each. calls,
// seconds and refusals have the names of a function as labels, so their label sets are
// bounded by ended and refused.
type engineMetrics struct {
	calls, seconds *prometheus.CounterVec
	used           usage.Metrics
	durations      *prometheus.HistogramVec
	refusals       *prometheus.CounterVec
	replays        prometheus.Counter
	inFlight       prometheus.Gauge

	ended   *metrics.Series[endedKey, endedSeries]
	refused *metrics.Series[refusedKey, prometheus.Counter]
}

// endedKey is the label set of an activation that ended.
type endedKey struct {
	tenant, namespace, function string
	version                     int64 // 0 for metrics.Other
	trigger                     string
	status                      api.Status
}

func (k endedKey) labels() []string {
	version := metrics.Other
	if k.version != 0 {
		version = versionText(k.version)
	}
	return []string{k.tenant, k.namespace, k.function, version, k.trigger, string(k.status)}
}

// endedSeries are the series of an endedKey, kept so that an activation's end looks up one
// key and not three label sets. durations has no names as labels and is shared by many
// keys.
type endedSeries struct {
	calls, seconds      prometheus.Counter
	cpu, memory, egress prometheus.Counter
	durations           prometheus.Observer
}

// refusedKey is the label set of an invocation that did not run.
type refusedKey struct {
	tenant, namespace, function string
	code                        api.Code
}

func (k refusedKey) labels() []string {
	return []string{k.tenant, k.namespace, k.function, string(k.code)}
}

// callSeconds are the bounds of the buckets of an invocation's duration, up to
// the longest timeout.
var callSeconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, api.MaxTimeoutMS / 1000}

// newEngineMetrics makes the metrics; most bounds the label sets of ended and of refused,
// each.
func newEngineMetrics(most int) *engineMetrics {
	ended := []string{"tenant", "namespace", "function", "version", "trigger", "status"}
	m := &engineMetrics{
		used: usage.New(ended),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocations_total",
			Help: "Invocations that ran to a terminal status.",
		}, ended),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocation_seconds_total",
			Help: "Time spent on invocations, from the concurrency slot to the function's end.",
		}, ended),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "invocation_duration_seconds",
			Help: "Time spent on an invocation, of all functions, from the concurrency slot to the function's end.", Buckets: callSeconds,
		}, []string{"trigger", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocations_refused_total",
			Help: "Invocations that did not run, by error code.",
		}, []string{"tenant", "namespace", "function", "code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocations_replayed_total",
			Help: "Invocations answered from the record of an earlier one with the same idempotency key.",
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "invocations_in_flight",
			Help: "Invocations that run, or wait for a concurrency slot or a sandbox.",
		}),
	}
	m.ended = metrics.NewSeries(most, metrics.SeriesOf[endedKey, endedSeries]{
		Open: m.openEnded, Close: m.closeEnded,
		Tenant: func(k endedKey) string { return k.tenant },
		Other: func(k endedKey, tenant string) endedKey {
			return endedKey{tenant, metrics.Other, metrics.Other, 0, k.trigger, k.status}
		},
	})
	m.refused = metrics.NewSeries(most, metrics.SeriesOf[refusedKey, prometheus.Counter]{
		Open: m.openRefused, Close: m.closeRefused,
		Tenant: func(k refusedKey) string { return k.tenant },
		Other:  otherRefused,
	})
	return m
}

func (m *engineMetrics) register(reg prometheus.Registerer, r *resolve.Resolver) error {
	return metrics.Register(reg, m.calls, m.seconds, m.used.CPU, m.used.Memory, m.used.Egress, m.durations, m.refusals, m.replays, m.inFlight,
		r.Collector())
}

func (m *engineMetrics) openEnded(k endedKey) endedSeries {
	return endedSeries{
		calls:     m.calls.WithLabelValues(k.labels()...),
		seconds:   m.seconds.WithLabelValues(k.labels()...),
		cpu:       m.used.CPU.WithLabelValues(k.labels()...),
		memory:    m.used.Memory.WithLabelValues(k.labels()...),
		egress:    m.used.Egress.WithLabelValues(k.labels()...),
		durations: m.durations.WithLabelValues(k.trigger, string(k.status)),
	}
}

// closeEnded removes the series of a key that another one replaces. Their counts are lost,
// as after a restart; the durations stay, since other keys share them.
func (m *engineMetrics) closeEnded(k endedKey) {
	m.calls.DeleteLabelValues(k.labels()...)
	m.seconds.DeleteLabelValues(k.labels()...)
	m.used.Delete(k.labels()...)
}

func (m *engineMetrics) openRefused(k refusedKey) prometheus.Counter {
	return m.refusals.WithLabelValues(k.labels()...)
}

func (m *engineMetrics) closeRefused(k refusedKey) { m.refusals.DeleteLabelValues(k.labels()...) }

// otherRefused returns the shared key of a refusal without the names of the function.
func otherRefused(k refusedKey, tenant string) refusedKey {
	return refusedKey{tenant, metrics.Other, metrics.Other, k.code}
}

// end counts an activation that ended at now and took so long, from its slot to its end.
func (m *engineMetrics) end(rec *activations.Record, took time.Duration, now time.Time) {
	s := m.ended.Get(endedKey{rec.Tenant, rec.Namespace, rec.Function, rec.Ref.Version, rec.Trigger.Type, rec.Status}, now)
	s.calls.Inc()
	s.seconds.Add(took.Seconds())
	s.cpu.Add(rec.CPUMS / 1000)
	s.memory.Add(float64(rec.MemoryPeakBytes))
	if rec.EgressBytes > 0 {
		s.egress.Add(float64(rec.EgressBytes))
	}
	s.durations.Observe(took.Seconds())
}

// refuse counts an invocation that did not run because of err, and returns err. The
// names of a function that was not found are the caller's invention: they make no series.
func (m *engineMetrics) refuse(inv *api.Invocation, found bool, err error) error {
	key := refusedKey{inv.Tenant, inv.Namespace, inv.Function, refusalCode(err)}
	if !found {
		key = otherRefused(key, metrics.Other)
	}
	m.refused.Get(key, time.Now()).Inc()
	return err
}

// refusalCode returns err's code: CodeRuntimeCancelled where the caller went away before
// the function ran.
func refusalCode(err error) api.Code {
	var coded *api.Error
	if !errors.As(err, &coded) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return api.CodeRuntimeCancelled
	}
	return api.ErrorCode(err)
}

// versionText returns a version as a label and as an attribute.
func versionText(version int64) string { return strconv.FormatInt(version, 10) }
