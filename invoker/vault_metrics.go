package invoker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// vaultMetrics is what a vault counts.
type vaultMetrics struct{ resolves, openings *prometheus.CounterVec }

// The outcomes of both.
const (
	secretsOK     = "ok"
	secretsFailed = "failed"
)

func newVaultMetrics() *vaultMetrics {
	return &vaultMetrics{
		resolves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "secret_resolves_total",
			Help: "Reads of the secrets that a version names, from the store.",
		}, []string{"outcome"}),
		openings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "secret_openings_total",
			Help: "Sealed values that were opened.",
		}, []string{"outcome"}),
	}
}

func (m *vaultMetrics) resolved(err error) { m.resolves.WithLabelValues(secretsOutcome(err)).Inc() }
func (m *vaultMetrics) opened(err error)   { m.openings.WithLabelValues(secretsOutcome(err)).Inc() }

func secretsOutcome(err error) string {
	if err != nil {
		return secretsFailed
	}
	return secretsOK
}

// register exports the metrics of v and of its book.
func (m *vaultMetrics) register(reg prometheus.Registerer, v *vault) error {
	return metrics.Register(reg, m.resolves, m.openings, v.book.lost,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "secret_versions",
			Help: "Versions whose secrets are held opened.",
		}, func() float64 { return float64(v.size()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "secret_audit_waiting",
			Help: "Events of the reading of secrets that are gathered, for a minute at most.",
		}, func() float64 { return float64(v.book.waiting()) }))
}
