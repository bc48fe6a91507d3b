package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const (
	// cutWrites is more than any script of the queue makes.
	cutWrites    = 12
	cutRetention = 5 * time.Minute
	// farAhead is a moment that no test of cuts comes to.
	farAhead = 1_790_000_000_000
)

// TestScriptsMayBeCutAfterAnyWrite ends every script after each of its writes, as
// a crash of KVRocks does. What is left is made sound by maintenance, whether the
// call is repeated or not, and a repeat succeeds.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	whole.Broker = brokerOn(t, whole.store, cutRetention)
	cfg.Clock = whole.clock.now
	for k := range cutWrites {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		broken := brokerOn(t, storagetest.Open(t, cfg), cutRetention)
		for name, op := range cutOperations {
			for _, repeat := range []bool{true, false} {
				f := *whole
				f.tenant, f.crashed = storagetest.Tenant(t), true
				t.Run(fmt.Sprintf("%s/%d/%v", strings.ReplaceAll(name, " ", "_"), k, repeat), func(t *testing.T) {
					cutOnce(t, op, &f, broken, repeat, k == cutWrites-1)
					f.empty(t)
				})
			}
		}
	}
}

// empty forgets all that a store of the test's own holds: the checks look for keys.
func (f *fixture) empty(t checker) {
	t.Helper()
	if err := f.store.Client().FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// cutOperation prepares, and gives the call to be cut and what holds once it has
// succeeded. The call names the jobs for which it had an answer.
type cutOperation func(t *testing.T, f *fixture) (call func(f *fixture) (accepted []string, err error), done func(t *testing.T, f *fixture, jobs map[string]*stored))

func cutOnce(t *testing.T, op cutOperation, f *fixture, broken *queue.Broker, repeat, uncut bool) {
	t.Helper()
	call, done := op(t, f)
	before := f.jobs(t)
	f.clock.advance(time.Millisecond)
	half := *f
	half.Broker = broken
	accepted, err := call(&half)
	switch {
	case err != nil && !strings.Contains(fmt.Sprint(err), "CUT") && !strings.Contains(fmt.Sprint(errorsOf(err)), "CUT"):
		t.Fatalf("it failed otherwise than by the cut: %v", err)
	case err != nil && uncut:
		t.Fatalf("it makes more than %d writes", cutWrites)
	}
	if err != nil && repeat {
		if accepted, err = call(f); err != nil {
			t.Fatalf("again after the cut: %v", err)
		}
	}
	for id := range before {
		accepted = append(accepted, id)
	}
	if done == nil { // it deletes
		f.soundIndexes(t, func(string) bool { return true })
	} else if jobs := f.sound(t, accepted...); err == nil {
		done(t, f, jobs)
	}
	f.leavesNothing(t)
}

// leavesNothing takes all jobs to their end, and finds that nothing a cut left
// behind outlives them.
func (f *fixture) leavesNothing(t *testing.T) {
	t.Helper()
	f.clock.advance(time.Hour) // leases and backoffs are over
	for range 5 {
		f.settle(t)
		for _, name := range f.queues(t) {
			q := strings.TrimPrefix(name, namespace+"/")
			jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{q}, WorkerID: "w1", Count: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobs {
				if out := f.ack(t, j, ""); !out.OK {
					t.Errorf("%+v", out)
				}
			}
		}
	}
	for _, key := range []string{"k", "mine"} {
		added := f.add(t, job(`1`, func(j *api.NewJob) { j.UniqueKey = key }))[0]
		f.settle(t)
		if got := f.fetch(t, 10); len(got) != 1 && (added.State != api.JobHeld && added.State != api.JobScheduled) || len(got) == 1 && (got[0].ID != added.ID || !f.ack(t, got[0], "").OK) {
			t.Errorf("of the unique key %q, %+v was added, and fetched %+v", key, added, got)
		}
	}
	for range 2 { // the end of what is cleared has followers of its own
		for _, name := range f.queues(t) {
			if _, err := f.Clear(t.Context(), f.tenant, namespace, strings.TrimPrefix(name, namespace+"/")); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.clock.advance(2 * cutRetention)
	f.settle(t)
	for _, name := range f.queues(t) {
		k := f.store.JobKeys(f.tenant).Queue(namespace, strings.TrimPrefix(name, namespace+"/"))
		for _, set := range append([]string{k.Expiry(), k.After()}, setsOf(k)...) {
			if left := f.members(t, set); len(left) > 0 && int64(left[0].Score) != farAhead {
				t.Errorf("%s still holds %v", set, left)
			}
		}
	}
}

func setsOf(k storage.QueueKeys) (sets []string) {
	for _, state := range api.JobStates() {
		sets = append(sets, k.Set(string(state)))
	}
	return sets
}

// errorsOf are the causes of err: messages alone do not name them.
func errorsOf(err error) (all []string) {
	for err != nil {
		all = append(all, err.Error())
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = u.Unwrap()
	}
	return all
}

var cutOperations = map[string]cutOperation{
	"enqueue": cutEnqueue(func(*api.NewJob) {}), "enqueue held": cutEnqueue(func(j *api.NewJob) { j.Hold = true }),
	"enqueue unique": cutEnqueue(func(j *api.NewJob) { j.UniqueKey = "k" }),
	"enqueue expiry": cutEnqueue(func(j *api.NewJob) { j.ExpireAtMS = farAhead }),
	"enqueue later":  cutEnqueue(func(j *api.NewJob) { j.RunAtMS = farAhead }),
	"enqueue unique waiting": func(t *testing.T, f *fixture) (func(*fixture) ([]string, error), func(*testing.T, *fixture, map[string]*stored)) {
		first := f.add(t, job(`0`))[0].ID
		return cutEnqueue(func(j *api.NewJob) { j.UniqueKey, j.DependsOn = "k", []string{first} })(t, f)
	},
	"enqueue in a batch": cutEnqueueInBatch, "enqueue again": cutEnqueueAgain, "claim": cutClaim,
	"ack": cutAck, "continue": cutPutBack(func(a *api.JobAck) { a.Continue = true }),
	"hold with a checkpoint": cutPutBack(func(a *api.JobAck) { a.Hold, a.Checkpoint = "why", json.RawMessage(`3`) }),
	"fail":                   cutFail(4, api.JobRetrying), "fail for good": cutFail(1, api.JobDead),
	"heartbeat": cutHeartbeat, "cancel": cutSteer(api.JobCancelled, func(f *fixture, id string) error {
		_, err := f.Cancel(context.Background(), f.tenant, id)
		return err
	}),
	"hold": cutSteer(api.JobHeld, func(f *fixture, id string) error {
		_, err := f.Hold(context.Background(), f.tenant, id, "why")
		return err
	}),
	"move": cutSteer(api.JobPending, func(f *fixture, id string) error {
		_, err := f.Move(context.Background(), f.tenant, id, "others")
		return err
	}),
	"retry": cutRetry, "delete": cutDelete, "reclaim": cutMaintain(true), "promote": cutMaintain(false),
	"seal": cutSeal, "chain": cutChain, "dependents": cutDependents, "clear": cutClear,
}

type (
	cutCall = func(*fixture) ([]string, error)
	cutDone = func(*testing.T, *fixture, map[string]*stored)
)

func idsOf(jobs []api.EnqueuedJob) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// cutEnqueue: two jobs in one call, and one of them again by its unique key.
func cutEnqueue(change func(*api.NewJob)) cutOperation {
	return func(_ *testing.T, f *fixture) (cutCall, cutDone) {
		return func(f *fixture) ([]string, error) {
				out, err := f.Enqueue(context.Background(), queue.Enqueue{
					Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`, change), job(`2`)},
				})
				return idsOf(out), err
			}, func(t *testing.T, f *fixture, jobs map[string]*stored) {
				indexed := 0
				for _, name := range f.queues(t) {
					q, err := f.GetQueue(t.Context(), f.tenant, namespace, strings.TrimPrefix(name, namespace+"/"))
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range q.Depths {
						indexed += int(n)
					}
				}
				depending := 0
				for _, j := range jobs {
					if len(j.DependsOn) > 0 {
						depending = 1
					}
				}
				// A repeat makes new jobs: beside them the first call's may be there.
				if indexed < 2+depending || indexed > 4+depending {
					t.Errorf("%d jobs are indexed", indexed)
				}
			}
	}
}

func cutEnqueueInBatch(t *testing.T, f *fixture) (cutCall, cutDone) {
	batch := f.batch(t)
	return func(f *fixture) ([]string, error) {
			out, err := f.Enqueue(context.Background(), queue.Enqueue{
				Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`, inBatch(batch.ID)), job(`2`, inBatch(batch.ID))},
			})
			return idsOf(out), err
		}, func(t *testing.T, f *fixture, _ map[string]*stored) {
			if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
				t.Fatal(err)
			}
			for _, j := range f.fetch(t, 10) {
				f.ack(t, j, "")
			}
			if j, err := f.Get(t.Context(), f.tenant, batch.CallbackID); err != nil || j.State != api.JobPending {
				t.Errorf("the callback: %+v %v", j, err)
			}
			b, err := f.GetBatch(t.Context(), f.tenant, namespace, batch.ID)
			if err != nil || b.Pending != 0 || b.Total != b.Succeeded || b.Total < 2 {
				t.Errorf("%+v %v", b, err)
			}
		}
}

// cutEnqueueAgain: a call under an idempotency key, repeated when the job that
// was to wait is due.
func cutEnqueueAgain(t *testing.T, f *fixture) (cutCall, cutDone) {
	runAt := f.clock.ms.Load() + 1000
	batch := f.batch(t)
	call := queue.Enqueue{
		Tenant: f.tenant, Namespace: namespace, Queue: emails, IdempotencyKey: "once",
		Jobs: []api.NewJob{job(`1`, inBatch(batch.ID), func(j *api.NewJob) { j.RunAtMS, j.UniqueKey = runAt, "k" }), job(`2`, inBatch(batch.ID))},
	}
	return func(f *fixture) ([]string, error) {
			out, err := f.Enqueue(context.Background(), call)
			f.clock.advance(2 * time.Second)
			return idsOf(out), err
		}, func(t *testing.T, f *fixture, jobs map[string]*stored) {
			if got := f.fetch(t, 10); len(got) != 2 || len(jobs) != 2 {
				t.Errorf("of %d jobs, fetched %+v", len(jobs), got)
			}
			f.tend(t)
			if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
				t.Fatal(err)
			}
			for id := range jobs {
				if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
					t.Fatal(err)
				}
			}
			f.sound(t)
		}
}

