package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/storagetest"
)

// limit returns settings with a limit of a day in millionths.
func limit(scope, target string, daily int64, change ...func(*budget.Settings)) budget.Settings {
	s := budget.Settings{Scope: scope, Target: target}
	if daily > 0 {
		u := agent.USD(daily)
		s.DailyUSD = &u
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func rejecting(s *budget.Settings) { s.OnExceed = budget.OnExceedReject }
func alerting(s *budget.Settings)  { s.OnExceed = budget.OnExceedAlert }

func perJob(micros int64) func(*budget.Settings) {
	u := agent.USD(micros)
	return func(s *budget.Settings) { s.PerJobUSD = &u }
}

func (f *fixture) budget(t testing.TB, name string, s budget.Settings) budget.Budget {
	t.Helper()
	b, _, err := f.Budgets().Put(t.Context(), f.tenant, name, s, budgets.Condition{})
	if err != nil {
		t.Fatalf("Put(%s): %v", name, err)
	}
	return b
}

func (f *fixture) budgetNow(t testing.TB, name string) budget.Budget {
	t.Helper()
	b, err := f.Budgets().Get(t.Context(), f.tenant, name)
	if err != nil {
		t.Fatalf("Get(%s): %v", name, err)
	}
	return b
}

// dueBudgets returns the due members of the tenant's budgets, at now.
func (f *fixture) dueBudgets(t testing.TB) (due []storage.DueMember) {
	t.Helper()
	for shard := range storage.DueShards {
		key := storage.KeyDue(shard)
		found, err := f.store.Client().ZRangeByScoreWithScores(t.Context(), key, &redis.ZRangeBy{Min: "-inf", Max: fmt.Sprint(f.clock.ms.Load())}).Result()
		if err != nil {
			t.Fatalf("ZRangeByScore: %v", err)
		}
		for _, z := range found {
			if m, _ := z.Member.(string); strings.HasPrefix(m, storage.DueBudgetPrefix+f.tenant+"/") {
				due = append(due, storage.DueMember{Key: key, Member: m, Score: int64(z.Score)})
			}
		}
	}
	return due
}

// tendBudgets does all due work of the tenant's budgets.
func (f *fixture) tendBudgets(t testing.TB) {
	t.Helper()
	for range 20 {
		due := f.dueBudgets(t)
		if len(due) == 0 {
			return
		}
		if _, err := f.TendBudgets(t.Context(), due, f.clock.ms.Load()); err != nil {
			t.Fatalf("TendBudgets: %v", err)
		}
		f.clock.advance(time.Millisecond)
	}
	t.Fatalf("TendBudgets: got members %v that stay due, want none", f.dueBudgets(t))
}

// tomorrow advances the clock to the reset of a budget.
func (f *fixture) tomorrow(t testing.TB, name string) {
	t.Helper()
	f.clock.advance(time.Duration(f.budgetNow(t, name).ResetsAtMS-f.clock.ms.Load()) * time.Millisecond)
}

// budgetEvents counts the events of a type of a budget.
func (f *fixture) budgetEvents(t testing.TB, name, kind string) (n int) {
	t.Helper()
	for _, e := range f.recorded(t) {
		if e.Subject == "budgets/"+name && e.Type == kind {
			n++
		}
	}
	return n
}

// TestABudgetHoldsItsJobs: at the limit the job that reports is held once, no other is handed out, and
// all continue after the reset, with their checkpoints and attempts.
func TestABudgetHoldsItsJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.budget(t, "day", limit(budget.ScopeQueue, namespace+"/"+emails, 100))
		ids := f.add(t, agentJob(agent.Options{}), agentJob(agent.Options{}), agentJob(agent.Options{}))
		jobs := f.fetch(t, 2)
		if out := f.beat(t, jobs[0], used(1, 60)); !out.OK {
			t.Fatalf("heartbeat below the limit: got %+v, want success", out)
		}
		out, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: jobs[1].ID, LeaseEpoch: 1, Checkpoint: []byte(`{"page":7}`), Usage: []agent.Usage{used(1, 40)}}})
		if err != nil || out[0].Code != api.CodeJobLeaseLost || out[0].State != api.JobHeld {
			t.Fatalf("heartbeat at the limit: got %+v, error %v, want CodeJobLeaseLost and state held", out, err)
		}
		if out := f.beat(t, jobs[1], used(1, 40)); out.State != api.JobHeld {
			t.Errorf("repeat of the heartbeat: got %+v, want state held", out)
		}
		j := f.get(t, jobs[1].ID)
		if !strings.HasPrefix(j.HoldReason, "budget day: the limit of 0.0001 USD a day is reached until 2025-10-10T00:00:00Z") || j.Iteration != 1 || j.Attempt != 0 {
			t.Errorf("held job: got reason %q, iteration %d and attempt %d, want that of the budget, 1 and 0", j.HoldReason, j.Iteration, j.Attempt)
		}
		if got := f.fetch(t, 5); len(got) != 0 {
			t.Errorf("fetch beyond the limit: got %+v, want none", got)
		}
		b := f.budgetNow(t, "day")
		if !b.Exceeded || b.SpentUSD != 100 || b.HeldJobs != 1 || b.Day != "2025-10-09" {
			t.Errorf("budget: got %+v, want it exceeded with 0.0001 USD and one held job", b)
		}
		// The other running job reports once more and is held as well, by a continue.
		if out := f.goOn(t, jobs[0], func(a *api.JobAck) { a.Usage = []agent.Usage{used(2, 30)} }); !out.OK || out.State != api.JobHeld {
			t.Errorf("continue beyond the limit: got %+v, want success and state held", out)
		}
		f.tendBudgets(t)
		if j := f.get(t, jobs[0].ID); j.State != api.JobHeld {
			t.Errorf("job before the reset: got state %s, want held", j.State)
		}
		f.tomorrow(t, "day")
		f.tendBudgets(t)
		got := f.fetch(t, 5)
		if len(got) != 3 {
			t.Fatalf("fetch after the reset: got %+v, want 3 jobs", got)
		}
		for _, g := range got {
			want := map[string]string{jobs[0].ID: `{"epoch":1}`, jobs[1].ID: `{"page":7}`}[g.ID]
			if string(g.Checkpoint) != want || g.Attempt != 1 {
				t.Errorf("job %s: got checkpoint %s and attempt %d, want %q and 1", g.ID, g.Checkpoint, g.Attempt, want)
			}
		}
		if b := f.budgetNow(t, "day"); b.Exceeded || b.SpentUSD != 0 || b.HeldJobs != 0 || b.Day != "2025-10-10" {
			t.Errorf("budget after the reset: got %+v, want nothing spent and no held job", b)
		}
		for kind, want := range map[string]int{event.BudgetExceeded: 1, event.BudgetReset: 1} {
			if n := f.budgetEvents(t, "day", kind); n != want {
				t.Errorf("events %s: got %d, want %d", kind, n, want)
			}
		}
		if got := f.get(t, jobs[1].ID).Attempts; len(got) != 2 || got[0].Outcome != api.AttemptHeld || got[1].Outcome != api.AttemptRunning {
			t.Errorf("attempts: got %+v, want one that was held and one that runs", got)
		}
		f.sound(t, ids[0].ID, ids[1].ID, ids[2].ID)
	})
}

