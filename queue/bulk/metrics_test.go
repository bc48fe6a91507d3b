package bulk

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/metrics/metricstest"
)

// Jobs are counted when their progress is saved: those of a chunk that is dropped do not count.
func TestMetricsCountExaminedJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		registry := prometheus.NewRegistry()
		if err := metrics.Register(registry, f.Collectors()...); err != nil {
			t.Fatalf("Register: %v", err)
		}
		ids := f.cancelled(t, f.tenant, 3)
		if _, err := f.broker.Retry(t.Context(), f.tenant, ids[0]); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		b := f.retry(t, f.tenant)
		r, err := f.find(t.Context(), f.tenant, b.ID)
		if err != nil {
			t.Fatalf("find: %v", err)
		}
		after, err := f.chunk(t.Context(), r)
		if err != nil {
			t.Fatalf("chunk: %v", err)
		}
		if _, err := f.RunOnce(t.Context()); err != nil { // another replica is as far: that counts
			t.Fatalf("RunOnce: %v", err)
		}
		if _, err := f.save(t.Context(), r, after); err != nil { // and this is dropped
			t.Fatalf("save: %v", err)
		}
		expect(t, f.get(t, f.tenant, b.ID), search.BulkCompleted, 0, 3, 0)
		families, err := registry.Gather()
		if err != nil {
			t.Fatalf("Gather: %v", err)
		}
		for _, family := range families {
			switch family.GetName() {
			case "sous_bulk_operations_running":
				if got := metricstest.Sum(family); got != 1 {
					t.Errorf("got %g running operations, want 1", got)
				}
			case "sous_bulk_jobs_total":
				for outcome, want := range map[string]float64{"done": 0, "skipped": 3, "failed": 0} {
					if got := metricstest.Sum(family, "operation=retry", "outcome="+outcome); got != want {
						t.Errorf("got %g jobs %s, want %g", got, outcome, want)
					}
				}
			}
		}
		if len(families) != 2 {
			t.Errorf("got %d metrics, want 2", len(families))
		}
	})
}
