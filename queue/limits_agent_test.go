package queue_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// ends counts the events of a type of a job.
func (f *fixture) ends(t *testing.T, id, kind string) (n int) {
	t.Helper()
	for _, e := range f.recorded(t) {
		if e.Subject == "jobs/"+id && e.Type == kind {
			n++
		}
	}
	return n
}

// TestLimitsEndAJob: each limit ends its job with its reason, once, and an operator's retry allows as
// much again.
func TestLimitsEndAJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, tt := range []struct {
			reason string
			limits agent.Options
			rounds int // which reach the limit
			usage  int64
		}{
			{agent.DeadIterations, agent.Options{MaxIterations: 3}, 3, 1},
			{agent.DeadCost, agent.Options{MaxCostUSD: 250}, 3, 100},
		} {
			id := f.add(t, agentJob(tt.limits))[0].ID
			for again := range 2 {
				for round := range tt.rounds {
					one := f.fetch(t, 1)[0]
					want := api.JobPending
					if round == tt.rounds-1 {
						want = api.JobDead
					}
					for range 2 { // a repeat
						if out := f.goOn(t, one, func(a *api.JobAck) { a.Usage = []agent.Usage{used(0, tt.usage)} }); !out.OK || out.State != want {
							t.Fatalf("%s: continue %d: got %+v, want success and state %s", tt.reason, round+1, out, want)
						}
					}
				}
				j := f.get(t, id)
				if j.DeadReason != tt.reason || j.Iteration != int64(tt.rounds*(again+1)) || j.Usage.CostUSD != agent.USD(int64(tt.rounds*(again+1))*tt.usage) {
					t.Errorf("job: got reason %q, iteration %d and usage %+v, want %s after %d", j.DeadReason, j.Iteration, j.Usage, tt.reason, tt.rounds*(again+1))
				}
				if got := f.ends(t, id, "job.dead"); got != again+1 {
					t.Errorf("%s: got %d events of the end, want %d", tt.reason, got, again+1)
				}
				if last := j.Attempts[len(j.Attempts)-1]; last.Outcome != api.AttemptContinued {
					t.Errorf("%s: got outcome %s of the last attempt, want continued", tt.reason, last.Outcome)
				}
				f.sound(t, id)
				if _, err := f.Retry(t.Context(), f.tenant, id); err != nil {
					t.Fatalf("Retry: %v", err)
				}
			}
			if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
				t.Fatalf("Cancel: %v", err)
			}
		}
	})
}

// TestAHeartbeatReachesTheCost: the worker is told that its lease is lost, and the job is held until it
// is approved, which allows as much again.
func TestAHeartbeatReachesTheCost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, agentJob(agent.Options{MaxCostUSD: 100, OnLimit: agent.OnLimitHold}))[0].ID
		for again := range 2 {
			one := f.fetch(t, 1)[0]
			if out := f.beat(t, one, used(1, 99)); !out.OK {
				t.Fatalf("heartbeat below the limit: got %+v, want success", out)
			}
			for range 2 {
				if out := f.beat(t, one, used(2, 1)); out.Code != api.CodeJobLeaseLost || out.State != api.JobHeld {
					t.Fatalf("heartbeat at the limit: got %+v, want CodeJobLeaseLost and state held", out)
				}
			}
			j := f.get(t, id)
			if !strings.Contains(j.HoldReason, "limit of 0.0001 USD") || j.Iteration != int64(again+1) {
				t.Errorf("job: got reason %q and iteration %d, want the limit and %d", j.HoldReason, j.Iteration, again+1)
			}
			if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
				t.Fatalf("Approve: %v", err)
			}
		}
		if got := f.iterations(t, id, 9); len(got) != 2 || got[1].Status != agent.IterationHeld || got[1].CostUSD != 100 || got[1].HoldReason == "" {
			t.Errorf("iterations: got %+v, want two that were held", got)
		}
		f.wantSpent(t, id, 200)
		one := f.fetch(t, 1)[0]
		out := f.fail(t, one, func(j *api.JobFail) { j.Usage = []agent.Usage{used(1, 100)} })
		if !out.OK || out.State != api.JobHeld {
			t.Errorf("fail at the limit: got %+v, want success and state held", out)
		}
		f.sound(t, id)
	})
}

// TestAnIterationTimesOut: no heartbeat extends the lease beyond the timeout, and whichever of a
// heartbeat, a fail, a continue or maintenance comes first then ends the job.
func TestAnIterationTimesOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const timeout = 10_000
		for name, late := range map[string]func(j api.FetchedJob) api.JobOutcome{
			"heartbeat":   func(j api.FetchedJob) api.JobOutcome { return f.beat(t, j) },
			"fail":        func(j api.FetchedJob) api.JobOutcome { return f.fail(t, j) },
			"continue":    func(j api.FetchedJob) api.JobOutcome { return f.goOn(t, j) },
			"maintenance": func(api.FetchedJob) api.JobOutcome { f.tend(t); return api.JobOutcome{} },
		} {
			id := f.add(t, agentJob(agent.Options{IterationTimeoutMS: timeout}))[0].ID
			start := f.clock.ms.Load()
			one := f.fetch(t, 1)[0]
			if one.LeaseExpiresMS != start+timeout {
				t.Errorf("%s: fetch: got a lease until %d, want the end of the iteration at %d", name, one.LeaseExpiresMS, start+timeout)
			}
			f.clock.advance(5 * time.Second)
			if out := f.beat(t, one); !out.OK || out.LeaseExpiresMS != start+timeout {
				t.Errorf("%s: heartbeat: got %+v, want a lease until the end of the iteration at %d", name, out, start+timeout)
			}
			f.clock.advance(5 * time.Second)
			for range 2 {
				late(one)
			}
			if j := f.get(t, id); j.State != api.JobDead || j.DeadReason != agent.DeadTimeout || f.ends(t, id, "job.dead") != 1 {
				t.Errorf("%s after the timeout: got state %s, reason %q and %d events of the end, want dead, iteration_timeout and one", name, j.State, j.DeadReason, f.ends(t, id, "job.dead"))
			}
			f.sound(t, id)
		}
	})
}