// TestABudgetRejectsJobs: new jobs are refused with the time of the reset, and running ones die at their
// next report.
func TestABudgetRejectsJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.budget(t, "day", limit(budget.ScopeNamespace, namespace, 100, rejecting))
		id := f.add(t, job(`1`))[0].ID
		one := f.fetch(t, 1)[0]
		for range 2 {
			if out := f.beat(t, one, used(1, 101)); out.Code != api.CodeJobLeaseLost || out.State != api.JobDead {
				t.Fatalf("heartbeat at the limit: got %+v, want CodeJobLeaseLost and state dead", out)
			}
		}
		if j := f.get(t, id); j.DeadReason != budget.DeadBudget || len(j.Errors) != 1 || !strings.Contains(j.Errors[0].Error, "0.0001 USD a day") {
			t.Errorf("job: got reason %q and errors %+v, want budget and the limit", j.DeadReason, j.Errors)
		}
		_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`2`)}})
		var coded *api.Error
		left := time.Duration(f.budgetNow(t, "day").ResetsAtMS-f.clock.ms.Load()) * time.Millisecond
		if !errors.As(err, &coded) || coded.Code != api.CodeBudgetExceeded || coded.RetryAfter != left || !strings.Contains(coded.Message, "budget day: ") {
			t.Errorf("Enqueue: got %v, want CodeBudgetExceeded with %v", err, left)
		}
		if _, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: "others", Queue: emails, Jobs: []api.NewJob{job(`2`)}}); err != nil {
			t.Errorf("Enqueue to another namespace: got %v, want no error", err)
		}
		f.tomorrow(t, "day")
		f.add(t, job(`3`))
		f.sound(t, id)
	})
}

