package queue

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/depths"
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
	depths     *depths.Collector
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
		depths: depths.New(b.life, b.readQueues),
	}
}

func (m *brokerMetrics) register(reg prometheus.Registerer, more ...prometheus.Collector) error {
	return metrics.Register(reg, append(more, m.loop, m.enqueued, m.fetches, m.attempts, m.wait, m.settled, m.lost, m.maintained, m.tokens, m.cost, m.depths)...)
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
	m.depths.Touch(q)
}

// claimed counts a claim that returned status and jobs at now, a Unix time in milliseconds. The
// wait is observed for first attempts only, and not for jobs that another job made.
func (m *brokerMetrics) claimed(q jobstore.Queue, status string, jobs []api.FetchedJob, now int64) {
	m.depths.Touch(q)
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
