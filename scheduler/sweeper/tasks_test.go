package sweeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func tasksOver(t *testing.T, s *storage.Store) *tasks.Tasks {
	t.Helper()
	broker, err := queue.New(t.Context(), s, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	all, err := tasks.New(s, broker, tasks.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return all
}

func claimed(t *testing.T, all *tasks.Tasks, tenant, id string) {
	t.Helper()
	if _, _, err := all.Create(t.Context(), tenant, "email-send", id, api.NewTask{}); err != nil {
		t.Fatalf("Create: %v", err)
	}
	if _, err := all.Claim(t.Context(), tenant, "email-send", id, api.TaskClaim{Worker: "w1"}); err != nil {
		t.Fatalf("Claim: %v", err)
	}
}

// The stuck tasks of all tenants are repaired, and the repairs counted.
func TestTaskSweeperRepairsTasksOfAllTenants(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, s *storage.Store) {
		all := tasksOver(t, s)
		tenants := []string{storagetest.Tenant(t), storagetest.Tenant(t), storagetest.Tenant(t)}
		for _, tenant := range tenants {
			claimed(t, all, tenant, "t1")
			claimed(t, all, tenant, "t2")
		}
		reg := prometheus.NewRegistry()
		sw, err := sweeper.NewTaskSweeper(s, all, sweeper.TaskConfig{Metrics: reg, Repairs: 1}, zap.NewNop())
		if err != nil {
			t.Fatalf("NewTaskSweeper: %v", err)
		}
		now := time.Now()
		if swept, err := sw.RunOnce(t.Context(), now); err != nil || swept != (tasks.Swept{}) {
			t.Errorf("RunOnce before tasks are stuck = %+v, %v, want nothing done", swept, err)
		}
		for _, want := range []int{3, 3, 0} {
			swept, err := sw.RunOnce(t.Context(), now.Add(api.TaskStuckMS*time.Millisecond+time.Second))
			if err != nil || swept.Republished != want {
				t.Errorf("%+v %v, want %d", swept, err, want)
			}
		}
		if got := metricstest.Value(t, reg, "sous_sweeper_task_repairs_total", "kind=republished"); got != 6 {
			t.Errorf("got %g republished tasks in the metrics, want 6", got)
		}
		for _, tenant := range tenants {
			for _, id := range []string{"t1", "t2"} {
				if task, err := all.Get(t.Context(), tenant, "email-send", id); err != nil || task.State != api.TaskPending || task.Republished != 1 {
					t.Errorf("Get(%s) = %+v, %v, want it pending and republished once", id, task, err)
				}
			}
		}
	})
}

// repairs answers for a tenant's sweep.
type repairs map[string]error

func (r repairs) Sweep(_ context.Context, tenant string, _ int64, _ int) (tasks.Swept, error) {
	return tasks.Swept{Read: 1, Failed: 1}, r[tenant]
}

// A tenant that cannot be swept keeps no other from it; a store that is away does.
func TestTaskSweeperPassesTenants(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, s *storage.Store) {
		all := tasksOver(t, s)
		tenants := []string{storagetest.Tenant(t), storagetest.Tenant(t), storagetest.Tenant(t)}
		failing := repairs{}
		for _, tenant := range tenants {
			claimed(t, all, tenant, "t1")
			failing[tenant] = errors.New("odd")
		}
		reg := prometheus.NewRegistry()
		sw, err := sweeper.NewTaskSweeper(s, failing, sweeper.TaskConfig{Metrics: reg}, zap.NewNop())
		if err != nil {
			t.Fatalf("NewTaskSweeper: %v", err)
		}
		if swept, err := sw.RunOnce(t.Context(), time.Now()); err == nil || swept.Read != 3 {
			t.Errorf("%+v %v, want an error and a check of all three", swept, err)
		}
		for tenant := range failing {
			failing[tenant] = api.Errorf(api.CodeStoreUnavailable, "away")
		}
		if swept, err := sw.RunOnce(t.Context(), time.Now()); api.ErrorCode(err) != api.CodeStoreUnavailable || swept.Read != 1 {
			t.Errorf("%+v %v, want the end at the first", swept, err)
		}
		if got := metricstest.Value(t, reg, "sous_sweeper_task_repairs_total", "kind=failed"); got != 4 {
			t.Errorf("got %g failed tasks in the metrics, want 4", got)
		}
	})
}

func TestTaskSweeperRefusesBadSettings(t *testing.T) {
	t.Parallel()
	for _, cfg := range []sweeper.TaskConfig{{Interval: -1}, {Repairs: -1}} {
		if _, err := sweeper.NewTaskSweeper(nil, repairs{}, cfg, zap.NewNop()); err == nil {
			t.Errorf("NewTaskSweeper with %+v: got no error, want one", cfg)
		}
	}
}

// Sweepers that start and stop at once, and an outage, leave nothing behind; the loop
// tells how it gets on.
func TestTaskSweeperStartsAndStops(t *testing.T) {
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	all := tasksOver(t, s)
	claimed(t, all, storagetest.Tenant(t), "t1")
	quiet := goleak.IgnoreCurrent()
	for round := range 20 {
		reg := prometheus.NewRegistry()
		if round == 10 {
			server.Kill()
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		sw, err := sweeper.NewTaskSweeper(s, all, sweeper.TaskConfig{Interval: time.Millisecond, Metrics: reg}, zap.NewNop())
		if err != nil {
			t.Fatalf("NewTaskSweeper: %v", err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			sw.Run(ctx)
		}()
		outcome := "outcome=ok"
		if round >= 10 {
			outcome = "outcome=error"
		}
		for round%10 == 0 && metricstest.Value(t, reg, "sous_loop_rounds_total", "loop=tasks", outcome) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // between two looks
		}
		if ctx.Err() != nil {
			t.Errorf("round %d: got no outcome %s, want one", round, outcome)
		}
		stop()
		<-done
	}
	goleak.VerifyNone(t, quiet)
}
