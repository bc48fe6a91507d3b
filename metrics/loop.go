package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Loop collects the metrics of a background loop: the time since its last successful round,
// and the number and the durations of its rounds. It is safe for concurrent use. lag_seconds
// grows until a round succeeds, so an alert on it finds a loop whose rounds fail, a loop that
// hangs in a round, and a loop that has ended.
type Loop struct {
	lag, rounds, busy *prometheus.Desc

	mu           sync.Mutex
	good         time.Time // the end of the last successful round, or the start of the loop
	done, failed uint64
	worked       time.Duration
}

// NewLoop returns the metrics of the loop called name, which starts now.
func NewLoop(name string) *Loop {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(Namespace, "loop", metric), help, labels, prometheus.Labels{"loop": name})
	}
	return &Loop{
		lag:    desc("lag_seconds", "Time since the last successful round of a background loop, or since its start."),
		rounds: desc("rounds_total", "Rounds of a background loop.", "outcome"),
		busy:   desc("busy_seconds_total", "Time spent in rounds of a background loop."),
		good:   time.Now(),
	}
}

// Round records a round that began at the given time and ends now with err. The caller must not
// record a round that failed because the context of its loop ended.
func (l *Loop) Round(began time.Time, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worked += now.Sub(began)
	if err != nil {
		l.failed++
		return
	}
	l.done++
	l.good = now
}

// Describe implements prometheus.Collector.
func (l *Loop) Describe(ch chan<- *prometheus.Desc) {
	ch <- l.lag
	ch <- l.rounds
	ch <- l.busy
}

// Collect implements prometheus.Collector.
func (l *Loop) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	lag, done, failed, worked := time.Since(l.good), l.done, l.failed, l.worked
	l.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(l.lag, prometheus.GaugeValue, lag.Seconds())
	ch <- prometheus.MustNewConstMetric(l.rounds, prometheus.CounterValue, float64(done), "ok")
	ch <- prometheus.MustNewConstMetric(l.rounds, prometheus.CounterValue, float64(failed), "error")
	ch <- prometheus.MustNewConstMetric(l.busy, prometheus.CounterValue, worked.Seconds())
}
