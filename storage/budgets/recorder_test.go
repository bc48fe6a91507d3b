package budgets_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/events"
)

// cost returns an entry of usage that costs so many millionths of a dollar.
func cost(micros int64) []agent.Usage {
	u := agent.USD(micros)
	return []agent.Usage{{Provider: "main", Model: "tiny", InputTokens: 1, CostUSD: &u}}
}

// TestFunctionsCountInBudgets: what functions spend that are no jobs counts in the budgets that cover
// them, and an exceeded one refuses their calls, unless it only alerts.
func TestFunctionsCountInBudgets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *budgets.Repository, s *storage.Store, tenant string) {
		ofFunction, alert := daily(10), daily(5)
		ofFunction.Scope, ofFunction.Target, ofFunction.OnExceed = budget.ScopeFunction, "shop/ask", budget.OnExceedReject
		alert.OnExceed = budget.OnExceedAlert
		for name, settings := range map[string]budget.Settings{"ask": ofFunction, "all": alert} {
			if _, _, err := r.Put(t.Context(), tenant, name, settings, budgets.Condition{}); err != nil {
				t.Fatalf("Put: %v", err)
			}
		}
		recorder := budgets.NewRecorder(r)
		add := func(function string, micros int64) {
			t.Helper()
			if err := recorder.Add(t.Context(), tenant, "shop", function, cost(micros)); err != nil {
				t.Fatalf("Add: %v", err)
			}
		}
		admitted := func(function string, want api.Code) {
			t.Helper()
			err := recorder.Admit(t.Context(), tenant, "shop", function)
			if got := api.ErrorCode(err); got != want {
				t.Errorf("Admit of %s: got %v, want code %q", function, err, want)
			}
		}
		add("ask", 6)
		add("other", 100)
		admitted("ask", "")
		add("ask", 6)
		admitted("ask", api.CodeBudgetExceeded)
		admitted("other", "")
		list, err := r.List(t.Context(), tenant)
		if err != nil || len(list) != 2 || list[0].SpentUSD != 112 || list[1].SpentUSD != 12 {
			t.Errorf("List: got %+v, error %v, want 112 and 12 spent", list, err)
		}
		page, err := events.New(s).Read(t.Context(), tenant, "", 100)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		var exceeded []string
		for _, e := range page.Events {
			if e.Type == event.BudgetExceeded {
				exceeded = append(exceeded, e.Subject)
			}
		}
		if got, want := fmt.Sprint(exceeded), "[budgets/all budgets/ask]"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
	})
}

// TestRacingFunctionsAreCountedOnce: entries of several replicas are all counted, also while the budgets
// change.
func TestRacingFunctionsAreCountedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *budgets.Repository, s *storage.Store, tenant string) {
		if _, _, err := r.Put(t.Context(), tenant, "all", daily(1_000_000), budgets.Condition{}); err != nil {
			t.Fatalf("Put: %v", err)
		}
		var work sync.WaitGroup
		for replica := range 4 {
			repository, err := budgets.New(s, func(int64) {})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			recorder := budgets.NewRecorder(repository)
			for range 8 {
				work.Go(func() {
					for range 10 {
						if err := recorder.Add(t.Context(), tenant, "shop", "ask", cost(1)); err != nil {
							t.Errorf("Add: %v", err)
						}
					}
				})
			}
			if _, _, err := r.Put(t.Context(), tenant, fmt.Sprint("more", replica), daily(100), budgets.Condition{}); err != nil {
				t.Fatalf("Put: %v", err)
			}
		}
		work.Wait()
		b, err := r.Get(t.Context(), tenant, "all")
		if err != nil || b.SpentUSD != 320 {
			t.Errorf("Get: got %d spent, error %v, want 320", b.SpentUSD, err)
		}
	})
}
