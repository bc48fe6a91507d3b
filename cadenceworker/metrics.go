package cadenceworker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
)

// The outcomes of polls.
const (
	pollTask  = "task"
	pollEmpty = "empty"
	pollError = "error"
)

// The statuses of tasks.
const (
	taskCompleted  = "completed"
	taskFailed     = "failed"
	taskCancelled  = "cancelled"
	taskGone       = "gone"       // Cadence did not wait for the response any more
	taskUnanswered = "unanswered" // the response did not reach Cadence
	taskRepeated   = "repeated"   // another delivery of the task responds
	taskUnknown    = "unknown"    // its activity type is not in the binding
)

// The outcomes of heartbeats.
const (
	beatOK     = "ok"
	beatCancel = "cancel" // the workflow requests the cancellation
	beatGone   = "gone"
	beatError  = "error"
)

// supervisorMetrics are the metrics of a Supervisor. docs/metrics.md describes each of
// them.
type supervisorMetrics struct {
	polls, tasks, heartbeats *prometheus.CounterVec
	waits                    prometheus.Histogram
	inFlight                 prometheus.GaugeFunc
	workers                  *workersCollector
	loop                     *metrics.Loop
}

// waitSeconds are the bounds of the buckets of the time from schedule to start.
var waitSeconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

func newSupervisorMetrics(s *Supervisor) *supervisorMetrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Subsystem: "cadence", Name: name, Help: help,
		}, []string{label})
	}
	return &supervisorMetrics{
		polls:      counter("polls_total", "Polls for activity tasks, by outcome.", "outcome"),
		tasks:      counter("tasks_total", "Activity tasks, by final status.", "status"),
		heartbeats: counter("heartbeats_total", "Heartbeats sent to the Cadence server, by outcome.", "outcome"),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Subsystem: "cadence", Name: "schedule_to_start_seconds",
			Help: "Time from the scheduling of an activity attempt to its delivery to this replica.", Buckets: waitSeconds,
		}),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: metrics.Namespace, Subsystem: "cadence", Name: "tasks_in_flight",
			Help: "Running activity tasks, including those that wait for a slot.",
		}, func() float64 { return float64(s.runningTasks()) }),
		workers: &workersCollector{s: s, desc: prometheus.NewDesc(
			prometheus.BuildFQName(metrics.Namespace, "cadence", "workers"), "Worker bindings, by state of their workers on this replica.", []string{"state"}, nil)},
		loop: metrics.NewLoop("cadence"),
	}
}

func (m *supervisorMetrics) register(reg prometheus.Registerer) error {
	return metrics.Register(reg, m.polls, m.tasks, m.heartbeats, m.waits, m.inFlight, m.workers, m.loop)
}

// workersCollector counts the bindings by state.
type workersCollector struct {
	s    *Supervisor
	desc *prometheus.Desc
}

// stateLabels maps the states to label values. The metric has a series for each, 0 included.
var stateLabels = map[api.BindingState]string{
	api.BindingRunning: "running", api.BindingStarting: "starting", api.BindingWaiting: "waiting_for_domain", api.BindingFailing: "failing",
	api.BindingNoServer: "no_server", api.BindingDisabled: "disabled", api.BindingStopped: "stopped",
}

// Describe implements prometheus.Collector.
func (c *workersCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *workersCollector) Collect(ch chan<- prometheus.Metric) {
	counts := map[string]int{}
	for _, b := range c.s.currentBindings() {
		counts[stateLabels[b.share(0).State]]++
	}
	for _, label := range stateLabels {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(counts[label]), label)
	}
}