// TestABudgetAlerts: it changes no job, and there is one event a day.
func TestABudgetAlerts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.budget(t, "day", limit(budget.ScopeTenant, "", 100, alerting))
		f.add(t, job(`1`))
		one := f.fetch(t, 1)[0]
		for day := range int64(2) {
			for n := range int64(4) {
				if out := f.beat(t, one, used(10*day+n+1, 50)); !out.OK {
					t.Fatalf("heartbeat: got %+v, want success", out)
				}
			}
			if n := f.budgetEvents(t, "day", event.BudgetExceeded); n != int(day)+1 {
				t.Errorf("events after day %d: got %d, want %d", day+1, n, day+1)
			}
			f.tomorrow(t, "day")
		}
	})
}

// TestALimitOfEachJob: the job is held until it is approved, which allows as much again, or until the
// limit is raised; another job is not affected.
func TestALimitOfEachJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.budget(t, "job", limit(budget.ScopeTenant, "", 0, perJob(100)))
		id := f.add(t, job(`1`), job(`2`))[0].ID
		jobs := f.fetch(t, 2)
		slices.SortFunc(jobs, func(a, b api.FetchedJob) int { return strings.Compare(string(a.Payload), string(b.Payload)) })
		if out := f.beat(t, jobs[0], used(1, 100)); out.State != api.JobHeld {
			t.Fatalf("heartbeat at the limit: got %+v, want state held", out)
		}
		if out := f.beat(t, jobs[1], used(1, 99)); !out.OK {
			t.Fatalf("heartbeat of another job: got %+v, want success", out)
		}
		f.clock.advance(48 * time.Hour)
		f.tendBudgets(t)
		if j := f.get(t, id); j.State != api.JobHeld || !strings.HasPrefix(j.HoldReason, "budget job: the limit of 0.0001 USD for a job is reached") {
			t.Errorf("job two days later: got %s for %q, want it held by the budget", j.State, j.HoldReason)
		}
		if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Approve: %v", err)
		}
		again := f.fetch(t, 1)[0]
		if out := f.beat(t, again, used(1, 99)); !out.OK {
			t.Fatalf("heartbeat after the approval: got %+v, want success", out)
		}
		if out := f.beat(t, again, used(2, 1)); out.State != api.JobHeld {
			t.Fatalf("heartbeat at the limit after the approval: got %+v, want state held", out)
		}
		f.budget(t, "job", limit(budget.ScopeTenant, "", 0, perJob(50)))
		f.tendBudgets(t)
		if j := f.get(t, id); j.State != api.JobHeld {
			t.Errorf("job under a lower limit: got %s, want held", j.State)
		}
		f.budget(t, "job", limit(budget.ScopeTenant, "", 0, perJob(200)))
		f.tendBudgets(t)
		if j := f.get(t, id); j.State != api.JobPending {
			t.Errorf("job under a higher limit: got %s, want pending", j.State)
		}
		if n := f.budgetEvents(t, "job", event.BudgetExceeded); n != 2 {
			t.Errorf("events: got %d, want 2", n)
		}
	})
}

// TestABudgetOfATag: jobs with the tag are held when they are fetched, others run.
func TestABudgetOfATag(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.budget(t, "c1", limit(budget.ScopeTag, "customer=c1", 100))
		tagged := func(c string) api.NewJob {
			return job(`1`, func(j *api.NewJob) { j.Tags = map[string]string{"customer": c} })
		}
		added := f.add(t, tagged("c1"), tagged("c1"), tagged("c1"), tagged("c2"))
		first := f.fetch(t, 1)[0]
		if out := f.beat(t, first, used(1, 200)); out.State != api.JobHeld {
			t.Fatalf("heartbeat at the limit: got %+v, want state held", out)
		}
		got := f.fetch(t, 1)
		if len(got) != 1 || got[0].ID != added[3].ID {
			t.Fatalf("fetch: got %+v, want the job of another customer", got)
		}
		f.ack(t, got[0], "")
		for _, j := range added[:3] {
			if j := f.get(t, j.ID); j.State != api.JobHeld || !strings.HasPrefix(j.HoldReason, "budget c1: ") {
				t.Errorf("job %s: got %s for %q, want it held by the budget", j.ID, j.State, j.HoldReason)
			}
		}
		if b := f.budgetNow(t, "c1"); b.HeldJobs != 3 {
			t.Errorf("budget: got %d held jobs, want 3", b.HeldJobs)
		}
		f.tomorrow(t, "c1")
		f.tendBudgets(t)
		got = f.fetch(t, 5)
		if len(got) != 3 || got[0].Attempt != 1 || got[1].Attempt != 1 || got[2].Attempt != 1 {
			t.Errorf("fetch after the reset: got %+v, want three jobs in their first attempt", got)
		}
		f.sound(t, added[0].ID, added[1].ID, added[2].ID, added[3].ID)
	})
}

