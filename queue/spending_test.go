package queue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/spending"
	"github.com/codesous/sous/storage/storagetest"
)

// used returns an entry of 10 tokens in, 1 out, and a cost in millionths of a dollar.
func used(seq, micros int64) agent.Usage {
	cost := agent.USD(micros)
	return agent.Usage{Seq: seq, Phase: "plan", Provider: "openai", Model: "m1", InputTokens: 10, OutputTokens: 1, CostUSD: &cost}
}

// spentOf returns the cost of a job and the sum of the costs of its tenant on the days of the clock.
func (f *fixture) spentOf(t testing.TB, id string) (job, tenant agent.USD) {
	t.Helper()
	if j := f.get(t, id); j.Usage != nil {
		job = j.Usage.CostUSD
	}
	today := spending.Day(f.clock.ms.Load())
	for day := today - 2; day <= today; day++ {
		rows, err := f.store.Client().HGetAll(t.Context(), f.store.JobKeys(f.tenant).Spending(day)).Result()
		if err != nil {
			t.Fatalf("HGetAll: %v", err)
		}
		for field, text := range rows {
			if strings.HasPrefix(field, "r|") {
				var n [7]int64
				if _, err := fmt.Sscan(text, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6]); err != nil {
					t.Fatalf("row %s = %q: %v", field, text, err)
				}
				tenant += agent.USD(n[4])
			}
		}
	}
	return job, tenant
}

func (f *fixture) wantSpent(t testing.TB, id string, want agent.USD) {
	t.Helper()
	if job, tenant := f.spentOf(t, id); job != want || tenant != want {
		t.Errorf("spent: got %s USD by the job and %s by the tenant, want %s by both", job, tenant, want)
	}
}

func (f *fixture) beat(t testing.TB, j api.FetchedJob, usage ...agent.Usage) api.JobOutcome {
	t.Helper()
	out, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Usage: usage}})
	if err != nil {
		t.Fatalf("Heartbeat: %v", err)
	}
	return out[0]
}

// TestUsageIsCountedOnce: every call takes usage, and a repeat of a call, or of its entries in a later
// one, counts nothing.
func TestUsageIsCountedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		one := f.fetch(t, 1)[0]
		for range 3 {
			if out := f.beat(t, one, used(1, 100), used(2, 10)); !out.OK || out.LeaseExpiresMS != f.clock.ms.Load()+api.DefaultLeaseMS {
				t.Fatalf("heartbeat: got %+v, want success and a lease of 30 s", out)
			}
		}
		f.wantSpent(t, id, 110)
		if out := f.beat(t, one, used(2, 10), used(3, 5)); !out.OK {
			t.Fatalf("heartbeat: got %+v, want success", out)
		}
		f.wantSpent(t, id, 115)
		for range 2 {
			f.fail(t, one, func(j *api.JobFail) {
				j.RetryAfterMS, j.Usage = new(int64), []agent.Usage{used(3, 5), used(4, 1000)}
			})
		}
		f.wantSpent(t, id, 1115)
		f.tend(t)
		two := f.fetch(t, 1)[0]
		for range 2 {
			f.goOn(t, two, func(a *api.JobAck) { a.Trace, a.Usage = nil, []agent.Usage{used(0, 2), used(0, 3)} })
		}
		f.wantSpent(t, id, 1120)
		three := f.fetch(t, 1)[0]
		for range 2 {
			f.goOn(t, three, func(a *api.JobAck) {
				a.Trace, a.Continue, a.Hold, a.Usage = nil, false, "why", []agent.Usage{used(0, 10_000)}
			})
		}
		if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Approve: %v", err)
		}
		four := f.fetch(t, 1)[0]
		for range 2 {
			out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: four.LeaseEpoch, Result: json.RawMessage(`7`), Usage: []agent.Usage{used(1, 100_000)}}})
			if err != nil || !out[0].OK || out[0].State != api.JobCompleted {
				t.Fatalf("Ack: got %+v, error %v, want success and state completed", out, err)
			}
		}
		f.wantSpent(t, id, 111_120)
		if j := f.get(t, id); string(j.Result) != "7" || j.Usage.InputTokens != 80 || j.Usage.OutputTokens != 8 || j.Usage.Entries != 8 || j.State != api.JobCompleted {
			t.Errorf("job: got %+v with usage %+v, want completed with result 7 and 8 entries", j, j.Usage)
		}
		if got := f.recorded(t); got[len(got)-1].Type != "job.completed" {
			t.Errorf("events: got %+v last, want job.completed", got[len(got)-1])
		}
		f.sound(t, id)
	})
}

