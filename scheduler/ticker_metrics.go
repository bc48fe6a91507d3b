package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// tickerMetrics are the metrics of a Ticker. docs/metrics.md explains them.
type tickerMetrics struct {
	loop  *metrics.Loop
	ticks *prometheus.CounterVec
	lag   prometheus.Histogram
}

func newTickerMetrics() *tickerMetrics {
	return &tickerMetrics{
		loop: metrics.NewLoop("ticker"),
		ticks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "schedule_ticks_total",
			Help: "Ticks of schedules, by outcome.",
		}, []string{"outcome"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "schedule_lag_seconds",
			Help:    "Time from the moment of a tick to the creation of its job.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10, 60, 600, 3600},
		}),
	}
}

func (m *tickerMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.loop, m.ticks, m.lag)
}

// CountRound counts a round of ticks that began at the given time and ends now with err, in
// the metrics of the loop "ticker".
func (t *Ticker) CountRound(began time.Time, err error) { t.metrics.loop.Round(began, err) }

// moved counts a move made at now.
func (m *tickerMetrics) moved(move *tickMove, now int64) {
	n := 1.0
	if move.kind == moveMiss {
		n = float64(move.missed)
	}
	m.ticks.WithLabelValues(move.kind).Add(n)
	if move.kind == moveFire {
		m.lag.Observe(float64(max(0, now-move.tickMS)) / 1000)
	}
}
