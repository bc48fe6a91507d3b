package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestInterruptedReportsOfABudget interrupts a report that reaches the limit after each of its writes.
// The amount is counted once by the job and the budget, the job is held by the repeat, and it runs again
// after the reset.
func TestInterruptedReportsOfABudget(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	cfg.Clock = whole.clock.now
	for k := range cutLedger {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		broken := brokerOn(t, storagetest.Open(t, cfg))
		for _, after := range []string{"repeat", "another worker", "deleted"} {
			f := *whole
			f.tenant, f.crashed = storagetest.Tenant(t), true
			half := f
			half.Broker = broken
			f.cutBudget(t, &half, k, after)
		}
	}
}

func (f *fixture) cutBudget(t *testing.T, half *fixture, k int, after string) {
	t.Helper()
	what := fmt.Sprintf("cut after %d writes, %s", k, after)
	f.budget(t, "day", limit(budget.ScopeTenant, "", 100))
	id := f.add(t, agentJob(agent.Options{}))[0].ID
	jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1", Lease: time.Hour})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("Fetch: got %v, error %v, want one job", jobs, err)
	}
	_, err = half.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: id, LeaseEpoch: jobs[0].LeaseEpoch, LeaseMS: 3_600_000, Usage: []agent.Usage{used(1, 100)}}})
	if err != nil && k == cutLedger-1 {
		t.Fatalf("got an interruption after %d writes, want the call to end before: increase cutLedger", k)
	}
	switch after {
	case "repeat":
		if out := f.beat(t, jobs[0], used(1, 100)); out.Code != api.CodeJobLeaseLost || out.State != api.JobHeld {
			t.Errorf("%s: heartbeat: got %+v, want CodeJobLeaseLost and state held", what, out)
		}
		if b := f.budgetNow(t, "day"); b.SpentUSD != 100 || b.HeldJobs != 1 {
			t.Errorf("%s: budget: got %+v, want 0.0001 USD and one held job", what, b)
		}
		f.wantSpent(t, id, 100)
	case "another worker":
		f.clock.advance(2 * time.Hour)
		f.settle(t)
		for _, j := range f.fetch(t, 1) { // the interrupted report was not counted
			if out := f.beat(t, j, used(1, 100)); out.State != api.JobHeld {
				t.Errorf("%s: heartbeat: got %+v, want state held", what, out)
			}
		}
		if b := f.budgetNow(t, "day"); b.SpentUSD != 100 {
			t.Errorf("%s: budget: got %+v, want 0.0001 USD", what, b)
		}
	case "deleted":
		if err := f.Budgets().Delete(t.Context(), f.tenant, "day", nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		f.tendBudgets(t)
		if out := f.beat(t, jobs[0], used(1, 100)); !out.OK && out.State != api.JobPending {
			t.Errorf("%s: heartbeat: got %+v, want success, or the job released", what, out)
		}
		f.wantSpent(t, id, 100)
		f.budget(t, "day", limit(budget.ScopeTenant, "", 100))
	}
	f.tomorrow(t, "day")
	f.tendBudgets(t)
	f.clock.advance(2 * time.Hour) // the lease of a job that was not held
	f.settle(t)
	if got := f.fetch(t, 1); len(got) != 1 {
		t.Errorf("%s: fetch after the reset: got %+v, want the job", what, got)
	}
	if b := f.budgetNow(t, "day"); b.HeldJobs != 0 {
		t.Errorf("%s: budget after the reset: got %d held jobs, want none", what, b.HeldJobs)
	}
	f.sound(t, id)
}

// TestInterruptedVisitsRelease interrupts the visit that releases a job after each write of its scripts.
func TestInterruptedVisitsRelease(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	cfg.Clock = whole.clock.now
	for k := range 8 {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		broken := brokerOn(t, storagetest.Open(t, cfg))
		f := *whole
		f.tenant, f.crashed = storagetest.Tenant(t), true
		f.budget(t, "day", limit(budget.ScopeTenant, "", 100))
		id := f.add(t, job(`1`))[0].ID
		if out := f.beat(t, f.fetch(t, 1)[0], used(1, 100)); out.State != api.JobHeld {
			t.Fatalf("heartbeat: got %+v, want state held", out)
		}
		f.tomorrow(t, "day")
		_, _ = broken.TendBudgets(t.Context(), f.dueBudgets(t), f.clock.ms.Load()) // may be interrupted
		f.clock.advance(11 * time.Second)
		f.tendBudgets(t)
		if got := f.fetch(t, 1); len(got) != 1 || got[0].ID != id {
			t.Errorf("cut after %d writes: fetch: got %+v, want the job", k, got)
		}
		if b := f.budgetNow(t, "day"); b.HeldJobs != 0 {
			t.Errorf("cut after %d writes: budget: got %d held jobs, want none", k, b.HeldJobs)
		}
		f.sound(t, id)
	}
}