// TestChangesOfABudgetRelease: a higher limit, a deletion, another scope and an alert release what the
// budget held, and a lower limit does not.
func TestChangesOfABudgetRelease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(t *testing.T, f *fixture)
		want   api.JobState
	}{
		"raised": {func(t *testing.T, f *fixture) { f.budget(t, "day", limit(budget.ScopeTenant, "", 101)) }, api.JobPending},
		"lower":  {func(t *testing.T, f *fixture) { f.budget(t, "day", limit(budget.ScopeTenant, "", 50)) }, api.JobHeld},
		"deleted": {func(t *testing.T, f *fixture) {
			if err := f.Budgets().Delete(t.Context(), f.tenant, "day", nil); err != nil {
				t.Fatalf("Delete: %v", err)
			}
		}, api.JobPending},
		"scope":          {func(t *testing.T, f *fixture) { f.budget(t, "day", limit(budget.ScopeNamespace, "others", 100)) }, api.JobPending},
		"alert":          {func(t *testing.T, f *fixture) { f.budget(t, "day", limit(budget.ScopeTenant, "", 100, alerting)) }, api.JobPending},
		"no daily limit": {func(t *testing.T, f *fixture) { f.budget(t, "day", limit(budget.ScopeTenant, "", 0, perJob(1000))) }, api.JobPending},
		"held by an operator": {func(t *testing.T, f *fixture) {
			for _, id := range []string{f.held(t)} {
				if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
					t.Fatalf("Approve: %v", err)
				}
				if _, err := f.Hold(t.Context(), f.tenant, id, "look"); err != nil {
					t.Fatalf("Hold: %v", err)
				}
			}
			f.budget(t, "day", limit(budget.ScopeTenant, "", 1000))
		}, api.JobHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
			f.budget(t, "day", limit(budget.ScopeTenant, "", 100))
			id := f.add(t, job(`1`))[0].ID
			if out := f.beat(t, f.fetch(t, 1)[0], used(1, 100)); out.State != api.JobHeld {
				t.Fatalf("heartbeat at the limit: got %+v, want state held", out)
			}
			tt.change(t, f)
			f.tendBudgets(t)
			if j := f.get(t, id); j.State != tt.want {
				t.Errorf("job: got %s, want %s", j.State, tt.want)
			}
			if got := len(f.fetch(t, 1)); got == 1 != (tt.want == api.JobPending) {
				t.Errorf("fetch: got %d jobs, want one only if the job is pending", got)
			}
		})
	}
}

// held returns the one job that is held.
func (f *fixture) held(t testing.TB) string {
	t.Helper()
	for id, j := range f.jobs(t) {
		if j.state == api.JobHeld {
			return id
		}
	}
	t.Fatal("no job is held")
	return ""
}

