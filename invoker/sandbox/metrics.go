package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/metrics"
)

// endReason is the reason why a child ended, a label of sandbox_ends_total.
type endReason int32

// The reasons, of which the first that applies counts.
const (
	endCrash     endReason = iota // it died by itself, and of no limit
	endMemory                     // it died of its memory limit
	endStack                      // it died of Go's stack limit
	endTimeout                    // its activation did not end in time
	endCancelled                  // its caller went away
	endProtocol                   // it broke the protocol
	endFlood                      // it sent more than it may
	endCPU                        // its activation used too much processor time
	endRetired                    // it asked to be replaced, or left something behind
	endIdle                       // it was not called for too long
	endEvicted                    // for room
	endRestless                   // it worked while it was idle
	endUnusable                   // it could not load its program
	endCompile                    // it used too much processor time to load its program
	endChecked                    // it compiled a bundle that is to be published
	endStart                      // it did not come up
	endShutdown                   // the pool closed
	endReasons
)

func (r endReason) String() string {
	return [endReasons]string{
		"crash", "memory_limit", "stack_limit", "timeout", "cancelled", "protocol", "flood", "cpu_limit", "retired",
		"idle", "evicted", "restless", "unusable", "compile_limit", "checked", "start", "shutdown",
	}[r]
}

// interruptedFor returns the reason for which a child is killed when its ctx has ended:
// timeout for a deadline of ctx, cancelled otherwise.
func interruptedFor(ctx context.Context) endReason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return endTimeout
	}
	return endCancelled
}

// poolMetrics are the metrics of a Pool beside its Stats. docs/metrics.md explains each.
type poolMetrics struct {
	starts     *prometheus.CounterVec
	coldStarts prometheus.Histogram
	ends       *prometheus.CounterVec
	niced      prometheus.Counter
	waited     *prometheus.CounterVec
	waits      *metrics.Series[string, prometheus.Counter] // those of waited, by tenant
	keeping    *metrics.Loop
}

func newPoolMetrics() *poolMetrics {
	m := &poolMetrics{
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sandbox_starts_total",
			Help: "Sandbox processes started, by outcome.",
		}, []string{"outcome"}),
		coldStarts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Name: "sandbox_cold_start_duration_seconds",
			Help:    "Time spent loading a program into a process, compilation included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sandbox_ends_total",
			Help: "Sandbox processes that ended, by reason.",
		}, []string{"reason"}),
		niced: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sandbox_priority_changes_total",
			Help: "Changes of the priority of a sandbox process, because its tenant keeps more of them busy than there are processors, or does so no longer.",
		}),
		waited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sandbox_wait_seconds_total",
			Help: "Time that invocations waited for a sandbox, by tenant.",
		}, []string{"tenant"}),
		keeping: metrics.NewLoop("sandbox_keeper"),
	}
	m.waits = metrics.NewSeries(metrics.MaxSeries, metrics.SeriesOf[string, prometheus.Counter]{
		Open:   func(tenant string) prometheus.Counter { return m.waited.WithLabelValues(tenant) },
		Close:  func(tenant string) { m.waited.DeleteLabelValues(tenant) },
		Tenant: func(tenant string) string { return tenant },
		Other:  func(_, tenant string) string { return tenant },
	})
	return m
}

// started counts a child that came up, or one that did not.
func (m *poolMetrics) started(err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.starts.WithLabelValues(outcome).Inc()
}

// wait counts the wait of an invocation since it began, which ends now.
func (m *poolMetrics) wait(tenant string, began time.Time) {
	now := time.Now()
	m.waits.Get(tenant, now).Add(now.Sub(began).Seconds())
}

// register exports the metrics of p.
func (m *poolMetrics) register(reg prometheus.Registerer, p *Pool) error {
	return metrics.Register(reg, m.starts, m.coldStarts, m.ends, m.niced, m.waited, m.keeping,
		metrics.NewCache("scripts", p.scripts), newStatsMetrics(p))
}

// statsMetrics exports the Stats of a pool, read when the metrics are scraped.
type statsMetrics struct {
	pool                                                                *Pool
	processes, most, budget, reserved, waiters, acquisitions, nurseries *prometheus.Desc
}

func newStatsMetrics(p *Pool) *statsMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metrics.Namespace, "sandbox", name), help, labels, nil)
	}
	return &statsMetrics{
		pool:         p,
		processes:    desc("processes", "Sandbox processes, by state.", "state"),
		most:         desc("processes_max", "Maximum number of processes that serve a version: starting, busy and warm ones."),
		budget:       desc("memory_budget_bytes", "Memory that all processes that serve a version may use together, in bytes."),
		reserved:     desc("memory_reserved_bytes", "Memory that the existing processes may use together, in bytes."),
		waiters:      desc("waiters", "Invocations that wait for a sandbox."),
		acquisitions: desc("acquisitions_total", "Invocations that got a warm sandbox, got a cold one, or were refused for want of room.", "result"),
		nurseries:    desc("nursery_starts_total", "Starts of the process that starts the others; more than one means that it died."),
	}
}

// Describe implements prometheus.Collector.
func (c *statsMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.processes, c.most, c.budget, c.reserved, c.waiters, c.acquisitions, c.nurseries} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statsMetrics) Collect(ch chan<- prometheus.Metric) {
	s := c.pool.Stats()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	send(c.processes, prometheus.GaugeValue, float64(s.Spares), "spare")
	send(c.processes, prometheus.GaugeValue, float64(s.Starting), "starting")
	send(c.processes, prometheus.GaugeValue, float64(s.Busy-s.Starting), "busy")
	send(c.processes, prometheus.GaugeValue, float64(s.Idle), "warm")
	send(c.most, prometheus.GaugeValue, float64(c.pool.cfg.MaxProcesses))
	send(c.budget, prometheus.GaugeValue, float64(s.BudgetBytes))
	send(c.reserved, prometheus.GaugeValue, float64(s.ReservedBytes))
	send(c.waiters, prometheus.GaugeValue, float64(s.Waiting))
	send(c.acquisitions, prometheus.CounterValue, float64(s.Warm), "warm")
	send(c.acquisitions, prometheus.CounterValue, float64(s.Cold), "cold")
	send(c.acquisitions, prometheus.CounterValue, float64(s.Refused), "refused")
	send(c.nurseries, prometheus.CounterValue, float64(c.pool.spawner.Nurseries()))
}
