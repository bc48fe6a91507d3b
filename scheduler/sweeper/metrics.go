package sweeper

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// sweepMetrics are the metrics of a Sweeper. docs/metrics.md explains them. The gauge of a route
// is set at the end of each of its passes, idle ones included.
type sweepMetrics struct {
	loop      *metrics.Loop
	functions prometheus.Counter
	expired   prometheus.Counter
	repairs   *prometheus.CounterVec
	pass      *prometheus.GaugeVec
}

func newSweepMetrics() *sweepMetrics {
	return &sweepMetrics{
		loop: metrics.NewLoop("sweeper"),
		functions: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_functions_total",
			Help: "Functions whose activations the sweeper examined.",
		}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_documents_expired_total",
			Help: "Expired documents removed by the sweeper.",
		}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_repairs_total",
			Help: "Repairs of the effects of crashes, by kind.",
		}, []string{"kind"}),
		pass: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "sweeper_lap_seconds",
			Help: "Duration of the last complete pass over part of the store. Effects of a crash are found within two passes.",
		}, []string{"course"}),
	}
}

func (m *sweepMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.loop, m.functions, m.expired, m.repairs, m.pass)
}

// swept counts the work of a step.
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
