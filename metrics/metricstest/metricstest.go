// Package metricstest reads metrics in tests.
package metricstest

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Value is the sum of the series of a metric that have all of labels, each
// name=value; of a histogram, the number of observations. A metric that was not gathered is 0,
// like one without series: Value("sous_loop_rounds_total", "loop=sweeper", "outcome=ok").
func Value(t testing.TB, from prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatalf("Gather: got error %v, want metric families", err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return Sum(family, labels...)
		}
	}
	return 0
}

// Sum is Value of a family.
func Sum(family *dto.MetricFamily, labels ...string) (sum float64) {
	for _, m := range family.GetMetric() {
		if !has(m, labels) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// has reports whether a series has all of labels.
func has(m *dto.Metric, labels []string) bool {
	found := 0
	for _, pair := range m.GetLabel() {
		for _, want := range labels {
			if name, value, _ := strings.Cut(want, "="); pair.GetName() == name && pair.GetValue() == value {
				found++
			}
		}
	}
	return found == len(labels)
}