// TestRacingWorkersOvershootByOneReportEach: 32 workers of two replicas fetch and report until no job is
// handed out. Beyond the limit, each spends at most one report.
func TestRacingWorkersOvershootByOneReportEach(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, backend.Config(t))
			const workers, report, most = 32, 10, 4_000
			f.budget(t, "day", limit(budget.ScopeQueue, namespace+"/"+emails, most))
			brokers := []*fixture{f, {Broker: brokerOn(t, f.store), store: f.store, clock: f.clock, tenant: f.tenant}}
			for range 4 {
				f.add(t, slices.Repeat([]api.NewJob{job(`1`)}, 32)...)
			}
			var reports, holds atomic.Int64
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					b := brokers[w%2]
					for {
						jobs, err := b.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: fmt.Sprint("w", w), Count: 1})
						if api.ErrorCode(err) == api.CodeOverloaded {
							continue
						}
						if err != nil {
							t.Errorf("Fetch: %v", err)
						}
						if len(jobs) == 0 {
							return
						}
						for seq := int64(1); ; seq++ {
							out := b.beat(t, jobs[0], used(seq, report))
							reports.Add(1)
							if out.State == api.JobHeld {
								holds.Add(1)
							}
							if !out.OK {
								break
							}
							if seq == 8 { // others begin meanwhile
								b.ack(t, jobs[0], "")
								break
							}
						}
					}
				})
			}
			wg.Wait()
			b := f.budgetNow(t, "day")
			if b.SpentUSD != agent.USD(report*reports.Load()) {
				t.Errorf("spent: got %s, want %d reports of %d millionths", b.SpentUSD, reports.Load(), report)
			}
			if b.SpentUSD < most || b.SpentUSD >= most+workers*report {
				t.Errorf("spent: got %d millionths, want from %d to less than %d", int64(b.SpentUSD), most, most+workers*report)
			}
			if b.HeldJobs != holds.Load() || holds.Load() > workers {
				t.Errorf("held jobs: got %d listed and %d told, want the same, at most %d", b.HeldJobs, holds.Load(), workers)
			}
			if n := f.budgetEvents(t, "day", event.BudgetExceeded); n != 1 {
				t.Errorf("events: got %d, want one", n)
			}
			_, tenant := f.spentOf(t, f.add(t, job(`1`))[0].ID)
			if tenant != b.SpentUSD {
				t.Errorf("spent: got %s by the budget and %s by the rows of the day, want the same", b.SpentUSD, tenant)
			}
		})
	}
}

// TestABudgetChangedMeanwhileDecides: a replica that knows an older budget, or an older sum, decides by
// the present ones all the same.
func TestABudgetChangedMeanwhileDecides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		other := &fixture{Broker: brokerOn(t, f.store), store: f.store, clock: f.clock, tenant: f.tenant}
		f.budget(t, "day", limit(budget.ScopeTenant, "", 100))
		f.add(t, job(`1`), job(`2`), job(`3`), job(`4`))
		jobs := f.fetch(t, 4)
		if out := other.beat(t, jobs[0], used(1, 90)); !out.OK { // both replicas know the budget
			t.Fatalf("heartbeat: got %+v, want success", out)
		}
		if out := f.beat(t, jobs[1], used(1, 9)); !out.OK { // the other does not know of this
			t.Fatalf("heartbeat: got %+v, want success", out)
		}
		if out := other.beat(t, jobs[0], used(2, 1)); out.State != api.JobHeld {
			t.Errorf("heartbeat by an older sum: got %+v, want state held", out)
		}
		f.budget(t, "day", limit(budget.ScopeTenant, "", 1000))
		if out := other.beat(t, jobs[2], used(1, 1)); !out.OK {
			t.Errorf("heartbeat by an older limit: got %+v, want success", out)
		}
		f.budget(t, "day", limit(budget.ScopeTenant, "", 50))
		if out := other.beat(t, jobs[2], used(2, 1)); out.State != api.JobHeld {
			t.Errorf("heartbeat by an older, higher limit: got %+v, want state held", out)
		}
		if err := f.Budgets().Delete(t.Context(), f.tenant, "day", nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if out := other.beat(t, jobs[3], used(1, 1)); !out.OK {
			t.Errorf("heartbeat by a deleted budget: got %+v, want success", out)
		}
	})
}

// TestARepeatedReportIsHeld: a report that was counted before, on another replica, is held beyond the
// limit, and counts nothing.
func TestARepeatedReportIsHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		other := &fixture{Broker: brokerOn(t, f.store), store: f.store, clock: f.clock, tenant: f.tenant}
		f.budget(t, "day", limit(budget.ScopeTenant, "", 100))
		f.add(t, job(`1`), job(`2`))
		jobs := f.fetch(t, 2)
		if out := other.beat(t, jobs[0], used(1, 60)); !out.OK {
			t.Fatalf("heartbeat: got %+v, want success", out)
		}
		f.beat(t, jobs[1], used(1, 40))
		if out := other.beat(t, jobs[0], used(1, 60)); out.State != api.JobHeld {
			t.Errorf("repeat: got %+v, want state held", out)
		}
		if b := f.budgetNow(t, "day"); b.SpentUSD != 100 || b.HeldJobs != 2 {
			t.Errorf("budget: got %+v, want 0.0001 USD and two held jobs", b)
		}
	})
}

