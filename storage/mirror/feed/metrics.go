package feed

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage/mirror"
)

// feedMetrics are the metrics of a Feed. docs/metrics.md explains them.
type feedMetrics struct {
	records  *prometheus.CounterVec
	lag      prometheus.Histogram
	failures *prometheus.CounterVec
	gaps     prometheus.Counter
	commands *prometheus.CounterVec
	status   *statusMetrics
}

func newMetrics(of *mirror.Mirror) *feedMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metrics.Namespace, Name: name, Help: help}, labels)
	}
	m := &feedMetrics{
		records: counter("mirror_records_total", "Records compared with the rows of the mirror, by what that did.", "result"),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "mirror_event_lag_seconds",
			Help: "Time from an event to its record in the mirror.", Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 3600},
		}),
		failures: counter("mirror_failures_total", "Failures that stopped the mirror, by kind. It is tried again.", "kind"),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "mirror_gaps_total", Help: "Gaps in logs of events, after which the mirror reads all of a tenant.",
		}),
		commands: counter("mirror_commands_total", "Commands that the mirror sent to the store beside those that read records, by purpose.", "purpose"),
		status:   newStatusMetrics(of),
	}
	for _, kind := range []string{failDamaged, failFull, failInUse, failStore, failOther} {
		m.failures.WithLabelValues(kind) // exported as 0
	}
	return m
}

func (m *feedMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.records, m.lag, m.failures, m.gaps, m.commands, m.status)
}

// applied counts the result of a batch.
func (m *feedMetrics) applied(a mirror.Applied) {
	m.records.WithLabelValues("written").Add(float64(a.Written))
	m.records.WithLabelValues("removed").Add(float64(a.Removed))
	m.records.WithLabelValues("unchanged").Add(float64(a.Unchanged))
}

// statusMetrics export the status of a mirror.
type statusMetrics struct {
	mirror                           *mirror.Mirror
	state, lag, progress, rows, size *prometheus.Desc
}

func newStatusMetrics(m *mirror.Mirror) *statusMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metrics.Namespace, "mirror", name), help, labels, nil)
	}
	return &statusMetrics{
		mirror:   m,
		state:    desc("state", "1 for the present state of the mirror.", "state"),
		lag:      desc("lag_seconds", "Age of the oldest event that is known and not in the mirror yet."),
		progress: desc("rebuild_progress", "Part of the rebuild of the mirror that is done, from 0 to 1; 1 without a rebuild."),
		rows:     desc("rows", "Rows of the mirror.", "kind"),
		size:     desc("bytes", "Size of the file of the mirror."),
	}
}

// Describe implements prometheus.Collector.
func (c *statusMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.state, c.lag, c.progress, c.rows, c.size} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statusMetrics) Collect(ch chan<- prometheus.Metric) {
	s := c.mirror.Status()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, state := range []string{mirror.StateServing, mirror.StateRebuilding, mirror.StateStopped} {
		value := 0.0
		if s.State == state {
			value = 1
		}
		gauge(c.state, value, state)
	}
	gauge(c.lag, float64(s.LagMS)/1000)
	gauge(c.progress, s.Progress)
	gauge(c.rows, float64(s.Jobs), "jobs")
	gauge(c.rows, float64(s.Activations), "activations")
	gauge(c.size, float64(s.Bytes))
}