// TestUsageOfALostLeaseIsCounted: the call is refused, but the money is spent. A lease that the job
// never had counts nothing.
func TestUsageOfALostLeaseIsCounted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		late := f.fetch(t, 1)[0]
		f.beat(t, late, used(1, 1))
		f.clock.advance(31 * time.Second)
		f.tend(t)
		for range 2 {
			if out := f.beat(t, late, used(1, 1), used(2, 10)); out.Code != api.CodeJobLeaseLost || out.State != api.JobPending {
				t.Errorf("heartbeat of a lost lease: got %+v, want CodeJobLeaseLost and state pending", out)
			}
		}
		other := f.fetch(t, 1)[0]
		f.beat(t, other, used(1, 100))
		for range 2 {
			out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: late.LeaseEpoch, Usage: []agent.Usage{used(3, 1000)}}})
			if err != nil || out[0].Code != api.CodeJobLeaseLost || out[0].State != api.JobActive {
				t.Errorf("ack of a lost lease: got %+v, error %v, want CodeJobLeaseLost and state active", out, err)
			}
		}
		ghost := other
		ghost.LeaseEpoch = 9
		if out := f.beat(t, ghost, used(1, 10_000)); out.Code != api.CodeJobLeaseLost {
			t.Errorf("heartbeat of a lease that never was: got %+v, want CodeJobLeaseLost", out)
		}
		f.wantSpent(t, id, 1111)
		f.ack(t, other, "")
		f.sound(t, id)
	})
}

// TestRacingReportsCountOnce: of many equal calls at the same time, on two replicas, one counts.
func TestRacingReportsCountOnce(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, backend.Config(t))
			brokers := []*fixture{f, {Broker: brokerOn(t, f.store), store: f.store, clock: f.clock, tenant: f.tenant}}
			ids := map[string]api.FetchedJob{}
			const jobs, rounds, racers = 4, 5, 4
			for range jobs {
				f.add(t, agentJob(agent.Options{}))
			}
			for _, j := range f.fetch(t, jobs) {
				ids[j.ID] = j
			}
			for round := range rounds {
				var wg sync.WaitGroup
				for _, j := range ids {
					for racer := range racers {
						wg.Go(func() {
							b := brokers[racer%2]
							_, err := b.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Usage: []agent.Usage{used(int64(round+1), 1)}}})
							if err != nil {
								t.Errorf("Heartbeat: %v", err)
							}
						})
					}
				}
				wg.Wait()
			}
			var wg sync.WaitGroup
			for _, j := range ids {
				for racer := range racers {
					wg.Go(func() {
						_, err := brokers[racer%2].Ack(t.Context(), f.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Continue: true, Usage: []agent.Usage{used(0, 1)}}})
						if err != nil {
							t.Errorf("Ack: %v", err)
						}
					})
				}
			}
			wg.Wait()
			_, tenant := f.spentOf(t, f.add(t, job(`1`))[0].ID)
			if want := agent.USD(jobs * (rounds + 1)); tenant != want {
				t.Errorf("spent by the tenant: got %s, want %s", tenant, want)
			}
			for id := range ids {
				if job, _ := f.spentOf(t, id); job != rounds+1 {
					t.Errorf("spent by a job: got %s, want %d millionths", job, rounds+1)
				}
				if got := f.iterations(t, id, 10); len(got) != 1 || got[0].CostUSD != rounds+1 || got[0].Status != agent.IterationContinued {
					t.Errorf("iterations: got %+v, want one with the cost of all entries", got)
				}
			}
		})
	}
}

