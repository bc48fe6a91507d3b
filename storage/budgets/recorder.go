package budgets

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage/keyedmutex"
	"github.com/codesous/sous/storage/spending"
)

const scriptAdd = "usage_add.lua"

// rowMark is the kind of the field that marks the last call of a replica: a|id.
const rowMark = "a"

// The pauses between the tries of a write that the store did not answer.
const (
	retryMin = 20 * time.Millisecond
	retryMax = time.Second
)

// errStale reports budgets that have changed since they were read.
var errStale = errors.New("budgets: changed since they were read")

// Recorder adds what functions spend on models, that are no attempts of jobs, to the sums of the day and
// to those of the budgets that cover them. Each entry is counted once: a replica makes one call for a
// tenant at a time, and repeats it with the same mark until the store answers. It is safe for concurrent
// use.
type Recorder struct {
	budgets *Repository
	id      string // of this process
	calls   atomic.Int64
	locks   *keyedmutex.Mutex
}

// NewRecorder returns a recorder of the spending by functions.
func NewRecorder(budgets *Repository) *Recorder {
	return &Recorder{budgets: budgets, id: uuid.NewString(), locks: keyedmutex.New()}
}

// covering returns the budgets of a day that cover a function, at now.
func (s *Set) covering(namespace, function string, now int64) []Cover {
	return s.Covering(now, func(r *Record) bool {
		return r.DailyUSD != nil && r.CoversQueue(namespace, api.FunctionQueuePrefix+function)
	})
}

// Admit refuses a call of a model by a function that a budget of the day covers which is exceeded, unless
// the budget only alerts: CodeBudgetExceeded with the time until the reset. It reads the sums of the
// budgets; tenants without budgets cost no command. Errors: CodeStoreUnavailable.
func (r *Recorder) Admit(ctx context.Context, tenant, namespace, function string) error {
	set, err := r.budgets.Of(ctx, tenant)
	if err != nil || len(set.covering(namespace, function, 0)) == 0 {
		return err
	}
	if err := r.budgets.Learn(ctx, tenant, set); err != nil {
		return err
	}
	now := r.budgets.store.NowMS()
	for _, c := range set.covering(namespace, function, now) {
		if c.Acts() && c.Reached(0) {
			return c.Refusal(now)
		}
	}
	return nil
}

// Refusal returns CodeBudgetExceeded with the time from now until the reset.
func (c *Cover) Refusal(now int64) error {
	err := api.Errorf(api.CodeBudgetExceeded, "budget %s: %s", c.Name, c.DayWords())
	err.RetryAfter = time.Duration(c.ResetsMS-now) * time.Millisecond
	return err
}

// DayWords describes in words that the limit of the day is reached, "" for a budget without one.
func (c *Cover) DayWords() string {
	if c.DailyUSD == nil {
		return ""
	}
	return "the limit of " + c.DailyUSD.String() + " USD a day is reached until " + time.UnixMilli(c.ResetsMS).UTC().Format(time.RFC3339)
}

// Add adds entries of a function, with their costs. While the store does not answer, it tries again until
// ctx ends; the entries may then be counted or not. Errors: CodeStoreUnavailable, ctx's.
func (r *Recorder) Add(ctx context.Context, tenant, namespace, function string, entries []agent.Usage) error {
	unlock, err := r.locks.Lock(ctx, tenant)
	if err != nil {
		return err
	}
	defer unlock()
	mark := strconv.FormatInt(r.calls.Add(1), 10)
	now := r.budgets.store.NowMS() // the mark is in the sums of one day
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		err := r.add(ctx, tenant, namespace, function, mark, now, entries)
		if errors.Is(err, errStale) {
			_, err = r.budgets.Refresh(ctx, tenant)
			if err == nil {
				continue
			}
		}
		if api.ErrorCode(err) != api.CodeStoreUnavailable {
			return err
		}
		if sleep.For(ctx, pause) != nil {
			return err
		}
	}
}

// add is one try of Add. Errors: errStale, CodeStoreUnavailable.
func (r *Recorder) add(ctx context.Context, tenant, namespace, function, mark string, now int64, entries []agent.Usage) error {
	set, err := r.budgets.Of(ctx, tenant)
	if err != nil {
		return err
	}
	cost := agent.USD(0)
	for i := range entries {
		cost += entries[i].Sums().CostUSD
	}
	keys := r.budgets.store.JobKeys(tenant)
	day := spending.Day(now)
	names := []string{keys.Spending(day), keys.Spending(day - 1), keys.Events()}
	args := []any{rowMark + "|" + r.id, mark, spending.KeepMS, agent.MaxRows}
	covers := set.covering(namespace, function, now)
	args = append(args, len(covers))
	if len(covers) > 0 {
		names = append(names, keys.Budgets())
		args = append(args, set.Revision, "")
	}
	for i := range covers {
		args = append(args, covers[i].Field, int64(cost), int64(*covers[i].DailyUSD), "", covers[i].exceededBy(namespace, function, now))
	}
	for _, row := range spending.Rows(spending.Spender{Namespace: namespace, Function: function}, entries) {
		args = append(args, row.Field, row.Instead)
		for _, n := range row.Sums.Numbers() {
			args = append(args, n)
		}
	}
	reply, err := r.budgets.store.Script(ctx, scriptAdd, names, args...)
	if err == nil && reply == "stale" {
		return errStale
	}
	return err
}

// exceededBy returns the event of a budget that a function exceeds, as scripts take it.
func (c *Cover) exceededBy(namespace, function string, now int64) string {
	e := event.Change{
		Type: event.BudgetExceeded, Of: event.KindBudgets, ID: c.Name, AtMS: now,
		Data: event.Data{Namespace: namespace, Function: function, Reason: event.Shorten(c.DayWords())},
	}
	return e.Text()
}