func (f *fixture) batch(t testing.TB) *api.Batch {
	t.Helper()
	b, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: "callbacks", NewJob: job(`"done"`)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func inBatch(id string) func(*api.NewJob) { return func(j *api.NewJob) { j.BatchID = id } }

func cutClaim(t *testing.T, f *fixture) (cutCall, cutDone) {
	f.add(t, job(`1`), job(`2`), job(`3`))
	return func(f *fixture) ([]string, error) {
			_, err := f.Fetch(context.Background(), queue.Fetch{
				Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1", Count: 2,
			})
			return nil, err
		}, func(t *testing.T, f *fixture, _ map[string]*stored) {
			f.clock.advance(time.Minute) // those that nobody got come back
			f.settle(t)
			if got := f.fetch(t, 10); len(got) != 3 {
				t.Errorf("fetched %+v", got)
			}
		}
}

// followed is a job whose end has every consequence there is.
func (f *fixture) followed(t testing.TB, change ...func(*api.NewJob)) string {
	t.Helper()
	batch := f.batch(t)
	id := f.add(t, job(`1`, append(change, inBatch(batch.ID), func(j *api.NewJob) {
		j.UniqueKey = "mine"
		j.Chain = &api.Chain{Steps: []api.ChainStep{{NewJob: job(`"step"`)}}, OnFailure: &api.ChainStep{NewJob: job(`"failed"`)}}
	})...))[0].ID
	f.add(t, job(`2`, func(j *api.NewJob) { j.DependsOn, j.OnDependencyFailure = []string{id}, api.DependencyContinue }))
	if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
		t.Fatal(err)
	}
	return id
}

