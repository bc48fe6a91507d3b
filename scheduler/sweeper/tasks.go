package sweeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue/tasks"
	"github.com/codesous/sous/storage"
)

// TaskSweeperConfig is how fast a TaskSweeper works; zero values mean the default.
type TaskSweeperConfig struct {
	// Interval between rounds (default api.TaskSweepIntervalMS).
	Interval time.Duration
	// Repairs that one round makes for one tenant; what is left is the next round's
	// (default 1,000).
	Repairs int
	// Metrics is where the sweeper's metrics are exported (default: nowhere).
	Metrics prometheus.Registerer
}

func (c TaskSweeperConfig) withDefaults() (TaskSweeperConfig, error) {
	if c.Interval < 0 || c.Repairs < 0 {
		return c, errors.New("scheduler: a task sweeper's settings are not negative")
	}
	if c.Interval == 0 {
		c.Interval = api.TaskSweepIntervalMS * time.Millisecond
	}
	if c.Repairs == 0 {
		c.Repairs = 1000
	}
	return c, nil
}

// TaskRepairs repairs the stuck tasks of one tenant: tasks.Tasks.
type TaskRepairs interface {
	Sweep(ctx context.Context, tenant string, now int64, limit int) (tasks.Swept, error)
}

// TaskSweeper finds tasks of which nobody has heard in time, and brings them back to
// where a worker can find them. A round that finds none costs a command for each
// tenant that has ever had a task, and one for the set of those.
type TaskSweeper struct {
	tenants *storage.Tenants
	tasks   TaskRepairs
	cfg     TaskSweeperConfig
	logger  *zap.Logger
	loop    *metrics.Loop
	repairs *prometheus.CounterVec
}

// NewTaskSweeper makes a sweeper of the tasks of store's tenants. A setting below
// zero is refused, and a registry that has a task sweeper's metrics.
func NewTaskSweeper(store *storage.Store, t TaskRepairs, cfg TaskSweeperConfig, logger *zap.Logger) (*TaskSweeper, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &TaskSweeper{
		tenants: storage.NewTenants(store), tasks: t, cfg: cfg, logger: logger, loop: metrics.NewLoop("tasks"),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_task_repairs_total",
			Help: "Stuck tasks that were announced, announced again, or given up, by kind.",
		}, []string{"kind"}),
	}
	if err := metrics.Register(cfg.Metrics, s.loop, s.repairs); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return s, nil
}

// Run makes rounds until ctx ends, the first one at once. A failed one is logged, and
// what it left is found by the next.
func (s *TaskSweeper) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	for now, failing := time.Now(), false; ; {
		began := time.Now()
		_, err := s.RunOnce(ctx, now)
		if ctx.Err() != nil {
			return
		}
		s.loop.Round(began, err)
		if err != nil && !failing {
			s.logger.Warn("the task sweeper cannot work", zap.Error(err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case now = <-tick.C:
		}
	}
}

// RunOnce sweeps the tasks of every tenant at the given time. A tenant that cannot be
// swept keeps no other from it, unless the store does not answer.
func (s *TaskSweeper) RunOnce(ctx context.Context, now time.Time) (total tasks.Swept, err error) {
	var failed error
	for tenant, err := range s.tenants.WithTasks(ctx) {
		if err != nil {
			return total, fmt.Errorf("walk tenants: %w", err)
		}
		swept, err := s.tasks.Sweep(ctx, tenant, now.UnixMilli(), s.cfg.Repairs)
		s.count(swept)
		total.Add(swept)
		if err == nil {
			continue
		}
		err = fmt.Errorf("sweep tasks of %s: %w", tenant, err)
		if storage.Fatal(ctx, err) {
			return total, err
		}
		failed = cmp.Or(failed, err)
	}
	return total, failed
}

func (s *TaskSweeper) count(swept tasks.Swept) {
	s.repairs.WithLabelValues("announced").Add(float64(swept.Announced))
	s.repairs.WithLabelValues("republished").Add(float64(swept.Republished))
	s.repairs.WithLabelValues("failed").Add(float64(swept.Failed))
}
