// Package overspend keeps jobs from running whose budgets are exceeded, and releases those that budgets
// hold. Reports of usage are package account's: they count, and hold or end the job that reports.
//
// A budget is compared at four places, of which the report of usage decides exactly, in its script. The
// others read its sum before they act:
//
//	enqueue   a budget with reject refuses new jobs                            Guard.Admit
//	fetch     no job is taken from a queue all of whose jobs the budget
//	          covers; jobs that it covers by their tags are held when taken    Guard.Take
//	report    the job that reports is held or ends                             account.Call.Overspent
//	reset     jobs that it has no reason to hold any more are released         Guard.Tend
//
// So beyond its limit, the jobs of a budget spend at most one report each for those that ran, or were
// being taken, when the limit was reached.
package overspend

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/claim"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/events"
)

const (
	// closedPause is the longest pause until a queue is looked at again that a budget closes: the
	// budget may be raised or deleted.
	closedPause = 5 * time.Second
	// maxScreens bounds the claims of one call all of whose jobs are held.
	maxScreens = 16
)

// find reads a job.
type find = func(ctx context.Context, tenant, id string) (*jobstore.Record, error)

// Change makes the move that decide returns for a job that find reads, nil for none, and returns the job
// after it. It calls decide again for a job that has changed meanwhile.
type Change = func(ctx context.Context, tenant, id string, find find, decide func(r *jobstore.Record) (*jobstore.Move, error)) (r *jobstore.Record, ended bool, err error)

// Guard keeps jobs of exceeded budgets from running. It is safe for concurrent use.
type Guard struct {
	store   *storage.Store
	budgets *budgets.Repository
	records *jobstore.Store
	claimer *claim.Claimer
	change  Change
	events  *events.Log
	log     *zap.Logger

	loop     *metrics.Loop
	jobs     *prometheus.CounterVec
	exceeded *prometheus.CounterVec
}

// New returns a Guard of the jobs in records that claimer takes and change changes.
func New(store *storage.Store, repository *budgets.Repository, records *jobstore.Store, claimer *claim.Claimer, change Change, log *zap.Logger) *Guard {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "budget", Name: name, Help: help}, []string{label})
	}
	return &Guard{
		store: store, budgets: repository, records: records, claimer: claimer, change: change, events: events.New(store), log: log,
		loop:     metrics.NewLoop("budgets"),
		jobs:     counter("jobs_total", "Jobs that budgets have held, ended, refused or released, by outcome.", "outcome"),
		exceeded: counter("exceeded_total", "Limits of budgets that were reached, by what the budget does then.", "on_exceed"),
	}
}

// Collectors returns the metrics of the guard.
func (g *Guard) Collectors() []prometheus.Collector {
	return []prometheus.Collector{g.loop, g.jobs, g.exceeded}
}

// CountRound counts a round of Tend that began at the given time and ends now with err.
func (g *Guard) CountRound(began time.Time, err error) { g.loop.Round(began, err) }

// Reported counts what budgets have done by a report of usage that was recorded.
func (g *Guard) Reported(c *account.Call) {
	job, reached := c.Enforced()
	if job != "" {
		g.jobs.WithLabelValues(job).Inc()
	}
	for _, action := range reached {
		g.exceeded.WithLabelValues(action).Inc()
	}
}

// acting selects the budgets that may keep jobs of q from running: those of all its jobs, and those of
// tags.
func acting(q jobstore.Queue) func(r *budgets.Record) bool {
	return func(r *budgets.Record) bool {
		return r.DailyUSD != nil && r.Acts() && (r.Scope == budget.ScopeTag || r.CoversQueue(q.Namespace, q.Name))
	}
}

// reached returns those budgets of which that are exceeded. It reads their sums unless all are known to
// be. Tenants without budgets cost no command.
func (g *Guard) reached(ctx context.Context, tenant string, which func(r *budgets.Record) bool) ([]budgets.Cover, error) {
	set, err := g.budgets.Of(ctx, tenant)
	if err != nil {
		return nil, err
	}
	now := g.store.NowMS()
	open := func(c budgets.Cover) bool { return !c.Reached(0) }
	found := set.Covering(now, which)
	if slices.ContainsFunc(found, open) {
		if err := g.budgets.Learn(ctx, tenant, set); err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(set.Covering(now, which), open)
	}
	return found, nil
}