// checkFollowed: the job ended so, and all that follows has come to be, once.
func checkFollowed(t *testing.T, id string, state api.JobState, jobs map[string]*stored) {
	t.Helper()
	if jobs[id].state != state {
		t.Errorf("the job is %s", jobs[id].run)
	}
	if len(jobs) != 4 {
		t.Errorf("there are %d jobs: %+v", len(jobs), jobs)
	}
	for other, j := range jobs {
		if other != id && j.state != api.JobPending {
			t.Errorf("what follows is %s", j.run)
		}
	}
}

// first is the first outcome, as an error where it is none of success.
func first(out []api.JobOutcome, err error) error {
	if err == nil && !out[0].OK {
		err = fmt.Errorf("%+v", out[0])
	}
	return err
}

func cutAck(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.followed(t)
	j := f.fetch(t, 1)[0]
	return func(f *fixture) ([]string, error) {
			return nil, first(f.Ack(context.Background(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: j.LeaseEpoch, Result: json.RawMessage(`7`)}}))
		}, func(t *testing.T, f *fixture, jobs map[string]*stored) {
			checkFollowed(t, id, api.JobCompleted, jobs)
			if got := f.get(t, id); string(got.Result) != "7" {
				t.Errorf("%+v", got)
			}
		}
}

func cutPutBack(change func(*api.JobAck)) cutOperation {
	return func(t *testing.T, f *fixture) (cutCall, cutDone) {
		id := f.add(t, job(`1`))[0].ID
		ack := api.JobAck{ID: id, LeaseEpoch: f.fetch(t, 1)[0].LeaseEpoch}
		change(&ack)
		return func(f *fixture) ([]string, error) {
				return nil, first(f.Ack(context.Background(), f.tenant, []api.JobAck{ack}))
			}, func(t *testing.T, _ *fixture, jobs map[string]*stored) {
				if state := jobs[id].state; state != api.JobPending && state != api.JobHeld {
					t.Errorf("the job is %s", state)
				}
			}
	}
}

