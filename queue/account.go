package queue

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/spending"
)

// The operations of this file settle jobs, or extend their leases, with usage, and end the iterations
// of jobs with agent. They read a job with its ledger by one command, and change both by one script.

// errNeedsLedger is the error of a decision about a job with agent that was read without a ledger.
var errNeedsLedger = errors.New("queue: the decision needs the ledger of the job")

// account is settleBy for a call that changes the job's ledger. Usage is counted even if the lease is
// lost: it was spent. decide finds the usage of the call in the ledger of the record.
func (b *Broker) account(ctx context.Context, tenant string, c *account.Call, decide func(r *jobstore.Record) (*jobstore.Move, error)) (r *jobstore.Record, err error) {
	c.Usage, err = b.prices.Apply(ctx, tenant, c.Usage)
	if err != nil {
		return nil, err
	}
	if len(c.Usage) > 0 {
		var failed error
		c.Budgets, err = b.budgets.Of(ctx, tenant)
		c.Policies, failed = b.consent.Costly(ctx, tenant)
		if err := cmp.Or(err, failed); err != nil {
			return nil, err
		}
	}
	var lost error
	r, ended, err := b.changeFound(ctx, tenant, c.ID, b.reader(c), func(r *jobstore.Record) (*jobstore.Move, error) {
		m, err := decide(r)
		lost = nil
		if held, ok := err.(leaseLost); ok { //nolint:errorlint // decide returns it unwrapped
			lost, err = held, nil
		}
		if err != nil {
			return nil, err
		}
		return c.Finish(r, m), nil
	})
	if ended {
		b.follower.Follow(ctx, r.Queue(tenant), []string{c.ID})
	}
	if err == nil {
		b.metrics.spent(c.Added())
		b.guard.Reported(c)
		err = lost
	}
	return r, err
}