// TestBadUsageIsRefused: an entry that cannot be counted exactly refuses its job, with the field.
func TestBadUsageIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.add(t, agentJob(agent.Options{}))
	one := f.fetch(t, 1)[0]
	many := make([]agent.Usage, agent.MaxEntries+1)
	for i := range many {
		many[i] = used(int64(i+1), 1)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", agent.MaxTraceBytes) + `"`)
	for name, tt := range map[string]struct {
		ack  api.JobAck
		code api.Code
		path string
	}{
		"negative tokens":  {api.JobAck{Usage: []agent.Usage{{Model: "m", InputTokens: -1}}}, api.CodeInvalid, "usage[0].input_tokens"},
		"too many tokens":  {api.JobAck{Usage: []agent.Usage{used(0, 1), {Model: "m", CacheReadTokens: agent.MaxTokens + 1}}}, api.CodeInvalid, "usage[1].cache_read_tokens"},
		"no model":         {api.JobAck{Usage: []agent.Usage{{}}}, api.CodeInvalid, "usage[0].model"},
		"blank":            {api.JobAck{Usage: []agent.Usage{{Model: "a b"}}}, api.CodeInvalid, "usage[0].model"},
		"other":            {api.JobAck{Usage: []agent.Usage{{Model: agent.Other}}}, api.CodeInvalid, "usage[0].model"},
		"long provider":    {api.JobAck{Usage: []agent.Usage{{Model: "m", Provider: strings.Repeat("p", 129)}}}, api.CodeInvalid, "usage[0].provider"},
		"negative cost":    {api.JobAck{Usage: []agent.Usage{used(0, -1)}}, api.CodeInvalid, "usage[0].cost_usd"},
		"sequence repeats": {api.JobAck{Usage: []agent.Usage{used(2, 1), used(2, 1)}}, api.CodeInvalid, "usage[1].seq"},
		"some sequences":   {api.JobAck{Usage: []agent.Usage{used(1, 1), used(0, 1)}}, api.CodeInvalid, "usage[1].seq"},
		"large sequence":   {api.JobAck{Usage: []agent.Usage{used(agent.MaxSequence+1, 1)}}, api.CodeInvalid, "usage[0].seq"},
		"too many":         {api.JobAck{Usage: many}, api.CodeInvalid, "usage"},
		"large trace":      {api.JobAck{Continue: true, Trace: large}, api.CodeBodyLimit, ""},
		"large result":     {api.JobAck{Continue: true, Result: large}, api.CodeBodyLimit, ""},
		"trace is no JSON": {api.JobAck{Continue: true, Trace: json.RawMessage(`{`)}, api.CodeInvalid, "trace"},
	} {
		tt.ack.ID, tt.ack.LeaseEpoch = one.ID, one.LeaseEpoch
		out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{tt.ack})
		if err != nil || out[0].Code != tt.code || !strings.HasPrefix(out[0].Message, tt.path) {
			t.Errorf("%s: got %+v, error %v, want %s for %s", name, out, err, tt.code, tt.path)
		}
	}
	if out := f.beat(t, one, used(0, 1)); out.Code != api.CodeInvalid || !strings.HasPrefix(out.Message, "usage[0].seq") {
		t.Errorf("heartbeat without a sequence: got %+v, want CodeInvalid for usage[0].seq", out)
	}
	f.wantSpent(t, one.ID, 0)
	for name, o := range map[string]agent.Options{
		"max_iterations": {MaxIterations: -1}, "max_cost_usd": {MaxCostUSD: -1}, "iteration_timeout_ms": {IterationTimeoutMS: 999}, "on_limit": {OnLimit: "stop"},
	} {
		bad := agentJob(o)
		err := bad.Validate(0)
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != api.CodeInvalid || coded.Fields[0].Path != "agent."+name {
			t.Errorf("agent with a bad %s: got %v, want CodeInvalid for that field", name, err)
		}
	}
}

// TestRacingReportsThatDifferAgree: of reports that differ and overtake each other, the job and the day
// count the same ones.
func TestRacingReportsThatDifferAgree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	id := f.add(t, job(`1`))[0].ID
	one := f.fetch(t, 1)[0]
	for round := range int64(20) {
		var wg sync.WaitGroup
		for racer := range int64(4) {
			wg.Go(func() {
				if out := f.beat(t, one, used(10*round+racer+1, 1+racer)); !out.OK {
					t.Errorf("heartbeat: got %+v, want success", out)
				}
			})
		}
		wg.Wait()
	}
	if job, tenant := f.spentOf(t, id); job != tenant || job == 0 {
		t.Errorf("spent: got %s USD by the job and %s by the tenant, want the same", job, tenant)
	}
}