func cutFail(attempts int, state api.JobState) cutOperation {
	return func(t *testing.T, f *fixture) (cutCall, cutDone) {
		id := f.followed(t, func(j *api.NewJob) { j.MaxAttempts = attempts })
		j := f.fetch(t, 1)[0]
		return func(f *fixture) ([]string, error) {
				return nil, first(f.Fail(context.Background(), f.tenant, []api.JobFail{{ID: id, LeaseEpoch: j.LeaseEpoch, Error: "broke"}}))
			}, func(t *testing.T, f *fixture, jobs map[string]*stored) {
				if got := f.get(t, id); len(got.Errors) != 1 || got.State != state {
					t.Errorf("%+v", got)
				}
				if state == api.JobDead {
					checkFollowed(t, id, state, jobs)
				}
			}
	}
}

func cutHeartbeat(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.add(t, job(`1`))[0].ID
	j := f.fetch(t, 1)[0]
	f.clock.advance(20 * time.Second)
	return func(f *fixture) ([]string, error) {
			return nil, first(f.Heartbeat(context.Background(), f.tenant, []api.JobHeartbeat{{ID: id, LeaseEpoch: j.LeaseEpoch, Checkpoint: json.RawMessage(`7`)}}))
		}, func(t *testing.T, f *fixture, _ map[string]*stored) {
			f.clock.advance(20 * time.Second)
			if jobs := f.sound(t); jobs[id].state != api.JobActive {
				t.Errorf("the lease was not kept: %s", jobs[id].run)
			}
		}
}

func cutSteer(state api.JobState, steer func(f *fixture, id string) error) cutOperation {
	return func(t *testing.T, f *fixture) (cutCall, cutDone) {
		id := f.add(t, job(`1`, func(j *api.NewJob) { j.ExpireAtMS = f.clock.ms.Load() + 60_000 }))[0].ID
		return func(f *fixture) ([]string, error) { return nil, steer(f, id) },
			func(t *testing.T, _ *fixture, jobs map[string]*stored) {
				if jobs[id].state != state {
					t.Errorf("the job is %s", jobs[id].run)
				}
			}
	}
}

