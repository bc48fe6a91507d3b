package documents

import (
	"cmp"
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
)

// serviceMetrics counts operations by outcome.
type serviceMetrics struct{ operations *prometheus.CounterVec }

func newServiceMetrics() *serviceMetrics {
	return &serviceMetrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metrics.Namespace, Name: "storage_operations_total",
		Help: "Operations of the document store, by operation and outcome: ok, cancelled, or the error code.",
	}, []string{"operation", "code"})}
}

func (m *serviceMetrics) register(r prometheus.Registerer) error {
	return metrics.Register(r, m.operations)
}

// done counts an operation that ended with *err, by its code. Operations defer it with the
// address of their result.
func (m *serviceMetrics) done(operation string, err *error) {
	code := cmp.Or(string(api.ErrorCode(*err)), "ok")
	if errors.Is(*err, context.Canceled) || errors.Is(*err, context.DeadlineExceeded) {
		code = "cancelled"
	}
	m.operations.WithLabelValues(operation, code).Inc()
}
