package invoker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// workerMetrics are the metrics of a worker.
type workerMetrics struct {
	loop     *metrics.Loop
	attempts *prometheus.CounterVec
	wait     prometheus.Histogram
}

// The outcomes of attempts of asynchronous invocations.
const (
	attemptEnded     = "ended"      // the activation ended
	attemptRetried   = "retried"    // it failed, and another follows
	attemptPostponed = "postponed"  // no slot or sandbox was free
	attemptGivenBack = "given_back" // the replica shut down
	attemptParked    = "parked"     // its run sleeps
	attemptLost      = "lost"       // the job is another replica's, or is cancelled
)

// waitSeconds are the bounds of the buckets of the time until a first attempt.
var waitSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}

func newWorkerMetrics() *workerMetrics {
	return &workerMetrics{
		loop: metrics.NewLoop("dispatcher"),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "async_attempts_total",
			Help: "Attempts of asynchronous invocations, by outcome.",
		}, []string{"outcome"}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "async_wait_seconds",
			Help: "Time from the acceptance of an asynchronous invocation to its first attempt.", Buckets: waitSeconds,
		}),
	}
}

func (m *workerMetrics) register(reg prometheus.Registerer, w *worker) error {
	return metrics.Register(reg, m.loop, m.attempts, m.wait, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metrics.Namespace, Name: "async_in_hand", Help: "Jobs under this replica's leases.",
	}, func() float64 { return float64(w.leasedJobs()) }))
}