func cutRetry(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.add(t, job(`1`, func(j *api.NewJob) { j.ExpireAtMS = f.clock.ms.Load() + 5 }))[0].ID
	f.clock.advance(time.Second)
	f.settle(t)
	return func(f *fixture) ([]string, error) {
			_, err := f.Retry(context.Background(), f.tenant, id)
			if api.ErrorCode(err) == api.CodeJobState {
				err = nil // it had been retried before the cut
			}
			return nil, err
		}, func(t *testing.T, f *fixture, _ map[string]*stored) {
			if got := f.fetch(t, 10); len(got) != 1 || got[0].ID != id {
				t.Errorf("fetched %+v", got)
			}
		}
}

func cutDelete(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.followed(t)
	return func(f *fixture) ([]string, error) {
		err := f.Delete(context.Background(), f.tenant, id)
		if api.ErrorCode(err) == api.CodeJobNotFound {
			err = nil
		}
		return nil, err
	}, nil
}

func cutMaintain(reclaim bool) cutOperation {
	return func(t *testing.T, f *fixture) (cutCall, cutDone) {
		id := f.add(t, job(`1`))[0].ID
		j := f.fetch(t, 1)[0]
		if !reclaim {
			f.fail(t, j)
		}
		f.clock.advance(time.Minute)
		return func(f *fixture) ([]string, error) {
				_, err := f.Tend(context.Background(), f.tenant, namespace, emails, f.clock.ms.Load())
				return nil, err
			}, func(t *testing.T, f *fixture, _ map[string]*stored) {
				if got := f.get(t, id); got.State != api.JobPending || len(got.Errors) != 1 {
					t.Errorf("%+v", got)
				}
			}
	}
}

func cutSeal(t *testing.T, f *fixture) (cutCall, cutDone) {
	batch := f.batch(t)
	f.add(t, job(`1`, inBatch(batch.ID)))
	f.ack(t, f.fetch(t, 1)[0], "")
	return func(f *fixture) ([]string, error) {
			_, err := f.SealBatch(context.Background(), f.tenant, namespace, batch.ID)
			return nil, err
		}, func(t *testing.T, _ *fixture, jobs map[string]*stored) {
			if len(jobs) != 2 || jobs[batch.CallbackID].state != api.JobPending {
				t.Errorf("%+v", jobs)
			}
		}
}

// cutChain: what a dead job's chain has.
func cutChain(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.add(t, job(`1`, func(j *api.NewJob) {
		j.Hold, j.Chain = true, &api.Chain{OnFailure: &api.ChainStep{NewJob: job(`1`)}, OnExit: &api.ChainStep{Queue: "others", NewJob: job(`2`)}}
	}))[0].ID
	return func(f *fixture) ([]string, error) {
			_, err := f.Reject(context.Background(), f.tenant, id)
			if api.ErrorCode(err) == api.CodeJobState {
				err = nil // it had been rejected before the cut
			}
			return nil, err
		}, func(t *testing.T, _ *fixture, jobs map[string]*stored) {
			if len(jobs) != 3 || jobs[id].state != api.JobDead {
				t.Errorf("%+v", jobs)
			}
		}
}

func cutDependents(t *testing.T, f *fixture) (cutCall, cutDone) {
	first := f.add(t, job(`1`))[0].ID
	return func(f *fixture) ([]string, error) {
			out, err := f.Enqueue(context.Background(), queue.Enqueue{
				Tenant: f.tenant, Namespace: namespace, Queue: emails,
				Jobs: []api.NewJob{job(`2`, func(j *api.NewJob) { j.DependsOn = []string{first} })},
			})
			return idsOf(out), err
		}, func(t *testing.T, f *fixture, jobs map[string]*stored) {
			f.ack(t, f.fetch(t, 1)[0], "")
			for id, j := range f.sound(t, slices.Collect(maps.Keys(jobs))...) {
				if id != first && j.state == api.JobWaiting {
					t.Errorf("%s still waits", id)
				}
			}
		}
}

func cutClear(t *testing.T, f *fixture) (cutCall, cutDone) {
	f.followed(t)
	return func(f *fixture) ([]string, error) {
		_, err := f.Clear(context.Background(), f.tenant, namespace, emails)
		return nil, err
	}, nil
}
