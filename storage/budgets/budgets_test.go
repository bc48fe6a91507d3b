package budgets_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/storagetest"
)

func open(t *testing.T, cfg storage.Config) (*budgets.Repository, *storage.Store) {
	t.Helper()
	s := storagetest.Open(t, cfg)
	r, err := budgets.New(s, func(int64) {})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return r, s
}

func daily(micros int64) budget.Settings {
	u := agent.USD(micros)
	return budget.Settings{Scope: budget.ScopeTenant, DailyUSD: &u}
}

func each(t *testing.T, test func(t *testing.T, r *budgets.Repository, s *storage.Store, tenant string)) {
	t.Helper()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			r, s := open(t, backend.Config(t))
			test(t, r, s, storagetest.Tenant(t))
		})
	}
}

// TestConditions: a change is made only if the budget is as the caller wants it, and one that changes
// nothing has no revision.
func TestConditions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *budgets.Repository, _ *storage.Store, tenant string) {
		one, two := int64(1), int64(2)
		for i, tt := range []struct {
			s        budget.Settings
			on       budgets.Condition
			code     api.Code
			created  bool
			revision int64
		}{
			{daily(5), budgets.Condition{IfMatch: &one}, api.CodePreconditionFailed, false, 0},
			{daily(5), budgets.Condition{IfNew: true}, "", true, 1},
			{daily(5), budgets.Condition{IfNew: true}, api.CodePreconditionFailed, false, 0},
			{daily(5), budgets.Condition{}, "", false, 1},
			{daily(6), budgets.Condition{IfMatch: &two}, api.CodePreconditionFailed, false, 0},
			{daily(6), budgets.Condition{IfMatch: &one}, "", false, 2},
			{budget.Settings{Scope: "all"}, budgets.Condition{}, api.CodeInvalid, false, 0},
		} {
			b, created, err := r.Put(t.Context(), tenant, "b", tt.s, tt.on)
			if api.ErrorCode(err) != tt.code || created != tt.created || b.Revision != tt.revision {
				t.Errorf("Put %d: got revision %d, created %v, error %v, want %d, %v, %q", i, b.Revision, created, err, tt.revision, tt.created, tt.code)
			}
		}
		if err := r.Delete(t.Context(), tenant, "b", &one); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("Delete of an older revision: got %v, want CodePreconditionFailed", err)
		}
		if err := r.Delete(t.Context(), tenant, "b", &two); err != nil {
			t.Errorf("Delete: got %v, want no error", err)
		}
		if err := r.Delete(t.Context(), tenant, "b", nil); api.ErrorCode(err) != api.CodeBudgetNotFound {
			t.Errorf("Delete of no budget: got %v, want CodeBudgetNotFound", err)
		}
		if _, err := r.Get(t.Context(), tenant, "b"); api.ErrorCode(err) != api.CodeBudgetNotFound {
			t.Errorf("Get of no budget: got %v, want CodeBudgetNotFound", err)
		}
		if all, err := r.List(t.Context(), tenant); err != nil || all == nil || len(all) != 0 {
			t.Errorf("List: got %v, error %v, want none", all, err)
		}
	})
}

// TestLimitOfBudgets: racing creations do not exceed it, and changes of a full tenant succeed.
func TestLimitOfBudgets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *budgets.Repository, _ *storage.Store, tenant string) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for i := range budget.MaxBudgets + 5 {
			wg.Go(func() {
				_, _, err := r.Put(t.Context(), tenant, fmt.Sprint("b", i), daily(5), budgets.Condition{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused++
				}
				if code := api.ErrorCode(err); code != "" && code != api.CodeCapacityLimit {
					t.Errorf("Put: got %v, want CodeCapacityLimit", err)
				}
			})
		}
		wg.Wait()
		all, err := r.List(t.Context(), tenant)
		if err != nil || len(all) != budget.MaxBudgets || refused != 5 {
			t.Fatalf("List: got %d budgets and %d refused, error %v, want %d and 5", len(all), refused, err, budget.MaxBudgets)
		}
		if _, _, err := r.Put(t.Context(), tenant, all[0].Name, daily(7), budgets.Condition{}); err != nil {
			t.Errorf("Put of a budget that exists: got %v, want no error", err)
		}
		if err := r.Delete(t.Context(), tenant, all[0].Name, nil); err != nil {
			t.Errorf("Delete: got %v, want no error", err)
		}
		if _, _, err := r.Put(t.Context(), tenant, "more", daily(7), budgets.Condition{}); err != nil {
			t.Errorf("Put after the deletion: got %v, want no error", err)
		}
	})
}

// TestDropKeepsJobsThatChanged: a job that was held again since it was read stays listed.
func TestDropKeepsJobsThatChanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *budgets.Repository, s *storage.Store, tenant string) {
		keys, rdb := s.JobKeys(tenant), s.Client()
		pipe := rdb.Pipeline()
		pipe.Set(t.Context(), keys.Run("j1"), "pending", 0)
		pipe.Set(t.Context(), keys.Run("j2"), "held again", 0)
		for _, id := range []string{"j1", "j2", "j3"} {
			pipe.ZAddNX(t.Context(), keys.HeldBy("b1"), redis.Z{Score: 1, Member: id})
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatalf("Exec: %v", err)
		}
		if err := r.Drop(t.Context(), tenant, "b1", []budgets.Held{{ID: "j1", Run: "pending"}, {ID: "j2", Run: "pending"}, {ID: "j3"}}); err != nil {
			t.Fatalf("Drop: %v", err)
		}
		left, err := rdb.ZRange(t.Context(), keys.HeldBy("b1"), 0, -1).Result()
		if err != nil || len(left) != 1 || left[0] != "j2" {
			t.Errorf("jobs after Drop: got %v, error %v, want j2", left, err)
		}
	})
}
