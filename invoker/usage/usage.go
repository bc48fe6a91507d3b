// Package usage has the metrics of what activations have used, and of their records that are
// late.
package usage

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// Metrics are what the activations of a function have used, with the labels of calls.
type Metrics struct{ CPU, Memory, Egress *prometheus.CounterVec }

// New makes the metrics.
func New(labels []string) Metrics {
	vec := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metrics.Namespace, Name: name, Help: help}, labels)
	}
	return Metrics{
		CPU:    vec("invocation_cpu_seconds_total", "Processor time that invocations used."),
		Memory: vec("invocation_memory_peak_bytes_total", "Sum of the memory peaks of invocations, in bytes; divided by their number, the mean peak."),
		Egress: vec("invocation_egress_bytes_total", "Bytes that invocations sent and received by fetch and WebSocket."),
	}
}

// Delete removes the series of a label set.
func (m Metrics) Delete(labels ...string) {
	for _, vec := range []*prometheus.CounterVec{m.CPU, m.Memory, m.Egress} {
		vec.DeleteLabelValues(labels...)
	}
}

// Late counts the records that are written in the background, after their caller
// got an error.
type Late struct {
	Retries, Lost prometheus.Counter
}

// NewLate makes the counters.
func NewLate() Late {
	return Late{
		Retries: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "records_retries_total",
			Help: "Retries of writes of activation records that the store did not accept.",
		}),
		Lost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "records_lost_total",
			Help: "Activation records that were abandoned; readers find these activations lost.",
		}),
	}
}

// Register exports the counters, and the number and the age of the records that behind returns;
// reg may be nil.
func (m Late) Register(reg prometheus.Registerer, behind func(now time.Time) (late int, oldest time.Duration)) error {
	gauge := func(name, help string, value func(late int, lag time.Duration) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: metrics.Namespace, Name: name, Help: help},
			func() float64 { return value(behind(time.Now())) })
	}
	return metrics.Register(reg, m.Retries, m.Lost,
		gauge("records_late", "Activations whose record the store has not taken yet.", func(late int, _ time.Duration) float64 { return float64(late) }),
		gauge("records_lag_seconds", "Age of the oldest activation record that the store has not taken yet; 0 without one.", func(_ int, lag time.Duration) float64 { return lag.Seconds() }))
}
