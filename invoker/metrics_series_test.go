package invoker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage/activations"
)

var epoch = time.UnixMilli(1_800_000_000_000)

func ended(function string, version int64, status api.Status) *activations.Record {
	return &activations.Record{Activation: api.Activation{
		Tenant: "t_test00", Namespace: "n", Function: function, Ref: api.Ref{Alias: "prod", Version: version},
		Trigger: api.Trigger{Type: api.TriggerHTTP}, Status: status,
	}}
}

// A tenant that makes a version for each call does not fill this process, or the
// operator's Prometheus, with label sets; and what had a place keeps counting.
func TestInvocationsHaveABoundedNumberOfLabelSets(t *testing.T) {
	t.Parallel()
	m := newEngineMetrics(4)
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.calls, m.seconds, m.durations, m.refusals)
	m.end(ended("f", 1, api.StatusSuccess), 1500*time.Millisecond, epoch)
	m.end(ended("f", 1, api.StatusError), time.Second, epoch)
	for v := range int64(100) {
		m.end(ended("f", v+2, api.StatusSuccess), time.Second, epoch)
	}
	m.end(ended("f", 1, api.StatusSuccess), time.Second, epoch)
	const want = `
# HELP sous_invocation_seconds_total Time spent on invocations, from the concurrency slot to the function's end.
# TYPE sous_invocation_seconds_total counter
sous_invocation_seconds_total{function="_other",namespace="_other",status="success",tenant="t_test00",trigger="http",version="_other"} 100
sous_invocation_seconds_total{function="f",namespace="n",status="error",tenant="t_test00",trigger="http",version="1"} 1
sous_invocation_seconds_total{function="f",namespace="n",status="success",tenant="t_test00",trigger="http",version="1"} 2.5
# HELP sous_invocations_total Invocations that ran to a terminal status.
# TYPE sous_invocations_total counter
sous_invocations_total{function="_other",namespace="_other",status="success",tenant="t_test00",trigger="http",version="_other"} 100
sous_invocations_total{function="f",namespace="n",status="error",tenant="t_test00",trigger="http",version="1"} 1
sous_invocations_total{function="f",namespace="n",status="success",tenant="t_test00",trigger="http",version="1"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "sous_invocations_total", "sous_invocation_seconds_total"); err != nil {
		t.Errorf("testutil.GatherAndCompare: %v", err)
	}
	if got := metricstest.Value(t, reg, "sous_invocation_duration_seconds", "trigger=http", "status=success"); got != 102 {
		t.Errorf("got %g durations, want 102", got)
	}
	// Two hours later nothing of that is of interest, and another takes its place.
	m.end(ended("g", 1, api.StatusSuccess), time.Second, epoch.Add(2*time.Hour))
	if n := testutil.CollectAndCount(m.calls); n != 1 {
		t.Errorf("%d label sets, want g's", n)
	}
	if n := testutil.CollectAndCount(m.seconds); n != 1 {
		t.Errorf("%d label sets of seconds, want g's", n)
	}
}

// Names that a caller made up are no label values.
func TestRefusalsOfWhatDoesNotExistShareASeries(t *testing.T) {
	t.Parallel()
	m := newEngineMetrics(10)
	for n := range 100 {
		inv := api.Invocation{Tenant: "t_test00", Namespace: "n", Function: fmt.Sprint("f", n)}
		if m.refuse(&inv, false, api.Errorf(api.CodeFunctionNotFound, "no")) == nil {
			t.Error("the error is lost")
		}
	}
	_ = m.refuse(&api.Invocation{Tenant: "t_test00", Namespace: "n", Function: "real"}, true, api.Errorf(api.CodeConcurrencyLimit, "no"))
	const want = `
# HELP sous_invocations_refused_total Invocations that did not run, by error code.
# TYPE sous_invocations_refused_total counter
sous_invocations_refused_total{code="CS_CONCURRENCY_LIMIT",function="real",namespace="n",tenant="t_test00"} 1
sous_invocations_refused_total{code="CS_FUNCTION_NOT_FOUND",function="_other",namespace="_other",tenant="_other"} 100
`
	if err := testutil.CollectAndCompare(m.refusals, strings.NewReader(want)); err != nil {
		t.Errorf("testutil.CollectAndCompare: %v", err)
	}
}

// BenchmarkMetricsOfACall measures the cost of the metrics of one invocation.
func BenchmarkMetricsOfACall(b *testing.B) {
	m := newEngineMetrics(metrics.MaxSeries)
	for n := range metrics.MaxSeries {
		m.end(ended(fmt.Sprint("f", n), 1, api.StatusSuccess), time.Millisecond, epoch)
	}
	rec := ended("f1", 1, api.StatusSuccess)
	over := ended("over", 1, api.StatusSuccess)
	for name, rec := range map[string]*activations.Record{"own": rec, "other": over} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.inFlight.Inc()
					began := time.Now()
					m.end(rec, time.Since(began), epoch)
					m.inFlight.Dec()
				}
			})
		})
	}
}
