package sweeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestSweeperIsMeasured(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	now := time.Now()
	fill(t, store, storagetest.Tenant(t), 2, 3, now)
	reg := prometheus.NewRegistry()
	sw, err := sweeper.New(store, brokerOn(t, store), sweeper.Config{Interval: time.Millisecond, Metrics: reg}, zap.NewNop())
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, err := sw.RunOnce(t.Context(), now); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	for name, want := range map[string]float64{"sous_sweeper_functions_total": 2, "sous_sweeper_repairs_total": 6} {
		if got := metricstest.Value(t, reg, name); got != want {
			t.Errorf("%s: got %g, want %g", name, got, want)
		}
	}
	if got := metricstest.Value(t, reg, "sous_sweeper_repairs_total", "kind=lost"); got != 6 {
		t.Errorf("repairs of kind lost: got %g, want 6", got)
	}
	if _, err := sw.RunOnce(t.Context(), now.Add(time.Minute)); err != nil { // to the end of the pass
		t.Fatalf("RunOnce: %v", err)
	}
	if got := metricstest.Value(t, reg, "sous_sweeper_lap_seconds", "course=places"); got <= 0 || got > 60 {
		t.Errorf("sous_sweeper_lap_seconds: got %g, want more than 0 and at most 60", got)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		sw.Run(ctx)
	}()
	for metricstest.Value(t, reg, "sous_loop_rounds_total", "loop=sweeper", "outcome=ok") == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // between two looks
	}
	if ctx.Err() != nil {
		t.Error("sous_loop_rounds_total: got no round, want one")
	}
	stop()
	<-done
	if _, err := sweeper.New(store, brokerOn(t, store), sweeper.Config{Metrics: reg}, zap.NewNop()); err == nil {
		t.Error("New with a registry that has a sweeper's metrics: got no error, want one")
	}
}
