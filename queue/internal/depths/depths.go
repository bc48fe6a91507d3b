// Package depths exports how many jobs the queues of a process have.
package depths

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Collector is a collector of the depths of queues that this process has used recently, and of
// those among them that still have work, at most maxQueues. A scrape reads them in one
// pipeline, at most once every interval.
type Collector struct {
	life          context.Context //nolint:containedctx // of the process, which bounds the reads of scrapes
	read          Reader
	depth, oldest *prometheus.Desc

	mu     sync.Mutex // enqueues and fetches lock it, so it is never held during a read of the store
	recent map[jobstore.Queue]time.Time

	collecting sync.Mutex // guards the fields below
	readAt     time.Time
	last       map[jobstore.Queue]api.Queue
}

// Reader reads queues from the store, in the order of its argument.
type Reader func(ctx context.Context, queues []jobstore.Queue) ([]api.Queue, error)

// Each of maxQueues queues is one time series for each state, plus one.
const (
	maxQueues = 500
	interval  = 5 * time.Second
	kept      = 10 * time.Minute // how long an unused queue without work is exported
	timeout   = 3 * time.Second
)

// New returns a collector that reads by read until life ends.
func New(life context.Context, read Reader) *Collector {
	labels := []string{"tenant", "namespace", "queue"}
	name := func(s string) string { return prometheus.BuildFQName(metrics.Namespace, "queue", s) }
	return &Collector{
		life: life, read: read, recent: map[jobstore.Queue]time.Time{}, last: map[jobstore.Queue]api.Queue{},
		depth:  prometheus.NewDesc(name("jobs"), "Jobs in a queue, by state.", append(labels, "state"), nil),
		oldest: prometheus.NewDesc(name("oldest_pending_seconds"), "Age of the oldest pending job in a queue.", labels, nil),
	}
}

// Touch records that this process uses q.
func (d *Collector) Touch(q jobstore.Queue) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.recent[q]; known || len(d.recent) < maxQueues {
		d.recent[q] = now
	}
}

// Describe implements prometheus.Collector.
func (d *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- d.depth
	ch <- d.oldest
}

// Collect implements prometheus.Collector. If the store is unavailable it exports the values
// that were read last.
func (d *Collector) Collect(ch chan<- prometheus.Metric) {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	if time.Since(d.readAt) >= interval {
		d.refresh()
	}
	for key, q := range d.last {
		labels := []string{key.Tenant, q.Namespace, q.Queue}
		for state, n := range q.Depths {
			ch <- prometheus.MustNewConstMetric(d.depth, prometheus.GaugeValue, float64(n), append(labels, string(state))...)
		}
		ch <- prometheus.MustNewConstMetric(d.oldest, prometheus.GaugeValue, float64(q.OldestPendingMS)/1000, labels...)
	}
}

// refresh reads the depths from the store. The caller holds d.collecting.
func (d *Collector) refresh() {
	d.mu.Lock()
	keys := slices.Collect(maps.Keys(d.recent))
	d.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(d.life, timeout)
	defer cancel()
	found, err := d.read(ctx, keys)
	if err != nil {
		return // the metrics of the store count the failure
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readAt, d.last = time.Now(), make(map[jobstore.Queue]api.Queue, len(found))
	for i, q := range found {
		d.last[keys[i]] = q
		if time.Since(d.recent[keys[i]]) > kept && q.Depths[api.JobPending]+q.Depths[api.JobActive]+q.Depths[api.JobRetrying]+q.Depths[api.JobScheduled] == 0 {
			delete(d.recent, keys[i])
		}
	}
}
