package platformtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/invoker/models/modelstest"
	"github.com/codesous/sous/storage/storagetest"
)

const (
	agentRuns  = 500
	agentSteps = 10
	// agentSlots is how many runs a replica has at once.
	agentSlots = 8
	// callCost is the cost of a call of a model.
	callCost = agent.Dollar / 1000
	// agentBudget is reached in the midst of the first steps.
	agentBudget = 3 * agentRuns * callCost
)

// agentSource asks a model in each of its steps, and waits for an event and for an approval.
const agentSource = `export default async () => {
  const out = [];
  for (let i = 0; i < 10; i++) {
    if (i === 4) await cs.waitForEvent("go", { timeout: "10m" });
    if (i === 7 && !(await cs.waitForApproval({ message: "go on?", timeout: "10m" })).approved) throw new Error("rejected");
    out.push(await cs.step("s" + i, async () =>
      (await cs.ai.chat({ messages: [{ role: "user", content: cs.job.id + " s" + i }] })).text, { retry: { maxAttempts: 1 } }));
  }
  return out;
};`

// counted is a model that answers each call with a number of its own, and keeps the numbers by the
// run and the step that asked.
type counted struct {
	mu    sync.Mutex
	calls int
	by    map[string][]string
}

func (c *counted) answer(w http.ResponseWriter, r *modelstest.Request) {
	raw, _ := json.Marshal(r.Body["messages"]) // it came as JSON
	var messages []struct{ Content string }
	_ = json.Unmarshal(raw, &messages) // a strange message has no step
	c.mu.Lock()
	c.calls++
	text := fmt.Sprint(c.calls)
	for _, m := range messages {
		c.by[m.Content] = append(c.by[m.Content], text)
	}
	c.mu.Unlock()
	modelstest.Text(1, 0, text)(w, r)
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// agents are two replicas with runs of agentSource, of which the second is killed again and again.
type agents struct {
	*asyncLayout

	model  *counted
	tenant *client.Tenant
	budget budget.Budget
	ids    []string
	kills  int
}

func startAgents(t *testing.T) *agents {
	t.Helper()
	a := &agents{asyncLayout: &asyncLayout{store: storagetest.Redis(t, "--appendonly", "yes").URL}, model: &counted{by: map[string][]string{}}}
	for i := range a.replicas {
		a.replicas[i] = a.serve(t)
	}
	a.tenant = a.replicas[0].API(t)
	fake := modelstest.New(t, a.model.answer)
	_, err := a.tenant.PutProvider(t.Context(), "main", ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: fake.URL + "/v1", Models: []string{"m1"}}, 0)
	_, priced := a.tenant.PutPrice(t.Context(), agent.Price{Provider: "main", Model: "m1", InputUSD: 1_000_000 * callCost})
	daily := agentBudget
	settings := budget.Settings{Scope: budget.ScopeFunction, Target: platformtest.Namespace + "/work", DailyUSD: &daily, Zone: zoneAtNoon()}
	var limited error
	a.budget, limited = a.tenant.PutBudget(t.Context(), "all", settings, 0)
	if err := errors.Join(err, priced, limited); err != nil {
		t.Fatalf("provider, price and budget: %v", err)
	}
	a.replicas[0].Publish(t, "work", fmt.Sprintf(`{"timeout_ms": 20000, "memory_mb": 16, "max_concurrency": %d, "retry": {"max_attempts": 20, "backoff": "none"},
		"capabilities": {"ai": {"providers": ["main"]}}}`, agentSlots), map[string]string{"function.js": agentSource})
	return a
}

// zoneAtNoon returns a zone in which the day does not end for some hours.
func zoneAtNoon() string {
	if hour := time.Now().UTC().Hour(); hour >= 12 {
		return "Etc/GMT+12"
	}
	return "UTC"
}

func (a *agents) serve(t *testing.T) *platformtest.Server {
	t.Helper()
	return platformtest.Serve(t, a.store, "--sandbox-memory-budget", "8192", "--egress-allow", "loopback")
}

// killAt kills the second replica when the model has had so many calls, and starts another.
func (a *agents) killAt(t *testing.T, calls int) {
	t.Helper()
	platformtest.Eventually(t, 120*time.Second, fmt.Sprint("the model has had ", calls, " calls"), func() error {
		if n := a.model.count(); n < calls {
			return fmt.Errorf("got %d", n)
		}
		return nil
	})
	if err := a.replicas[1].Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	a.kills++
	a.replicas[1] = a.serve(t)
}

// each makes a call for each run, for several at once.
func (a *agents) each(t *testing.T, call string, f func(id string) error) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(8)
	for _, id := range a.ids {
		all.Go(func() error { return f(id) })
	}
	if err := all.Wait(); err != nil {
		t.Fatalf("%s of each run: got error %v, want none", call, err)
	}
}

