package quotas

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// keeperMetrics are the metrics of a Keeper. The label values are the names of the quotas;
// tenants are in the log.
type keeperMetrics struct {
	refusals, warnings *prometheus.CounterVec
	leases, failed     prometheus.Counter
}

func newKeeperMetrics() *keeperMetrics {
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "quota", Name: name, Help: help}
	}
	return &keeperMetrics{
		refusals: prometheus.NewCounterVec(opts("refusals_total", "Requests and host calls refused because a quota of the tenant is used up, by quota."), []string{"quota"}),
		warnings: prometheus.NewCounterVec(opts("warnings_total", "Tenants that came to use 80% of a quota, by quota."), []string{"quota"}),
		leases:   prometheus.NewCounter(opts("leases_total", "Leases of tenants' rates that the store granted.")),
		failed:   prometheus.NewCounter(opts("failures_total", "Reads of limits, leases and counts that the store did not answer.")),
	}
}

func (m *keeperMetrics) register(reg prometheus.Registerer, loop *metrics.Loop) error {
	return metrics.Register(reg, m.refusals, m.warnings, m.leases, m.failed, loop)
}
