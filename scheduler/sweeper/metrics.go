package sweeper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// sweepMetrics is what a Sweeper counts. docs/metrics.md says what each metric
// means.
type sweepMetrics struct {
	loop      *metrics.Loop
	functions prometheus.Counter
	expired   prometheus.Counter
	repairs   *prometheus.CounterVec
	lap       *prometheus.GaugeVec
}

func newSweepMetrics() *sweepMetrics {
	return &sweepMetrics{
		loop: metrics.NewLoop("sweeper"),
		functions: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_functions_total",
			Help: "Functions whose activations were swept.",
		}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_documents_expired_total",
			Help: "Documents that had expired, and that nobody had met since, removed.",
		}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_repairs_total",
			Help: "Leftovers of crashes that were mended, by kind.",
		}, []string{"kind"}),
		lap: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "sweeper_lap_seconds",
			Help: "How long the last lap of a course over the store took: what a crash left is found within two of them.",
		}, []string{"course"}),
	}
}

func (m *sweepMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.loop, m.functions, m.expired, m.repairs, m.lap)
}

// swept counts what a step did.
func (m *sweepMetrics) swept(c Counts) {
	m.functions.Add(float64(c.Functions))
	m.expired.Add(float64(c.Expired))
	m.repairs.WithLabelValues("lost").Add(float64(c.Lost))
	m.repairs.WithLabelValues("trimmed").Add(float64(c.Trimmed))
	m.repairs.WithLabelValues("dangling").Add(float64(c.Dangling))
	for _, r := range c.Repairs {
		m.repairs.WithLabelValues(r.Kind).Inc()
	}
}