// cutLedger is more than the writes of any call of TestLedgersMayBeCut.
const cutLedger = 20

// TestLedgersMayBeCut interrupts calls with usage after each of their writes. What follows finds each
// entry counted once, by the job and by the day alike: a repeat, one with a further entry on the next
// day, or the report of another worker after the lease. A limit is reached once.
func TestLedgersMayBeCut(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	calls := map[string]func(f *fixture, j api.FetchedJob, usage ...agent.Usage) error{
		"continue": func(f *fixture, j api.FetchedJob, usage ...agent.Usage) error {
			return first(f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Continue: true, Checkpoint: json.RawMessage(`1`), Usage: usage}}))
		},
		"complete": func(f *fixture, j api.FetchedJob, usage ...agent.Usage) error {
			return first(f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Result: json.RawMessage(`1`), Usage: usage}}))
		},
		"fail": func(f *fixture, j api.FetchedJob, usage ...agent.Usage) error {
			return first(f.Fail(t.Context(), f.tenant, []api.JobFail{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "broke", RetryAfterMS: new(int64), Usage: usage}}))
		},
		"heartbeat": func(f *fixture, j api.FetchedJob, usage ...agent.Usage) error {
			return first(f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, LeaseMS: api.MaxLeaseMS, Usage: usage}}))
		},
	}
	cfg.Clock = whole.clock.now
	for k := range cutLedger {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		broken := brokerOn(t, storagetest.Open(t, cfg))
		for name, call := range calls {
			for _, after := range []string{"repeat", "more on the next day", "another worker"} {
				f := *whole
				f.tenant, f.crashed = storagetest.Tenant(t), true
				half := f
				half.Broker = broken
				f.cutLedger(t, k, name, after, call, &half)
			}
		}
	}
}

func (f *fixture) cutLedger(t *testing.T, k int, name, after string, call func(f *fixture, j api.FetchedJob, usage ...agent.Usage) error, half *fixture) {
	t.Helper()
	id := f.add(t, agentJob(agent.Options{MaxIterations: 2}))[0].ID
	jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1", Lease: 12 * time.Hour})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("Fetch: got %v, error %v, want one job", jobs, err)
	}
	err = call(half, jobs[0], used(1, 10))
	if err != nil && k == cutLedger-1 {
		t.Fatalf("%s: got an interruption after %d writes, want the call to end before: increase cutLedger", name, k)
	}
	want := agent.USD(10)
	switch after {
	case "repeat":
		err = call(f, jobs[0], used(1, 10))
	case "more on the next day":
		want = 11
		f.clock.advance(time.Duration(86_400_000-f.clock.ms.Load()%86_400_000) * time.Millisecond)
		err = call(f, jobs[0], used(1, 10), used(2, 1))
	case "another worker":
		f.clock.advance(13 * time.Hour)
		f.settle(t)
		err = nil
		for _, j := range f.fetch(t, 1) {
			err = call(f, j, used(1, 1))
			want = 11
		}
		if _, tenant := f.spentOf(t, id); tenant < want { // the interrupted report has not been counted, nor was it repeated
			want -= 10
		}
	}
	if err != nil {
		t.Errorf("%s, cut after %d writes, %s: %v", name, k, after, err)
	}
	f.wantSpent(t, id, want)
	for n, it := range f.iterations(t, id, 9) {
		if it.Iteration != int64(n+1) {
			t.Errorf("%s, cut after %d writes, %s: iteration at position %d: got number %d, want %d", name, k, after, n, it.Iteration, n+1)
		}
	}
	for range 4 { // to the limit
		f.settle(t)
		for _, j := range f.fetch(t, 1) {
			f.goOn(t, j)
		}
		f.clock.advance(13 * time.Hour)
	}
	if j := f.get(t, id); !j.State.Terminal() || j.State == api.JobDead && f.ends(t, id, "job.dead") > 2 {
		t.Errorf("%s, cut after %d writes, %s: got state %s, want an end", name, k, after, j.State)
	}
	f.sound(t, id)
}

// TestRacingContinuesReachALimitOnce: of many equal calls, one ends the job.
func TestRacingContinuesReachALimitOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, agentJob(agent.Options{MaxIterations: 1}))[0].ID
		one := f.fetch(t, 1)[0]
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if out := f.goOn(t, one, func(a *api.JobAck) { a.Usage = []agent.Usage{used(0, 1)} }); !out.OK || out.State != api.JobDead {
					t.Errorf("continue: got %+v, want success and state dead", out)
				}
			})
		}
		wg.Wait()
		if n := f.ends(t, id, "job.dead"); n != 1 {
			t.Errorf("got %d events of the end, want one", n)
		}
		if got := f.iterations(t, id, 9); len(got) != 1 || got[0].CostUSD != 1 {
			t.Errorf("iterations: got %+v, want one with one entry", got)
		}
	})
}
