package queue

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// brokerMetrics holds the metrics of a Broker. docs/metrics.md explains each. They count what this
// process did; only the depths are read from the store, and are the same in all processes.
type brokerMetrics struct {
	loop       *metrics.Loop
	enqueued   *prometheus.CounterVec
	fetches    *prometheus.CounterVec
	attempts   *prometheus.CounterVec
	wait       prometheus.Histogram
	settled    *prometheus.CounterVec
	lost       *prometheus.CounterVec
	maintained *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	cost       prometheus.Counter
	depths     *depths
}

func newBrokerMetrics(b *Broker) *brokerMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "queue", Name: name, Help: help}, labels)
	}
	return &brokerMetrics{
		loop:     metrics.NewLoop("queues"),
		enqueued: counter("enqueued_jobs_total", "Jobs enqueued, by outcome.", "outcome"),
		fetches:  counter("fetches_total", "Claims of pending jobs, by outcome.", "outcome"),
		attempts: counter("attempts_total", "Jobs claimed by workers, by number of the attempt.", "attempt"),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Subsystem: "queue", Name: "wait_seconds",
			Help:    "Time from the moment at which a job could first be fetched to its first attempt.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3600},
		}),
		settled:    counter("settled_jobs_total", "Jobs that left the active state, by their new state.", "state"),
		lost:       counter("lease_losses_total", "Expired leases that were reclaimed, and calls refused because the worker no longer held the lease, by kind.", "kind"),
		maintained: counter("maintained_jobs_total", "Jobs changed by maintenance, by kind of change.", "kind"),
		tokens:     counter("ai_tokens_total", "Tokens that jobs reported as used, by kind.", "kind"),
		cost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Subsystem: "queue", Name: "ai_cost_usd_total",
			Help: "US dollars that jobs reported as spent on models, or that prices made of their tokens.",
		}),
		depths: newDepths(b),
	}
}

func (m *brokerMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.loop, m.enqueued, m.fetches, m.attempts, m.wait, m.settled, m.lost, m.maintained, m.tokens, m.cost, m.depths)
}

// The outcomes of an enqueue and of a claim.
const (
	outcomeNew       = "new"
	outcomeAgain     = "again"
	outcomeDuplicate = "duplicate"

	outcomeJobs       = "jobs"
	outcomeConflict   = "conflict"   // other fetches claimed all candidates
	outcomeOverloaded = "overloaded" // the gate is full
)

// added counts enqueued jobs of q by outcome.
func (m *brokerMetrics) added(q jobstore.Queue, items []*jobstore.Entry) {
	counts := map[string]int{}
	for _, item := range items {
		switch {
		case item.Replayed:
			counts[outcomeAgain]++
		case item.Holder != "":
			counts[outcomeDuplicate]++
		default:
			counts[outcomeNew]++
		}
	}
	for outcome, n := range counts {
		m.enqueued.WithLabelValues(outcome).Add(float64(n))
	}
	m.depths.touch(q)
}

// claimed counts a claim that returned status and jobs at now, a Unix time in milliseconds. The
// wait is observed for first attempts only, and not for jobs that another job made.
func (m *brokerMetrics) claimed(q jobstore.Queue, status string, jobs []api.FetchedJob, now int64) {
	m.depths.touch(q)
	switch {
	case status != claim.ClaimOK:
	case len(jobs) == 0:
		status = outcomeConflict
	default:
		status = outcomeJobs
	}
	m.fetches.WithLabelValues(status).Inc()
	for i := range jobs {
		j := &jobs[i]
		m.attempts.WithLabelValues(attemptLabel(j.Attempt)).Inc()
		if j.Attempt == 1 && j.ParentID == "" && j.CallbackOf == "" {
			m.wait.Observe(max(0, float64(now-max(j.CreatedAtMS, j.Spec.RunAtMS))/1000))
		}
	}
}

// attemptLabel returns the label of an attempt. It has few values, so that there are few time
// series.
func attemptLabel(attempt int) string {
	const labelled = 5
	if attempt > labelled {
		return "more"
	}
	return strconv.Itoa(attempt)
}

// left counts a job that changed from active to another state.
func (m *brokerMetrics) left(from, to api.JobState) {
	if from == api.JobActive && to != api.JobActive {
		m.settled.WithLabelValues(string(to)).Inc()
	}
}

// completed counts jobs that their workers completed.
func (m *brokerMetrics) completed(n int) {
	m.settled.WithLabelValues(string(api.JobCompleted)).Add(float64(n))
}

