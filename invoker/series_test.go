package invoker

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage/activations"
)

var epoch = time.UnixMilli(1_800_000_000_000)

// Beyond the bound, keys share one series. A key that was not used for an hour loses its
// series, but only when another key needs it.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	var closed []string
	s := newSeries(2, func(k string) string { return "of " + k }, func(k string) { closed = append(closed, k) },
		func(string) string { return "other" })
	for _, step := range []struct {
		after     time.Duration
		key, want string
		closed    []string
	}{
		{0, "a", "of a", nil},
		{0, "b", "of b", nil},
		{0, "c", "of other", nil},
		{59 * time.Minute, "a", "of a", nil},
		{59 * time.Minute, "c", "of other", nil},                       // b is idle for 59 minutes
		{60*time.Minute - time.Second, "c", "of other", nil},           // too soon to look again
		{60 * time.Minute, "c", "of c", []string{"b"}},                 // b was touched an hour ago, a was not
		{60 * time.Minute, "b", "of other", []string{"b"}},             // full again
		{61*time.Minute + time.Second, "b", "of other", []string{"b"}}, // nothing is idle
		{60*time.Minute + 2*time.Hour, "b", "of b", []string{"b", "a", "c"}},
	} {
		if got := s.get(step.key, epoch.Add(step.after)); got != step.want {
			t.Errorf("%s after %s: %q, want %q", step.key, step.after, got, step.want)
		}
		if len(closed) == 3 { // a map has no order
			closed = []string{"b", "a", "c"}
		}
		if diff := cmp.Diff(step.closed, closed); diff != "" {
			t.Errorf("%s after %s: closed (-want +got):\n%s", step.key, step.after, diff)
		}
	}
}

func TestSeriesAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newSeries(8, func(int) *int { return new(int) }, func(int) {}, func(int) int { return -1 })
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				if s.get((worker+n)%16, epoch.Add(time.Duration(n)*time.Minute)) == nil {
					t.Error("nothing counts")
				}
			}
		})
	}
	wg.Wait()
	if len(s.kept) > 8 {
		t.Errorf("%d are kept", len(s.kept))
	}
}

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
	m := newEngineMetrics(2)
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
sous_invocation_seconds_total{function="_other",namespace="_other",status="success",tenant="_other",trigger="http",version="_other"} 100
sous_invocation_seconds_total{function="f",namespace="n",status="error",tenant="t_test00",trigger="http",version="1"} 1
sous_invocation_seconds_total{function="f",namespace="n",status="success",tenant="t_test00",trigger="http",version="1"} 2.5
# HELP sous_invocations_total Invocations that ran to a terminal status.
# TYPE sous_invocations_total counter
sous_invocations_total{function="_other",namespace="_other",status="success",tenant="_other",trigger="http",version="_other"} 100
sous_invocations_total{function="f",namespace="n",status="error",tenant="t_test00",trigger="http",version="1"} 1
sous_invocations_total{function="f",namespace="n",status="success",tenant="t_test00",trigger="http",version="1"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "sous_invocations_total", "sous_invocation_seconds_total"); err != nil {
		t.Errorf("testutil.GatherAndCompare: %v", err)
	}
	if got := metricstest.Value(t, reg, "sous_invocation_duration_seconds", "trigger=http", "status=success"); got != 102 {
		t.Errorf("%g durations", got)
	}
	// Two hours later nothing of that is of interest, and another takes its place.
	m.end(ended("g", 1, api.StatusSuccess), time.Second, epoch.Add(2*time.Hour))
	if n := testutil.CollectAndCount(m.calls); n != 2 {
		t.Errorf("%d label sets, want g's and _other's", n)
	}
	if n := testutil.CollectAndCount(m.seconds); n != 2 {
		t.Errorf("%d label sets of seconds", n)
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
	m := newEngineMetrics(maxSeries)
	for n := range maxSeries {
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
