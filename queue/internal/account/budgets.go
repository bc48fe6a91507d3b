package account

import (
	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage/budgets"
)

// HoldPrefix begins the reason for which a budget holds a job.
func HoldPrefix(name string) string { return "budget " + name + ": " }

// Cover sets the budgets that cover r, and what the call adds to their sums at now. Begin calls it; it is
// for a caller that has read the budgets again since.
func (c *Call) Cover(r *jobstore.Record, now int64) {
	c.covers, c.change.Budgets = nil, nil
	if len(c.Usage) == 0 || c.Epoch > r.Run.Epoch {
		return
	}
	c.covers = c.Budgets.Covering(now, func(b *budgets.Record) bool { return b.Covers(r.Spec.Namespace, r.Spec.Queue, r.Spec.Tags) })
	if len(c.covers) == 0 {
		return
	}
	cost := agent.USD(0)
	for i := range c.added {
		cost += c.added[i].Sums().CostUSD
	}
	change := &jobstore.BudgetChange{Revision: c.Budgets.Revision}
	spent := r.Ledger.Total.CostUSD - r.Ledger.FromBudget
	for i := range c.covers {
		b := &c.covers[i]
		if b.DailyUSD != nil {
			change.Limits = append(change.Limits, jobstore.BudgetLimit{
				Field: b.Field, Added: cost, Limit: *b.DailyUSD, Event: exceeded(b, r, b.DayWords(), now), Action: b.OnExceed,
			})
		}
		if b.PerJobUSD != nil && spent-cost < *b.PerJobUSD && spent >= *b.PerJobUSD {
			change.Limits = append(change.Limits, jobstore.BudgetLimit{Event: exceeded(b, r, c.jobReached(b, r), now), Action: b.OnExceed})
		}
	}
	if len(change.Limits) > 0 {
		c.change.Budgets = change
	}
}

// exceeded returns the event of a budget that a job exceeds, as scripts take it.
func exceeded(b *budgets.Cover, r *jobstore.Record, words string, now int64) string {
	e := event.Change{
		Type: event.BudgetExceeded, Of: event.KindBudgets, ID: b.Name, AtMS: now,
		Data: event.Data{Namespace: r.Spec.Namespace, Queue: r.Spec.Queue, Function: event.FunctionOf(r.Spec.Queue), JobID: r.ID, Reason: event.Shorten(words)},
	}
	return e.Text()
}

func (c *Call) jobReached(b *budgets.Cover, r *jobstore.Record) string {
	return "the limit of " + b.PerJobUSD.String() + " USD for a job is reached: spent " + r.Ledger.Total.CostUSD.String() + " USD in all"
}

// Overspent returns m, or the move that ends or holds its job instead, if a budget is exceeded at now.
// The limit of a job comes before that of a day, and a budget that ends its jobs before one that holds
// them. The script compares again: c has assumed the state of each limit of a day.
func (c *Call) Overspent(m *jobstore.Move, now int64) *jobstore.Move {
	if len(c.covers) == 0 || m.To.State.Terminal() || m.To.State == api.JobHeld {
		return m
	}
	r := m.Record
	var by *budgets.Cover
	words, whole, most := "", false, 0 // whole: by the limit of a job
	for i := range c.covers {
		b := &c.covers[i]
		if !b.Acts() {
			continue
		}
		days, jobs, weight := c.assume(b), b.PerJobUSD != nil && r.Ledger.Total.CostUSD-r.Ledger.FromBudget >= *b.PerJobUSD, 1
		if jobs {
			weight++
		}
		if b.OnExceed == budget.OnExceedReject {
			weight += 2
		}
		if !days && !jobs || weight <= most {
			continue
		}
		by, whole, most, words = b, jobs, weight, b.DayWords()
		if jobs {
			words = c.jobReached(b, r)
		}
	}
	if by == nil {
		return m
	}
	if whole {
		r.Ledger.FromBudget = r.Ledger.Total.CostUSD
	}
	if by.OnExceed == budget.OnExceedReject {
		return c.endOverspent(m, words, now)
	}
	c.overspent = Held
	if m.To.State == api.JobActive && r.Spec.Target == nil {
		// The attempt ends without a failure, and does not count. That of a function does: the record
		// of its activation has the number.
		m.To.Attempt--
	}
	m.To = m.To.To(api.JobHeld, now)
	m.Field, m.Value = jobstore.FieldHoldReason, HoldPrefix(by.Name)+words
	if c.change.Budgets == nil {
		c.change.Budgets = &jobstore.BudgetChange{Revision: c.Budgets.Revision, Limits: []jobstore.BudgetLimit{{Field: by.Field}}}
	}
	c.change.Budgets.Holder, c.change.Budgets.Score = by.ID, by.DayScore()
	if whole {
		c.change.Budgets.Score = by.JobScore()
	}
	return m
}

// Hold returns the move that holds r, a job that was just claimed, if the limit of the day of a budget of
// set is known to be reached at now; else nil.
func Hold(r *jobstore.Record, set *budgets.Set, id string, now int64) *jobstore.Move {
	found := set.Covering(now, func(b *budgets.Record) bool {
		return b.ID == id && b.Acts() && b.Covers(r.Spec.Namespace, r.Spec.Queue, r.Spec.Tags)
	})
	if len(found) == 0 || !found[0].Reached(0) {
		return nil
	}
	by := &found[0]
	m := &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, now), Field: jobstore.FieldHoldReason, Value: HoldPrefix(by.Name) + by.DayWords()}
	m.To.Attempt--
	m.Ledger = &jobstore.Change{Before: r.Ledger.Version(), Ledger: r.Ledger, Budgets: &jobstore.BudgetChange{
		Revision: set.Revision, Holder: by.ID, Score: by.DayScore(),
		Limits: []jobstore.BudgetLimit{{Field: by.Field, Limit: *by.DailyUSD, Assumed: "1"}},
	}}
	return m
}

// endOverspent returns the move that ends the job of m.
func (c *Call) endOverspent(m *jobstore.Move, words string, now int64) *jobstore.Move {
	c.overspent = Ended
	run := &m.Record.Run
	if m.Failure == nil && m.To.State == api.JobActive {
		m.Failure = &api.JobError{Attempt: run.Attempt, AtMS: now, Error: words}
	}
	m.To.Attempt = run.Attempt
	return m.Dead(budget.DeadBudget, now)
}

// assume reports whether the limit of the day of b is reached with the call, as far as it is known, and
// has the script check it.
func (c *Call) assume(b *budgets.Cover) bool {
	if b.DailyUSD == nil {
		return false
	}
	for i := range c.change.Budgets.Limits {
		l := &c.change.Budgets.Limits[i]
		if l.Field != b.Field {
			continue
		}
		l.Assumed = "0"
		if b.Reached(l.Added) {
			l.Assumed = "1"
			return true
		}
	}
	return false
}

// What a budget has done with the job of a call.
const (
	Held  = "held"
	Ended = "ended"
)

// Enforced returns what a budget has done with the job of the last decision, "" for nothing, and what the
// budgets do whose limits the call has reached.
func (c *Call) Enforced() (job string, reached []string) {
	if c.change != nil && c.change.Budgets != nil {
		for _, i := range c.change.Budgets.Crossed {
			if action := c.change.Budgets.Limits[i].Action; action != "" {
				reached = append(reached, action)
			}
		}
	}
	return c.overspent, reached
}
