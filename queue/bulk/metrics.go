package bulk

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/metrics"
)

// runnerMetrics are the metrics of the replica that runs operations. docs/metrics.md explains them.
type runnerMetrics struct {
	running prometheus.Gauge
	jobs    *prometheus.CounterVec
}

func newRunnerMetrics() *runnerMetrics {
	m := &runnerMetrics{
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "bulk_operations_running", Help: "Bulk operations of all tenants that run, when this replica last looked.",
		}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "bulk_jobs_total", Help: "Jobs that bulk operations examined, by operation and outcome.",
		}, []string{"operation", "outcome"}),
	}
	for _, operation := range search.BulkOperations() {
		m.examined(operation, &search.Bulk{}, &search.Bulk{}) // exported as 0
	}
	return m
}

// examined counts the jobs by which the progress of after exceeds that of before.
func (m *runnerMetrics) examined(operation search.BulkOperation, before, after *search.Bulk) {
	m.jobs.WithLabelValues(string(operation), "done").Add(float64(after.Done - before.Done))
	m.jobs.WithLabelValues(string(operation), "skipped").Add(float64(after.Skipped - before.Skipped))
	m.jobs.WithLabelValues(string(operation), "failed").Add(float64(after.Failed - before.Failed))
}

// Collectors returns the metrics of Run. Only a replica that runs operations registers them.
func (o *Operations) Collectors() []prometheus.Collector {
	return []prometheus.Collector{o.metrics.running, o.metrics.jobs}
}
