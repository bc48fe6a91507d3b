package server

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/metrics"
)

// newRegistry returns the registry of all metrics of a server. It holds the metrics of the
// Go runtime and of the process already.
func newRegistry() (*prometheus.Registry, error) {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: metrics.Namespace, Name: "build_info", Help: "Always 1; labels are the version and the Go release.",
		ConstLabels: prometheus.Labels{"version": build.Version(), "go": runtime.Version()},
	})
	build.Set(1)
	return reg, metrics.Register(reg, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// register registers the metrics of c. They are read when a scrape asks for them, under the
// lock of c. The admin server has connections of its own, which are not counted.
func (c *connections) register(reg prometheus.Registerer) error {
	gauge := func(name, state, help string, value func(open, waiting int) int) prometheus.Collector {
		opts := prometheus.GaugeOpts{Namespace: metrics.Namespace, Name: name, Help: help}
		if state != "" {
			opts.ConstLabels = prometheus.Labels{"state": state}
		}
		return prometheus.NewGaugeFunc(opts, func() float64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return float64(value(len(c.open), c.waiting.Len()))
		})
	}
	const help = "Open connections, by state: active with a request, waiting without one."
	return metrics.Register(reg, c.hungUp,
		gauge("http_connections", "active", help, func(open, waiting int) int { return open - waiting }),
		gauge("http_connections", "waiting", help, func(_, waiting int) int { return waiting }),
		gauge("http_connections_max", "", "Limit of open connections.", func(int, int) int { return c.limit }))
}

// newHungUp returns the counter of connections that the limit closed, either for a new one or
// because there was no room for them.
func newHungUp() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: metrics.Namespace, Name: "http_connections_hung_up_total",
		Help: "Connections closed because the limit was reached.",
	})
}
