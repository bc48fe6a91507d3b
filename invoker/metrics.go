package invoker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage/activations"
)

// engineMetrics is what an Invoker counts. docs/metrics.md says what each metric
// means.
type engineMetrics struct {
	calls, seconds *prometheus.CounterVec
	durations      *prometheus.HistogramVec
	refusals       *prometheus.CounterVec
	replays        prometheus.Counter
	inFlight       prometheus.Gauge

	ended   *series[endedKey, endedSeries]
	refused *series[refusedKey, prometheus.Counter]
}

// endedKey is what a terminal activation is counted under.
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

// endedSeries is where it is counted.
type endedSeries struct {
	calls, seconds prometheus.Counter
	durations      prometheus.Observer
}

// refusedKey is what an invocation that did not run is counted under.
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

func newEngineMetrics(most int) *engineMetrics {
	ended := []string{"tenant", "namespace", "function", "version", "trigger", "status"}
	m := &engineMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocations_total",
			Help: "Invocations that ran to a terminal status.",
		}, ended),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocation_seconds_total",
			Help: "Time that they took, from their place under the limit to the function's end.",
		}, ended),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "invocation_duration_seconds",
			Help: "The same time, of all functions together.", Buckets: callSeconds,
		}, []string{"trigger", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocations_refused_total",
			Help: "Invocations that did not run, by error code.",
		}, []string{"tenant", "namespace", "function", "code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "invocations_replayed_total",
			Help: "Invocations that were answered from the record of the first with their idempotency key.",
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "invocations_in_flight",
			Help: "Invocations in hand, those included that wait for a place or a sandbox.",
		}),
	}
	m.ended = newSeries(most, m.openEnded, m.closeEnded, func(k endedKey) endedKey {
		return endedKey{metrics.Other, metrics.Other, metrics.Other, 0, k.trigger, k.status}
	})
	m.refused = newSeries(most, m.openRefused, m.closeRefused, otherRefused)
	return m
}

func (m *engineMetrics) register(reg prometheus.Registerer, r *resolver) error {
	return metrics.Register(reg, m.calls, m.seconds, m.durations, m.refusals, m.replays, m.inFlight,
		metrics.NewCache("resolutions", r.cache))
}

func (m *engineMetrics) openEnded(k endedKey) endedSeries {
	return endedSeries{
		calls:     m.calls.WithLabelValues(k.labels()...),
		seconds:   m.seconds.WithLabelValues(k.labels()...),
		durations: m.durations.WithLabelValues(k.trigger, string(k.status)),
	}
}

func (m *engineMetrics) closeEnded(k endedKey) {
	m.calls.DeleteLabelValues(k.labels()...)
	m.seconds.DeleteLabelValues(k.labels()...)
}

func (m *engineMetrics) openRefused(k refusedKey) prometheus.Counter {
	return m.refusals.WithLabelValues(k.labels()...)
}

func (m *engineMetrics) closeRefused(k refusedKey) { m.refusals.DeleteLabelValues(k.labels()...) }

func otherRefused(k refusedKey) refusedKey {
	return refusedKey{metrics.Other, metrics.Other, metrics.Other, k.code}
}

// end counts an activation that ended at now.
func (m *engineMetrics) end(rec *activations.Record, took time.Duration, now time.Time) {
	s := m.ended.get(endedKey{rec.Tenant, rec.Namespace, rec.Function, rec.Ref.Version, rec.Trigger.Type, rec.Status}, now)
	s.calls.Inc()
	s.seconds.Add(took.Seconds())
	s.durations.Observe(took.Seconds())
}

// refuse counts an invocation that did not run because of err, and gives err back.
// The names of what was not found to exist are anybody's, and are not kept.
func (m *engineMetrics) refuse(inv *api.Invocation, found bool, err error) error {
	key := refusedKey{inv.Tenant, inv.Namespace, inv.Function, refusalCode(err)}
	if !found {
		key = otherRefused(key)
	}
	m.refused.get(key, time.Now()).Inc()
	return err
}

// refusalCode is err's code; of a caller that went away before anything ran,
// CodeRuntimeCancelled.
func refusalCode(err error) api.Code {
	var coded *api.Error
	if !errors.As(err, &coded) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return api.CodeRuntimeCancelled
	}
	return api.ErrorCode(err)
}

// lateMetrics tell of the records that go on being written after their caller was
// told of a failure.
type lateMetrics struct {
	retries, lost prometheus.Counter
}

func newLateMetrics() lateMetrics {
	return lateMetrics{
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "records_retries_total",
			Help: "Tries, in the background, to write the record of an activation that the store had not taken.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "records_lost_total",
			Help: "Records that were given up: readers find these activations lost.",
		}),
	}
}

func (m lateMetrics) register(reg prometheus.Registerer, r *recorder) error {
	gauge := func(name, help string, value func(late int, lag time.Duration) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: metrics.Namespace, Name: name, Help: help},
			func() float64 { return value(r.behind(time.Now())) })
	}
	return metrics.Register(reg, m.retries, m.lost,
		gauge("records_late", "Activations whose record the store has not taken yet.", func(late int, _ time.Duration) float64 { return float64(late) }),
		gauge("records_lag_seconds", "How long the oldest of those has been tried; 0 where there is none.", func(_ int, lag time.Duration) float64 { return lag.Seconds() }))
}

func versionText(version int64) string { return strconv.FormatInt(version, 10) }
