package queue_test

import (
	"testing"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/storage/spending"
)

// sums returns the rows of the present day of the tenant by queue and model, of jobs.
func (f *fixture) sums(t testing.TB) map[[2]string]agent.Sums {
	t.Helper()
	today := spending.Day(f.clock.ms.Load())
	report, err := spending.Report(t.Context(), f.store, f.tenant, spending.Query{
		From: today, To: today, By: []string{"queue", "model"}, Namespaces: func(string) bool { return true },
	})
	if err != nil {
		t.Fatalf("Report: %v", err)
	}
	out := map[[2]string]agent.Sums{}
	for _, g := range report.Groups {
		out[[2]string{g.Queue, g.Model}] = g.Sums
	}
	return out
}

// TestAFullDayCountsFurtherNamesTogether: with the last row, new names are counted under (other) in their
// namespace, and rows that exist go on.
func TestAFullDayCountsFurtherNamesTogether(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`))
		one := f.fetch(t, 1)[0]
		named := func(seq, micros int64, model string) agent.Usage {
			u := used(seq, micros)
			u.Model = model
			return u
		}
		if out := f.beat(t, one, named(1, 1, "known")); !out.OK {
			t.Fatalf("heartbeat: got %+v, want success", out)
		}
		day := f.store.JobKeys(f.tenant).Spending(spending.Day(f.clock.ms.Load()))
		if err := f.store.Client().HSet(t.Context(), day, "n", agent.MaxRows-1).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		for i, u := range []agent.Usage{named(2, 10, "last"), named(3, 100, "more"), named(4, 1000, "known"), named(5, 10_000, "last"), named(6, 100_000, "most")} {
			if out := f.beat(t, one, u); !out.OK {
				t.Fatalf("heartbeat %d: got %+v, want success", i, out)
			}
		}
		got := f.sums(t)
		for names, want := range map[[2]string]agent.USD{
			{emails, "known"}: 1001, {emails, "last"}: 10_010, {agent.Other, agent.Other}: 100_100,
		} {
			if got[names].CostUSD != want {
				t.Errorf("sum of %v: got %s, want %s", names, got[names].CostUSD, want)
			}
		}
		if len(got) != 3 {
			t.Errorf("groups: got %v, want 3", got)
		}
		n, err := f.store.Client().HGet(t.Context(), day, "n").Int()
		if err != nil || n != agent.MaxRows+1 {
			t.Errorf("rows: got %d, error %v, want %d and that of the other names", n, err, agent.MaxRows)
		}
	})
}