// reader returns the function that reads the job of c with its ledger, to which it adds the usage of c.
// The budgets of the tenant are read again when the job is, and if its usage was counted before: a call
// that was interrupted may have counted it, without holding the job.
func (b *Broker) reader(c *account.Call) func(ctx context.Context, tenant, id string) (*jobstore.Record, error) {
	again := false
	return func(ctx context.Context, tenant, id string) (*jobstore.Record, error) {
		r, err := b.jobs.FindWithLedger(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		repeated := c.Begin(r, b.store.NowMS())
		if c.Budgets != nil && (again || repeated) {
			c.Budgets, err = b.budgets.Refresh(ctx, tenant)
			c.Cover(r, b.store.NowMS())
		}
		again = true
		return r, err
	}
}

// ackAccounted settles an ack that changes the ledger. The reason of a hold is cut to most bytes.
func (b *Broker) ackAccounted(ctx context.Context, tenant string, a *api.JobAck, most int) (api.JobOutcome, error) {
	c := &account.Call{ID: a.ID, Epoch: a.LeaseEpoch, Usage: a.Usage, Ack: a}
	r, err := b.account(ctx, tenant, c, func(r *jobstore.Record) (*jobstore.Move, error) {
		now, kind := b.store.NowMS(), account.KindOf(a)
		if kind == jobstore.SettledAck {
			holds, done := r.Holds(a.LeaseEpoch, kind)
			if !holds {
				return nil, lostUnless(done, r)
			}
			if r.Spec.Agent != nil {
				c.Status = agent.IterationCompleted
			}
			return r.Completed(string(a.Result), now), nil
		}
		m, err := b.backMove(r, a, kind, most)
		switch {
		case m == nil:
			return nil, err
		case r.Spec.Agent == nil:
		case kind == jobstore.SettledContinue:
			c.Status = agent.IterationContinued
			m = c.Limit(m, now, true)
		default:
			c.Status = agent.IterationHeld
		}
		return c.Bounded(m, now)
	})
	return b.outcomeOf(a.ID, r, err)
}

// failAccounted settles a fail with usage, or of a job with agent.
func (b *Broker) failAccounted(ctx context.Context, tenant string, f *api.JobFail, decide func(r *jobstore.Record) (*jobstore.Move, error)) (api.JobOutcome, error) {
	c := &account.Call{ID: f.ID, Epoch: f.LeaseEpoch, Usage: f.Usage}
	r, err := b.account(ctx, tenant, c, func(r *jobstore.Record) (*jobstore.Move, error) {
		m, err := decide(r)
		if m == nil || m.To.State == api.JobDead {
			return m, err
		}
		now := b.store.NowMS()
		return c.Bounded(c.Limit(m, now, false), now)
	})
	return b.outcomeOf(f.ID, r, err)
}

// beatAccounted extends one lease by a heartbeat with usage, or of a job with a timeout. At a limit the
// job leaves its worker, whose outcome is that of a lost lease.
func (b *Broker) beatAccounted(ctx context.Context, tenant string, h *api.JobHeartbeat) (api.JobOutcome, error) {
	c := &account.Call{ID: h.ID, Epoch: h.LeaseEpoch, Usage: h.Usage}
	r, err := b.account(ctx, tenant, c, func(r *jobstore.Record) (*jobstore.Move, error) {
		if holds, _ := r.Holds(h.LeaseEpoch, ""); !holds {
			return nil, leaseLost{r.Run}
		}
		now := b.store.NowMS()
		m, err := account.Extended(r, h, now)
		if err != nil {
			return nil, err
		}
		return c.Bounded(c.Limit(m, now, false), now)
	})
	if err == nil && r.Run.State != api.JobActive {
		err = leaseLost{r.Run}
	}
	out, err := b.outcomeOf(h.ID, r, err)
	if out.OK {
		out.LeaseExpiresMS = r.Run.At
	}
	return out, err
}

// boundLeases ends the leases of jobs of q, which were claimed for lease, with their iterations. A lease
// that it cannot shorten ends with the next heartbeat or at its time.
func (b *Broker) boundLeases(ctx context.Context, q jobstore.Queue, jobs []api.FetchedJob, lease time.Duration) {
	beats, at := account.Shorter(jobs, lease.Milliseconds(), b.store.NowMS())
	if len(beats) == 0 {
		return
	}
	outcomes, err := b.beat(ctx, q, beats)
	if err != nil {
		b.log.Warn("leases were not shortened to the timeouts of their iterations", zap.String("tenant", q.Tenant), zap.Error(err))
	}
	for i := range outcomes {
		if outcomes[i].OK {
			jobs[at[i]].LeaseExpiresMS = outcomes[i].LeaseExpiresMS
		}
	}
}

// timeOut ends or holds a job whose lease ran out at the timeout of its iteration.
func (b *Broker) timeOut(ctx context.Context, q jobstore.Queue, found *jobstore.Record, counts *Counts) error {
	c, done := &account.Call{ID: found.ID, Epoch: found.Run.Epoch}, false
	_, err := b.account(ctx, q.Tenant, c, func(r *jobstore.Record) (*jobstore.Move, error) {
		now := b.store.NowMS()
		done = r.Run.Epoch == found.Run.Epoch && r.Run.At <= now && account.TimedOut(r, now)
		if !done {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		return c.Limit(r.Same(), now, false), nil
	})
	if err == nil && done {
		counts.Reclaimed++
	}
	return err
}

// Budgets returns the budgets that b enforces.
func (b *Broker) Budgets() *budgets.Repository { return b.budgets }

// TendBudgets releases the jobs of due budgets; see overspend.Guard.Tend.
func (b *Broker) TendBudgets(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error) {
	return b.guard.Tend(ctx, due, now)
}

// CountBudgets is CountRound for the loop "budgets".
func (b *Broker) CountBudgets(began time.Time, err error) { b.guard.CountRound(began, err) }

// Prices returns the prices that b applies.
func (b *Broker) Prices() *spending.Prices { return b.prices }

// Iterations returns up to limit iterations of a job with agent, of those behind position, oldest
// first, and the position of the next page, "" at the end. The last agent.KeptIterations that ended
// are kept. Errors: CodeJobNotFound, CodeValidationCursor, CodeStoreUnavailable.
func (b *Broker) Iterations(ctx context.Context, tenant, id, position string, limit int) ([]agent.Iteration, string, error) {
	after, err := strconv.ParseInt(cmp.Or(position, "0"), 10, 64)
	if err != nil || after < 0 {
		return nil, "", api.Errorf(api.CodeValidationCursor, "the cursor is not one that this list gave")
	}
	return account.Iterations(ctx, b.jobs, tenant, id, after, limit)
}
