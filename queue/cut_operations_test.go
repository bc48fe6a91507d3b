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
	"github.com/codesous/sous/storage/storagetest"
)

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

// cutEnqueue adds two jobs in one call, and one of them again by its unique key.
func cutEnqueue(change func(*api.NewJob)) cutOperation {
	return func(_ *testing.T, _ *fixture) (cutCall, cutDone) {
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
						t.Fatalf("GetQueue: %v", err)
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
				// A repeat makes new jobs. Those of the first call may exist, too.
				if indexed < 2+depending || indexed > 4+depending {
					t.Errorf("indexed jobs = %d, want %d to %d", indexed, 2+depending, 4+depending)
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
				t.Fatalf("SealBatch: %v", err)
			}
			for _, j := range f.fetch(t, 10) {
				f.ack(t, j, "")
			}
			if j, err := f.Get(t.Context(), f.tenant, batch.CallbackID); err != nil || j.State != api.JobPending {
				t.Errorf("Get of the callback = %+v, %v, want a pending job", j, err)
			}
			b, err := f.GetBatch(t.Context(), f.tenant, namespace, batch.ID)
			if err != nil || b.Pending != 0 || b.Total != b.Succeeded || b.Total < 2 {
				t.Errorf("GetBatch: got %+v, error %v, want at least 2 jobs, all succeeded", b, err)
			}
		}
}

// cutEnqueueAgain is a call with an idempotency key, repeated when its scheduled job is due.
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
				t.Errorf("got %d jobs, of which fetch returned %+v, want 2 and both", len(jobs), got)
			}
			f.tend(t)
			if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
				t.Fatalf("SealBatch: %v", err)
			}
			for id := range jobs {
				if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
					t.Fatalf("Cancel: %v", err)
				}
			}
			f.sound(t)
		}
}

func (f *fixture) batch(t testing.TB) *api.Batch {
	t.Helper()
	b, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: "callbacks", NewJob: job(`"done"`)})
	if err != nil {
		t.Fatalf("CreateBatch: %v", err)
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
			f.clock.advance(time.Minute) // jobs whose claim was interrupted are reclaimed
			f.settle(t)
			if got := f.fetch(t, 10); len(got) != 3 {
				t.Errorf("fetch: got %+v, want 3 jobs", got)
			}
		}
}

// cutClaimAgain claims jobs of which the first has run before.
func cutClaimAgain(t *testing.T, f *fixture) (cutCall, cutDone) {
	call, done := cutClaim(t, f)
	at := int64(0)
	f.fail(t, f.fetch(t, 1)[0], func(fail *api.JobFail) { fail.RetryAfterMS = &at })
	f.settle(t)
	return call, done
}

// followed adds a job whose end has all kinds of consequences, and returns its id.
func (f *fixture) followed(t testing.TB, change ...func(*api.NewJob)) string {
	t.Helper()
	batch := f.batch(t)
	id := f.add(t, job(`1`, append(change, inBatch(batch.ID), func(j *api.NewJob) {
		j.UniqueKey = "mine"
		j.Chain = &api.Chain{Steps: []api.ChainStep{{NewJob: job(`"step"`)}}, OnFailure: &api.ChainStep{NewJob: job(`"failed"`)}}
	})...))[0].ID
	f.add(t, job(`2`, func(j *api.NewJob) { j.DependsOn, j.OnDependencyFailure = []string{id}, api.DependencyContinue }))
	if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
		t.Fatalf("SealBatch: %v", err)
	}
	return id
}

// checkFollowed checks that the job ended in state, and that each consequence was handled once.
func checkFollowed(t *testing.T, id string, state api.JobState, jobs map[string]*stored) {
	t.Helper()
	if jobs[id].state != state {
		t.Errorf("got job with run %s, want state %s", jobs[id].run, state)
	}
	if len(jobs) != 4 {
		t.Errorf("got %d jobs %+v, want 4", len(jobs), jobs)
	}
	for other, j := range jobs {
		if other != id && j.state != api.JobPending {
			t.Errorf("job made by the end: got run %s, want state pending", j.run)
		}
	}
}

