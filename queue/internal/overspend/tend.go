package overspend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/duework"
)

const (
	// claimMS is how long a replica may take for a visit of a budget. When it dies, another one
	// takes the budget over after this time.
	claimMS = 10_000
	// visitJobs bounds the jobs that a visit releases, visitBudgets the budgets of a round.
	visitJobs    = 200
	visitBudgets = 200
)

// Tend releases the jobs of those budgets of due, members of the due sets, that no other replica has
// claimed: those that the budget has no reason to hold at now any more, because its day has ended, or it
// was raised or deleted. It returns when a budget is due next, 0 if none is known. An error of one budget
// does not stop the others.
func (g *Guard) Tend(ctx context.Context, due []storage.DueMember, now int64) (next int64, err error) {
	var errs []error
	if len(due) > visitBudgets {
		due, next = due[:visitBudgets], now
	}
	ctx = event.WithActor(ctx, event.ActorBudgets)
	for i := range due {
		at, err := g.visit(ctx, due[i], max(now, g.store.NowMS()))
		if err != nil {
			errs = append(errs, fmt.Errorf("budget %s: %w", due[i].Member, err))
			if storage.Fatal(ctx, err) {
				break
			}
		}
		next = duework.Sooner(next, at)
	}
	return next, errors.Join(errs...)
}

// visit claims a due budget, releases its jobs, and writes when it is due next.
func (g *Guard) visit(ctx context.Context, m storage.DueMember, now int64) (next int64, err error) {
	claims, err := duework.Claim(ctx, g.store, []storage.DueMember{m}, now+claimMS)
	if err != nil || len(claims.Members) == 0 {
		return 0, err
	}
	member, ok := budgets.MemberOf(m.Member)
	if ok {
		next, err = g.tend(ctx, &member, m.Score, now)
		if err != nil {
			return 0, err
		}
	}
	if err := claims.Settle(ctx, []int64{next}); err != nil {
		return 0, err
	}
	if ok { // it may have changed before the claim ended
		rec, _, err := g.budgets.Find(ctx, member.Tenant, member.ID, now, 0)
		if err != nil {
			return 0, err
		}
		if rec != nil {
			next = duework.Sooner(next, rec.Next(now))
		}
	}
	return claims.Recheck(ctx, []int64{next})
}

// tend releases a page of the jobs of a budget that was due at a moment, and returns when it is due next.
func (g *Guard) tend(ctx context.Context, m *budgets.Member, at, now int64) (next int64, err error) {
	rec, free, err := g.budgets.Find(ctx, m.Tenant, m.ID, now, visitJobs)
	if err != nil {
		return 0, err
	}
	if rec != nil {
		next = rec.Next(now)
		if err := g.announce(ctx, m.Tenant, rec, at, now); err != nil {
			return 0, err
		}
	}
	if len(free) == 0 {
		return next, nil
	}
	jobs := make([]budgets.Held, len(free))
	for i, id := range free {
		jobs[i], err = g.release(ctx, m, id)
		if err != nil {
			return 0, err
		}
	}
	if err := g.budgets.Drop(ctx, m.Tenant, m.ID, jobs); err != nil {
		return 0, err
	}
	if len(free) == visitJobs {
		return now, nil
	}
	return next, nil
}

// announce records that a budget was reset, if it was due at the beginning of its day and was exceeded on
// the day before.
func (g *Guard) announce(ctx context.Context, tenant string, rec *budgets.Record, at, now int64) error {
	if rec.DailyUSD == nil || at != rec.Began(now) {
		return nil
	}
	exceeded, err := g.budgets.WasExceeded(ctx, tenant, rec, now)
	if err != nil || !exceeded {
		return err
	}
	return g.events.Record(ctx, tenant, event.Change{Type: event.BudgetReset, Of: event.KindBudgets, ID: rec.Name, AtMS: now, Actor: event.ActorBudgets})
}

// release lets a job run again that a budget holds, and returns it as it is then. One that was approved
// meanwhile, or is held for another reason, stays as it is.
func (g *Guard) release(ctx context.Context, m *budgets.Member, id string) (after budgets.Held, err error) {
	released := false
	r, _, err := g.change(ctx, m.Tenant, id, g.records.Find, func(r *jobstore.Record) (*jobstore.Move, error) {
		released = r.Run.State == api.JobHeld && strings.HasPrefix(r.Details[jobstore.FieldHoldReason], account.HoldPrefix(m.Name))
		if !released {
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		}
		return &jobstore.Move{Record: r, To: r.Ready(g.store.NowMS())}, nil
	})
	switch {
	case api.ErrorCode(err) == api.CodeJobNotFound:
		return budgets.Held{ID: id}, nil
	case err != nil:
		return after, err
	case released:
		g.jobs.WithLabelValues("released").Inc()
	}
	return budgets.Held{ID: id, Run: r.Stored}, nil
}
