package vault

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// counters are the counters of a vault, by outcome: reads of a version's secrets from the
// store, and openings of single sealed values.
type counters struct{ resolves, openings *prometheus.CounterVec }

// The outcomes of both.
const (
	secretsOK     = "ok"
	secretsFailed = "failed"
)

func newCounters() *counters {
	return &counters{
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

func (m *counters) resolved(err error) { m.resolves.WithLabelValues(secretsOutcome(err)).Inc() }
func (m *counters) opened(err error)   { m.openings.WithLabelValues(secretsOutcome(err)).Inc() }

func secretsOutcome(err error) string {
	if err != nil {
		return secretsFailed
	}
	return secretsOK
}

// Register exports the vault's metrics; reg may be nil.
func (v *Vault) Register(reg prometheus.Registerer) error {
	return metrics.Register(reg, v.metrics.resolves, v.metrics.openings, v.audit.lost,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "secret_versions",
			Help: "Versions whose secrets are held opened.",
		}, func() float64 { return float64(v.size()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "secret_bytes",
			Help: "Memory of opened secrets and of what finds them in logs, in bytes; at most 64 MiB.",
		}, func() float64 { return float64(v.bytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Name: "secret_audit_waiting",
			Help: "Audit events of secret reads that are not written yet, a minute old at most.",
		}, func() float64 { return float64(v.audit.waiting()) }))
}