// first returns the first outcome as an error, nil if it is a success.
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
				t.Errorf(`got job %+v, want result 7`, got)
			}
		}
}

// cutAckPlain acknowledges a job without a result and without consequences.
func cutAckPlain(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.add(t, job(`1`))[0].ID
	j := f.fetch(t, 1)[0]
	return func(f *fixture) ([]string, error) {
			return nil, first(f.Ack(context.Background(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: j.LeaseEpoch}}))
		}, func(t *testing.T, _ *fixture, jobs map[string]*stored) {
			if state := jobs[id].state; state != api.JobCompleted {
				t.Errorf("got state %s, want completed", state)
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
					t.Errorf("got state %s, want pending or held", state)
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
					t.Errorf("got job %+v, want state %s with 1 error", got, state)
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
				t.Errorf("the run after the heartbeat = %s, want the extended lease", jobs[id].run)
			}
		}
}

func cutSteer(state api.JobState, steer func(f *fixture, id string) error) cutOperation {
	return func(t *testing.T, f *fixture) (cutCall, cutDone) {
		id := f.add(t, job(`1`, func(j *api.NewJob) { j.ExpireAtMS = f.clock.ms.Load() + 60_000 }))[0].ID
		return func(f *fixture) ([]string, error) { return nil, steer(f, id) },
			func(t *testing.T, _ *fixture, jobs map[string]*stored) {
				if jobs[id].state != state {
					t.Errorf("got job with run %s, want state %s", jobs[id].run, state)
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
				err = nil // it was retried before the interruption
			}
			return nil, err
		}, func(t *testing.T, f *fixture, _ map[string]*stored) {
			if got := f.fetch(t, 10); len(got) != 1 || got[0].ID != id {
				t.Errorf("fetch: got %+v, want job %s alone", got, id)
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
					t.Errorf("got job %+v, want state pending with 1 error", got)
				}
			}
	}
}

func cutDeleteBatch(t *testing.T, f *fixture) (cutCall, cutDone) {
	batch := f.batch(t)
	f.add(t, job(`1`, inBatch(batch.ID)))
	return func(f *fixture) ([]string, error) {
			err := f.DeleteBatch(context.Background(), f.tenant, namespace, batch.ID)
			if api.ErrorCode(err) == api.CodeBatchNotFound { // the call before has deleted it
				err = nil
			}
			return nil, err
		}, func(t *testing.T, f *fixture, jobs map[string]*stored) {
			if left := storagetest.Keys(t, f.store.Client(), f.store.JobKeys(f.tenant).Batch(batch.ID)+":*"); len(left) > 0 || len(jobs) != 1 {
				t.Errorf("got keys %v of the batch and %d jobs, want no key and 1 job", left, len(jobs))
			}
			if listed, _, err := f.ListBatches(t.Context(), f.tenant, namespace, "", 10); err != nil || len(listed) > 0 {
				t.Errorf("ListBatches: got %+v, error %v, want none", listed, err)
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
				t.Errorf("got jobs %+v, want 2, of which %s is pending: the callback", jobs, batch.CallbackID)
			}
		}
}

// cutChain ends a job whose chain has jobs for its failure and its exit.
func cutChain(t *testing.T, f *fixture) (cutCall, cutDone) {
	id := f.add(t, job(`1`, func(j *api.NewJob) {
		j.Hold, j.Chain = true, &api.Chain{OnFailure: &api.ChainStep{NewJob: job(`1`)}, OnExit: &api.ChainStep{Queue: "others", NewJob: job(`2`)}}
	}))[0].ID
	return func(f *fixture) ([]string, error) {
			_, err := f.Reject(context.Background(), f.tenant, id)
			if api.ErrorCode(err) == api.CodeJobState {
				err = nil // it was rejected before the interruption
			}
			return nil, err
		}, func(t *testing.T, _ *fixture, jobs map[string]*stored) {
			if len(jobs) != 3 || jobs[id].state != api.JobDead {
				t.Errorf("got jobs %+v, want 3, of which %s is dead", jobs, id)
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
					t.Errorf("job %s waits, want it released", id)
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