// TestADayOfAZone: a day of a zone spans two days in UTC, and ends at its own midnight.
func TestADayOfAZone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		at := time.Date(2025, time.October, 25, 23, 30, 0, 0, time.UTC) // 1:30 of the 26th, which has 25 hours
		f.clock.ms.Store(at.UnixMilli())
		f.budget(t, "day", limit(budget.ScopeTenant, "", 100, func(s *budget.Settings) { s.Zone = "Europe/Berlin" }))
		f.add(t, job(`1`))
		one := f.fetch(t, 1)[0]
		spend := func(seq, micros, want int64, held bool) {
			t.Helper()
			if out := f.beat(t, one, used(seq, micros)); (out.State == api.JobHeld) != held || !held && !out.OK {
				t.Fatalf("heartbeat %d: got %+v, want it held: %v", seq, out, held)
			}
			if b := f.budgetNow(t, "day"); int64(b.SpentUSD) != want {
				t.Errorf("spent after report %d: got %d millionths, want %d", seq, int64(b.SpentUSD), want)
			}
		}
		spend(1, 60, 60, false)
		f.clock.advance(time.Hour) // the next day in UTC
		spend(2, 30, 90, false)
		f.clock.ms.Store(time.Date(2025, time.October, 26, 22, 59, 0, 0, time.UTC).UnixMilli())
		spend(3, 9, 99, false)
		f.clock.advance(time.Minute) // midnight in Berlin
		spend(4, 99, 99, false)
		f.clock.advance(2 * time.Hour)
		spend(5, 1, 100, true)
		if want := time.Date(2025, time.October, 27, 23, 0, 0, 0, time.UTC); f.budgetNow(t, "day").ResetsAtMS != want.UnixMilli() {
			t.Errorf("reset: got %d, want %s", f.budgetNow(t, "day").ResetsAtMS, want)
		}
		f.tomorrow(t, "day")
		f.tendBudgets(t)
		if got := f.fetch(t, 1); len(got) != 1 {
			t.Errorf("fetch after the reset: got %+v, want the job", got)
		}
	})
}

// TestUsageIsCountedByAllBudgets: of a job that ends, fails, or has lost its lease, too; of several
// budgets the strictest decides.
func TestUsageIsCountedByAllBudgets(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.budget(t, "all", limit(budget.ScopeTenant, "", 1000))
	f.budget(t, "queue", limit(budget.ScopeQueue, namespace+"/"+emails, 500, rejecting))
	f.budget(t, "other", limit(budget.ScopeQueue, namespace+"/other", 1))
	f.add(t, job(`1`), job(`2`))
	jobs := f.fetch(t, 2)
	out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: jobs[0].ID, LeaseEpoch: 1, Usage: []agent.Usage{used(0, 100)}}})
	if err != nil || !out[0].OK || out[0].State != api.JobCompleted {
		t.Fatalf("Ack: got %+v, error %v, want success", out, err)
	}
	f.beat(t, jobs[0], used(1, 10)) // its lease is over; the sequence is older
	f.fail(t, jobs[1], func(j *api.JobFail) { j.RetryAfterMS, j.Usage = new(int64), []agent.Usage{used(0, 200)} })
	for name, want := range map[string]agent.USD{"all": 300, "queue": 300, "other": 0} {
		if b := f.budgetNow(t, name); b.SpentUSD != want {
			t.Errorf("budget %s: got %s spent, want %s", name, b.SpentUSD, want)
		}
	}
	f.tend(t)
	again := f.fetch(t, 1)[0]
	if out := f.fail(t, again, func(j *api.JobFail) { j.Usage = []agent.Usage{used(0, 5000)} }); out.State != api.JobDead {
		t.Errorf("fail beyond both limits: got %+v, want state dead", out)
	}
	if j := f.get(t, again.ID); j.DeadReason != budget.DeadBudget {
		t.Errorf("job: got reason %q, want budget", j.DeadReason)
	}
}

// TestTenantsWithoutBudgetsCostNoCommand: within the time for which that is cached.
func TestTenantsWithoutBudgetsCostNoCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.add(t, job(`1`)) // all of this is cached afterwards
	key := f.store.JobKeys(f.tenant).Budgets()
	if err := f.store.Client().Set(t.Context(), key, "no hash", 0).Err(); err != nil {
		t.Fatalf("Set: %v", err)
	}
	f.add(t, job(`2`))
	one := f.fetch(t, 1)[0]
	if out := f.beat(t, one, used(1, 100)); !out.OK {
		t.Errorf("heartbeat: got %+v, want success", out)
	}
	f.clock.advance(6 * time.Second)
	if _, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1"}); err == nil {
		t.Error("Fetch after the cache has expired: got no error, want that of the damaged key")
	}
}
