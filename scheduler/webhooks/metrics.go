package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// dispatchMetrics are the metrics of a Dispatcher. docs/metrics.md explains them.
type dispatchMetrics struct {
	loop       *metrics.Loop
	deliveries *prometheus.CounterVec
	seconds    prometheus.Histogram
	lag        prometheus.Histogram
	gaps       prometheus.Counter
}

func newMetrics() *dispatchMetrics {
	return &dispatchMetrics{
		loop: metrics.NewLoop("webhooks"),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "webhook_deliveries_total",
			Help: "Attempts to deliver an event to a webhook, by result.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "webhook_delivery_seconds",
			Help: "Duration of attempts to deliver an event to a webhook.", Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "webhook_lag_seconds",
			Help: "Time from an event to the first attempt to deliver it.", Buckets: []float64{.1, .5, 1, 2.5, 5, 15, 60, 300, 3600},
		}),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "webhook_gaps_total",
			Help: "Reads of a log of events in which events may be missing for a webhook, because they are no longer kept.",
		}),
	}
}

func (m *dispatchMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.loop, m.deliveries, m.seconds, m.lag, m.gaps)
}
