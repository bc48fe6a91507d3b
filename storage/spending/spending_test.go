package spending_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/spending"
	"github.com/codesous/sous/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLimitOfPrices: a tenant with all prices can change and delete them, and set no other one.
func TestLimitOfPrices(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			s, tenant := storagetest.Open(t, backend.Config(t)), storagetest.Tenant(t)
			prices, err := spending.NewPrices(s)
			if err != nil {
				t.Fatalf("NewPrices: %v", err)
			}
			price := func(i int) agent.Price {
				return agent.Price{Provider: "p", Model: fmt.Sprint("m", i), InputUSD: agent.USD(i + 1), OutputUSD: agent.Dollar}
			}
			for i := range agent.MaxPrices {
				if err := prices.Put(t.Context(), tenant, price(i)); err != nil {
					t.Fatalf("Put %d: %v", i, err)
				}
			}
			if err := prices.Put(t.Context(), tenant, price(agent.MaxPrices)); api.ErrorCode(err) != api.CodeCapacityLimit {
				t.Errorf("Put of one more price: got %v, want CodeCapacityLimit", err)
			}
			if err := prices.Put(t.Context(), tenant, price(7)); err != nil {
				t.Errorf("Put of a price that exists: got %v, want no error", err)
			}
			found, err := prices.Delete(t.Context(), tenant, "p", "m7")
			if err != nil || !found {
				t.Errorf("Delete: got %v, error %v, want true", found, err)
			}
			if err := prices.Put(t.Context(), tenant, price(agent.MaxPrices)); err != nil {
				t.Errorf("Put after a deletion: got %v, want no error", err)
			}
			all, err := prices.List(t.Context(), tenant)
			if err != nil || len(all) != agent.MaxPrices {
				t.Errorf("List: got %d prices, error %v, want %d", len(all), err, agent.MaxPrices)
			}
		})
	}
}

// TestFiltersOfReports: each filter selects the rows with its name, and no others.
func TestFiltersOfReports(t *testing.T) {
	t.Parallel()
	s, tenant := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), storagetest.Tenant(t)
	cost := int64(1)
	fill := func(day int64, spender spending.Spender, provider, model string) {
		t.Helper()
		u := agent.USD(cost)
		rows := spending.Rows(spender, []agent.Usage{{Provider: provider, Model: model, InputTokens: cost, CostUSD: &u}})
		for _, row := range rows {
			text := ""
			for _, n := range row.Sums.Numbers() {
				text += fmt.Sprint(n, " ")
			}
			if err := s.Client().HSet(t.Context(), s.JobKeys(tenant).Spending(day), row.Field, text).Err(); err != nil {
				t.Fatalf("HSet: %v", err)
			}
		}
		cost *= 10
	}
	tags := func(name, value string) map[string]string { return map[string]string{name: value} }
	fill(5, spending.Spender{Namespace: "shop", Queue: "q1", Function: "f1", Tags: tags("customer", "c 1")}, "p1", "m1")
	fill(5, spending.Spender{Namespace: "shop", Queue: "q2", Function: "f2", Tags: tags("customer", "c|2")}, "p2", "m1")
	fill(5, spending.Spender{Namespace: "web", Queue: "q1", Tags: tags("team", "c 1")}, "p1", "m2")
	fill(6, spending.Spender{Namespace: "web", Queue: "q2", Function: "f1"}, "p2", "m2")
	for name, tt := range map[string]struct {
		q    spending.Query
		want agent.USD
	}{
		"all":          {spending.Query{}, 1111},
		"namespace":    {spending.Query{Group: agent.Group{Namespace: "shop"}}, 11},
		"queue":        {spending.Query{Group: agent.Group{Queue: "q1"}}, 101},
		"function":     {spending.Query{Group: agent.Group{Function: "f1"}}, 1001},
		"provider":     {spending.Query{Group: agent.Group{Provider: "p2"}}, 1010},
		"model":        {spending.Query{Group: agent.Group{Model: "m2"}}, 1100},
		"several":      {spending.Query{Group: agent.Group{Queue: "q2", Model: "m2"}}, 1000},
		"none":         {spending.Query{Group: agent.Group{Queue: "q"}}, 0},
		"tag":          {spending.Query{Group: agent.Group{Tag: "customer"}}, 11},
		"value":        {spending.Query{Group: agent.Group{Tag: "customer", TagValue: "c|2"}}, 10},
		"other tag":    {spending.Query{Group: agent.Group{Tag: "team", TagValue: "c 1"}}, 100},
		"tag of one":   {spending.Query{Group: agent.Group{Tag: "customer", Namespace: "web"}}, 0},
		"day":          {spending.Query{From: 6}, 1000},
		"key of shop":  {spending.Query{Namespaces: func(ns string) bool { return ns == "shop" }}, 11},
		"by tag alone": {spending.Query{By: []string{"tag"}}, 111},
	} {
		q := tt.q
		q.To = 6
		if q.From == 0 {
			q.From = 5
		}
		if q.Namespaces == nil {
			q.Namespaces = func(string) bool { return true }
		}
		report, err := spending.Report(t.Context(), s, tenant, q)
		if err != nil || report.Total.CostUSD != tt.want || report.Total.InputTokens != int64(tt.want) {
			t.Errorf("%s: got %+v, error %v, want %s", name, report, err, tt.want)
		}
	}
}