// exceeded waits until the budget has stopped all runs, and checks how far they went beyond it: the
// report that reached it, and one of each run that was in progress.
func (a *agents) exceeded(t *testing.T) {
	t.Helper()
	platformtest.Eventually(t, 120*time.Second, "the budget stops the runs", func() error {
		b, err := a.tenant.Budget(t.Context(), a.budget.Name)
		if err != nil || !b.Exceeded {
			return errors.Join(err, fmt.Errorf("got %+v", b))
		}
		q, err := a.tenant.Namespace(platformtest.Namespace).Queue("fn.work").Get(t.Context())
		if err != nil || q.Depths[api.JobActive] > 0 {
			return errors.Join(err, fmt.Errorf("got %+v", q.Depths))
		}
		return nil
	})
	b, err := a.tenant.Budget(t.Context(), a.budget.Name)
	if bound := agentBudget + (2*agentSlots+1)*callCost; err != nil || b.SpentUSD < agentBudget || b.SpentUSD > bound {
		t.Errorf("got %v spent and error %v, want at least %v and at most %v", b.SpentUSD, err, agentBudget, bound)
	}
	more := 100 * agent.Dollar
	b.DailyUSD = &more
	if _, err := a.tenant.PutBudget(t.Context(), b.Name, b.Settings, b.Revision); err != nil {
		t.Fatalf("PutBudget: %v", err)
	}
}

// inState waits until all runs are in a state.
func (a *agents) inState(t *testing.T, state api.JobState) {
	t.Helper()
	platformtest.Eventually(t, 180*time.Second, fmt.Sprint("all runs are ", state), func() error {
		for _, id := range a.ids {
			j, err := a.tenant.Job(t.Context(), id)
			if err != nil || j.State != state {
				return errors.Join(err, fmt.Errorf("run %s is %s", id, j.State))
			}
		}
		return nil
	})
}

// TestKilledAgentsSpendOnce: whatever is killed, each run ends, no step with a recorded result runs
// again, each amount is counted once, and a budget is exceeded by no more than its bound.
func TestKilledAgentsSpendOnce(t *testing.T) {
	t.Parallel()
	a := startAgents(t)
	a.ids = a.enqueue(t, a.replicas[0], agentRuns)
	a.killAt(t, agentRuns/2)
	a.killAt(t, 3*agentRuns/2)
	a.exceeded(t)
	a.killAt(t, 7*agentRuns/2)
	a.inState(t, api.JobScheduled)
	a.each(t, "SendRunEvent", func(id string) error { return a.tenant.SendRunEvent(t.Context(), id, "go", nil) })
	a.killAt(t, 11*agentRuns/2)
	a.inState(t, api.JobHeld)
	a.each(t, "DecideJob", func(id string) error { _, err := a.tenant.DecideJob(t.Context(), id, true, "fine"); return err })
	a.killAt(t, 17*agentRuns/2)
	a.inState(t, api.JobCompleted)
	a.check(t)
}

// check compares the records of the runs and the sums with the calls of the model.
func (a *agents) check(t *testing.T) {
	t.Helper()
	var mu sync.Mutex
	var ledgers agent.USD
	a.each(t, "Run", func(id string) error {
		run, err := a.tenant.Run(t.Context(), id)
		j, other := a.tenant.Job(t.Context(), id)
		if err := errors.Join(err, other); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		ledgers += j.Usage.CostUSD
		a.checkRun(t, &run)
		return nil
	})
	calls := agent.USD(a.model.count()) * callCost
	report, err := a.tenant.Spending(t.Context(), client.SpendingOptions{})
	b, other := a.tenant.Budget(t.Context(), a.budget.Name)
	if err := errors.Join(err, other); err != nil {
		t.Fatalf("Spending and Budget: %v", err)
	}
	if report.Total.CostUSD != ledgers || b.SpentUSD != ledgers {
		t.Errorf("got %v in the sums of the tenant and %v in the budget, want %v, as in the ledgers", report.Total.CostUSD, b.SpentUSD, ledgers)
	}
	recorded, lost := agent.USD(agentRuns*agentSteps)*callCost, agent.USD(a.kills*agentSlots)*callCost
	if ledgers < recorded || ledgers > calls || ledgers < calls-lost {
		t.Errorf("got %v counted, want between %v of the recorded steps and %v of the calls, and at most %v less than those", ledgers, recorded, calls, lost)
	}
	t.Logf("%d calls for %d steps, %v counted", a.model.count(), agentRuns*agentSteps, ledgers)
}

// checkRun checks that each step has the result of the last call for it: no call followed its record.
func (a *agents) checkRun(t *testing.T, run *step.Run) {
	t.Helper()
	steps := 0
	for _, r := range run.Steps {
		if r.Kind != step.KindStep {
			continue
		}
		steps++
		var recorded string
		if err := json.Unmarshal(r.Result, &recorded); err != nil {
			t.Fatalf("run %s, step %s: %v", run.ID, r.Name, err)
		}
		a.model.mu.Lock()
		calls := a.model.by[run.ID+" "+r.Name]
		a.model.mu.Unlock()
		if at := slices.Index(calls, recorded); at < 0 || at != len(calls)-1 {
			t.Errorf("run %s, step %s: got the result of call %d of %d, want that of the last", run.ID, r.Name, at+1, len(calls))
		}
	}
	if steps != agentSteps || len(run.Steps) != agentSteps+2 {
		t.Errorf("run %s: got %d steps of %d records, want %d of %d", run.ID, steps, len(run.Steps), agentSteps, agentSteps+2)
	}
}