// spent counts usage that was recorded.
func (m *brokerMetrics) spent(added []agent.Usage) {
	for i := range added {
		sums := added[i].Sums()
		m.tokens.WithLabelValues("input").Add(float64(sums.InputTokens))
		m.tokens.WithLabelValues("output").Add(float64(sums.OutputTokens))
		m.tokens.WithLabelValues("cache_creation").Add(float64(sums.CacheCreationTokens))
		m.tokens.WithLabelValues("cache_read").Add(float64(sums.CacheReadTokens))
		m.cost.Add(float64(sums.CostUSD) / float64(agent.Dollar))
	}
}

// tended counts the jobs that maintenance changed.
func (m *brokerMetrics) tended(c Counts) {
	for kind, n := range map[string]int{
		"promoted": c.Promoted, "reclaimed": c.Reclaimed, "expired": c.Expired,
		"followed": c.Followed, "purged": c.Purged, "repaired": c.Repaired,
	} {
		m.maintained.WithLabelValues(kind).Add(float64(n))
	}
	m.lost.WithLabelValues("reclaimed").Add(float64(c.Reclaimed))
}

// depths is a collector of the depths of queues that this process has used recently, and of
// those among them that still have work, at most depthQueues. A scrape reads them in one
// pipeline, at most once every depthEvery.
type depths struct {
	b             *Broker
	depth, oldest *prometheus.Desc

	mu     sync.Mutex // enqueues and fetches lock it, so it is never held during a read of the store
	recent map[jobstore.Queue]time.Time

	collecting sync.Mutex // guards the fields below
	readAt     time.Time
	last       map[jobstore.Queue]api.Queue
}

// Each of depthQueues queues is one time series for each state, plus one.
const (
	depthQueues  = 500
	depthEvery   = 5 * time.Second
	depthKept    = 10 * time.Minute // how long an unused queue without work is exported
	depthTimeout = 3 * time.Second
)

func newDepths(b *Broker) *depths {
	labels := []string{"tenant", "namespace", "queue"}
	name := func(s string) string { return prometheus.BuildFQName(metrics.Namespace, "queue", s) }
	return &depths{
		b: b, recent: map[jobstore.Queue]time.Time{}, last: map[jobstore.Queue]api.Queue{},
		depth:  prometheus.NewDesc(name("jobs"), "Jobs in a queue, by state.", append(labels, "state"), nil),
		oldest: prometheus.NewDesc(name("oldest_pending_seconds"), "Age of the oldest pending job in a queue.", labels, nil),
	}
}

// touch records that this process uses q.
func (d *depths) touch(q jobstore.Queue) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.recent[q]; known || len(d.recent) < depthQueues {
		d.recent[q] = now
	}
}

// Describe implements prometheus.Collector.
func (d *depths) Describe(ch chan<- *prometheus.Desc) {
	ch <- d.depth
	ch <- d.oldest
}

// Collect implements prometheus.Collector. If the store is unavailable it exports the values
// that were read last.
func (d *depths) Collect(ch chan<- prometheus.Metric) {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	if time.Since(d.readAt) >= depthEvery {
		d.read()
	}
	for key, q := range d.last {
		labels := []string{key.Tenant, q.Namespace, q.Queue}
		for state, n := range q.Depths {
			ch <- prometheus.MustNewConstMetric(d.depth, prometheus.GaugeValue, float64(n), append(labels, string(state))...)
		}
		ch <- prometheus.MustNewConstMetric(d.oldest, prometheus.GaugeValue, float64(q.OldestPendingMS)/1000, labels...)
	}
}

// read reads the depths from the store. The caller holds d.collecting.
func (d *depths) read() {
	d.mu.Lock()
	keys := slices.Collect(maps.Keys(d.recent))
	d.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(d.b.life, depthTimeout)
	defer cancel()
	found, err := d.b.readQueues(ctx, keys)
	if err != nil {
		return // the metrics of the store count the failure
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readAt, d.last = time.Now(), make(map[jobstore.Queue]api.Queue, len(found))
	for i, q := range found {
		d.last[keys[i]] = q
		if time.Since(d.recent[keys[i]]) > depthKept && q.Depths[api.JobPending]+q.Depths[api.JobActive]+q.Depths[api.JobRetrying]+q.Depths[api.JobScheduled] == 0 {
			delete(d.recent, keys[i])
		}
	}
}
