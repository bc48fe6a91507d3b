package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// sweeperMetrics is what a Sweeper counts. docs/metrics.md says what each metric
// means.
type sweeperMetrics struct {
	loop      *metrics.Loop
	functions prometheus.Counter
	repairs   *prometheus.CounterVec
	lap       prometheus.Gauge
}

func newSweeperMetrics() *sweeperMetrics {
	return &sweeperMetrics{
		loop: metrics.NewLoop("sweeper"),
		functions: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_functions_total",
			Help: "Functions whose activations were swept.",
		}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_repairs_total",
			Help: "Lost activations that were ended, and index entries that were removed, by kind.",
		}, []string{"kind"}),
		lap: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "sweeper_lap_seconds",
			Help: "How long the last walk through all functions took: what a crash left is found within two of them.",
		}),
	}
}

func (m *sweeperMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.loop, m.functions, m.repairs, m.lap)
}

// swept counts what a step did.
func (m *sweeperMetrics) swept(c Counts) {
	m.functions.Add(float64(c.Functions))
	m.repairs.WithLabelValues("lost").Add(float64(c.Lost))
	m.repairs.WithLabelValues("trimmed").Add(float64(c.Trimmed))
	m.repairs.WithLabelValues("dangling").Add(float64(c.Dangling))
}
