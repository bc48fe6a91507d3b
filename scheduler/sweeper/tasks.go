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

// TaskConfig adjusts a TaskSweeper. A zero value means the default.
type TaskConfig struct {
	// Interval is the time between two rounds. Default: api.TaskSweepIntervalMS.
	Interval time.Duration
	// Repairs bounds the stuck tasks of one tenant that one round examines, and with them the
	// tasks that it reads, so that a tenant with many tasks does not delay the others. The next
	// rounds continue. Default: 1,000.
	Repairs int
	// Metrics exports the sweeper's metrics. Default: they are not exported.
	Metrics prometheus.Registerer
}

func (c TaskConfig) withDefaults() (TaskConfig, error) {
	if c.Interval < 0 || c.Repairs < 0 {
		return c, errors.New("sweeper: the settings of a task sweeper must not be negative")
	}
	if c.Interval == 0 {
		c.Interval = api.TaskSweepIntervalMS * time.Millisecond
	}
	if c.Repairs == 0 {
		c.Repairs = 1000
	}
	return c, nil
}

// TaskRepairer repairs the stuck tasks of one tenant. tasks.Tasks implements it.
type TaskRepairer interface {
	Sweep(ctx context.Context, tenant string, now int64, limit int) (tasks.Swept, error)
}

// TaskSweeper finds tasks whose workers have not reported in time, and returns them to where a
// worker can find them. A round that finds none costs one command for each tenant that has
// ever had a task, and one for the set of those tenants. Any number of replicas may run one:
// each repair takes effect once. See queue/tasks for what a repair does.
type TaskSweeper struct {
	tenants *storage.Tenants
	tasks   TaskRepairer
	cfg     TaskConfig
	logger  *zap.Logger
	loop    *metrics.Loop
	repairs *prometheus.CounterVec
}

// NewTaskSweeper returns a sweeper of the tasks of all tenants in store. It refuses a negative
// setting, and a registry that has a task sweeper's metrics already.
func NewTaskSweeper(store *storage.Store, t TaskRepairer, cfg TaskConfig, logger *zap.Logger) (*TaskSweeper, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &TaskSweeper{
		tenants: storage.NewTenants(store), tasks: t, cfg: cfg, logger: logger, loop: metrics.NewLoop("tasks"),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Name: "sweeper_task_repairs_total",
			Help: "Stuck tasks that were announced, announced again, or failed, by kind.",
		}, []string{"kind"}),
	}
	if err := metrics.Register(cfg.Metrics, s.loop, s.repairs); err != nil {
		return nil, fmt.Errorf("sweeper: %w", err)
	}
	return s, nil
}

// Run calls RunOnce at each interval until ctx ends, the first time immediately. It logs the
// first of several failures in a row; the next round finds what a failed one left.
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
			s.logger.Warn("a round of the task sweeper failed; the next one tries again", zap.Error(err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case now = <-tick.C:
		}
	}
}

// RunOnce repairs the tasks of every tenant that are stuck at now, and returns what it did. A
// tenant whose tasks cannot be read does not keep it from the others, unless the store does
// not answer.
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

// count adds the repairs of one tenant to the metrics. Those of other replicas are counted there.
func (s *TaskSweeper) count(swept tasks.Swept) {
	s.repairs.WithLabelValues("announced").Add(float64(swept.Announced))
	s.repairs.WithLabelValues("republished").Add(float64(swept.Republished))
	s.repairs.WithLabelValues("failed").Add(float64(swept.Failed))
}
