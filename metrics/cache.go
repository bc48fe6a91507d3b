package metrics

import (
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// cache exports the statistics of an otter cache.
type cache[K comparable, V any] struct {
	of                                  *otter.Cache[K, V]
	requests, evictions, entries, bytes *prometheus.Desc
}

// NewCache returns the metrics of a cache that has a StatsRecorder, under name. If the cache
// weighs its entries, the weights must be bytes. Without a StatsRecorder the counters stay 0.
func NewCache[K comparable, V any](name string, of *otter.Cache[K, V]) prometheus.Collector {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(Namespace, "cache", metric), help, labels, prometheus.Labels{"cache": name})
	}
	return &cache[K, V]{
		of:        of,
		requests:  desc("requests_total", "Reads of a cache, by whether it had the entry.", "result"),
		evictions: desc("evictions_total", "Entries removed from a cache for lack of room or for their age."),
		entries:   desc("entries", "Entries of a cache."),
		bytes:     desc("bytes", "Size of a cache that has a limit in bytes."),
	}
}

// Describe implements prometheus.Collector.
func (c *cache[K, V]) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.requests
	ch <- c.evictions
	ch <- c.entries
	ch <- c.bytes
}

// Collect implements prometheus.Collector.
func (c *cache[K, V]) Collect(ch chan<- prometheus.Metric) {
	s := c.of.Stats()
	ch <- prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(s.Hits), "hit")
	ch <- prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(s.Misses), "miss")
	ch <- prometheus.MustNewConstMetric(c.evictions, prometheus.CounterValue, float64(s.Evictions))
	ch <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(c.of.EstimatedSize()))
	if c.of.IsWeighted() {
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(c.of.WeightedSize()))
	}
}