// Admit refuses new jobs of q that an exceeded budget rejects: CodeBudgetExceeded with the time until the
// reset. The jobs of schedules are not refused: they wait. Errors: CodeStoreUnavailable.
func (g *Guard) Admit(ctx context.Context, q jobstore.Queue, specs []*api.JobSpec) error {
	over, err := g.reached(ctx, q.Tenant, func(r *budgets.Record) bool {
		return r.DailyUSD != nil && r.OnExceed == budget.OnExceedReject && slices.ContainsFunc(specs, func(s *api.JobSpec) bool {
			return s.Schedule == nil && r.Covers(q.Namespace, q.Name, s.Tags)
		})
	})
	if err != nil || len(over) == 0 {
		return err
	}
	g.jobs.WithLabelValues("refused").Add(float64(len(specs)))
	return over[0].Refusal(g.store.NowMS())
}

// Take is claim.Claimer.Take, but takes no job whose budget is exceeded. If a budget of all jobs of q is,
// it takes none, and again is the time until it should be looked at again. Jobs that a budget covers by
// their tags are held instead.
func (g *Guard) Take(ctx context.Context, q jobstore.Queue, r claim.Request, want int) (jobs []api.FetchedJob, again time.Duration, err error) {
	over, err := g.reached(ctx, q.Tenant, acting(q))
	if err != nil {
		return nil, claim.LongPause, err
	}
	for i := range over {
		if over[i].Scope != budget.ScopeTag {
			return nil, min(closedPause, max(time.Millisecond, time.Duration(over[i].ResetsMS-g.store.NowMS())*time.Millisecond)), nil
		}
	}
	for try := 1; ; try++ {
		jobs, again, err = g.claimer.Take(ctx, q, r, want)
		kept := g.screen(ctx, q, jobs, over)
		if len(kept) > 0 || len(jobs) == 0 || err != nil || try == maxScreens {
			return kept, again, err
		}
	}
}

// screen holds those of jobs, which were claimed from q, that one of the budgets covers, and returns the
// others. A job that cannot be held is handed out: it is held when it reports.
func (g *Guard) screen(ctx context.Context, q jobstore.Queue, jobs []api.FetchedJob, over []budgets.Cover) (kept []api.FetchedJob) {
	if len(over) == 0 {
		return jobs
	}
	for i := range jobs {
		j := &jobs[i]
		at := slices.IndexFunc(over, func(c budgets.Cover) bool { return c.Covers(q.Namespace, q.Name, j.Tags) })
		if at >= 0 {
			held, gone, err := g.hold(ctx, q, j, &over[at])
			if held {
				g.jobs.WithLabelValues(account.Held).Inc()
			}
			if held || gone {
				continue
			}
			if err != nil {
				g.log.Warn("a job of an exceeded budget was not held, and runs until it reports", zap.String("tenant", q.Tenant), zap.String("job", j.ID), zap.Error(err))
			}
		}
		kept = append(kept, *j)
	}
	return kept
}

// hold holds a job that was claimed. The attempt does not count. held is false if the job has changed
// meanwhile, or the budget does not hold it any more.
func (g *Guard) hold(ctx context.Context, q jobstore.Queue, j *api.FetchedJob, by *budgets.Cover) (held, gone bool, err error) {
	set, err := g.budgets.Of(ctx, q.Tenant)
	again := false
	if err != nil {
		return false, false, err
	}
	_, _, err = g.change(ctx, q.Tenant, j.ID, g.records.FindWithLedger, func(r *jobstore.Record) (*jobstore.Move, error) {
		held, gone = false, r.Run.State != api.JobActive || r.Run.Epoch != j.LeaseEpoch
		if gone {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		if again {
			set, err = g.budgets.Refresh(ctx, q.Tenant)
			if err != nil {
				return nil, err
			}
		}
		again = true
		m := account.Hold(r, set, by.ID, g.store.NowMS())
		held = m != nil
		return m, nil
	})
	return held && err == nil, gone, err
}
