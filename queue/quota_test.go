package queue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/quotas/quotastest"
)

func text(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }

// The callback of a batch counts as a job, and with its bytes, when the batch is created: batches
// that are sealed and deleted at once make no jobs beyond the quotas.
func TestCallbacksOfBatchesAreLimited(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limits quota.TenantLimits
		want   api.Code
	}{
		"jobs":  {quota.TenantLimits{Jobs: 5}, api.CodeTenantQuota},
		"bytes": {quota.TenantLimits{JobBytes: 500_000}, api.CodeTenantRate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) {
				quotastest.Limit(t, f.store, test.limits)
				for i := range 20 {
					batch, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: emails, NewJob: api.NewJob{Payload: text(100_000)}})
					if err != nil {
						if api.ErrorCode(err) != test.want || i == 0 {
							t.Errorf("batch %d: got error %v, want code %s after some", i, err, test.want)
						}
						return
					}
					if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
						t.Fatalf("SealBatch: %v", err)
					}
					if err := f.DeleteBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
						t.Fatalf("DeleteBatch: %v", err)
					}
				}
				t.Errorf("20 batches with callbacks: got no error, want code %s", test.want)
			})
		})
	}
}

// All that is stored with jobs counts: results, checkpoints, and the steps of chains as often as
// they are stored.
func TestBytesOfJobsAreLimited(t *testing.T) {
	t.Parallel()
	const most, many = 1 << 20, 40
	steps := make([]api.ChainStep, 30)
	for i := range steps {
		steps[i].Payload = text(1000)
	}
	for name, store := range map[string]func(t *testing.T, f *fixture, j api.FetchedJob) error{
		"results": func(t *testing.T, f *fixture, j api.FetchedJob) error {
			_, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Result: text(100_000)}})
			return err
		},
		"checkpoints": func(t *testing.T, f *fixture, j api.FetchedJob) error {
			_, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Checkpoint: text(100_000)}})
			return err
		},
		"chains": func(t *testing.T, f *fixture, _ api.FetchedJob) error {
			chained := job(`1`)
			chained.Chain = &api.Chain{Steps: steps}
			_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: "chains", Jobs: []api.NewJob{chained}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f *fixture) {
				quotastest.Limit(t, f.store, quota.TenantLimits{JobBytes: most})
				for range many {
					f.add(t, job(`1`))
				}
				stored := 0
				for _, j := range f.fetch(t, many) {
					err := store(t, f, j)
					if err != nil {
						if api.ErrorCode(err) != api.CodeTenantRate || stored == 0 {
							t.Errorf("after %d: got error %v, want code %s after some", stored, err, api.CodeTenantRate)
						}
						return
					}
					stored++
				}
				t.Errorf("%d were stored, want a refusal with code %s", stored, api.CodeTenantRate)
			})
		})
	}
}

// A call that is refused, and a duplicate, leave nothing with the jobs that they would depend on.
func TestRefusedJobsLeaveNoDependents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		root := f.add(t, job(`0`))[0].ID
		dependent := func(change ...func(*api.NewJob)) api.NewJob {
			return job(`1`, append(change, func(j *api.NewJob) { j.DependsOn = []string{root} })...)
		}
		unique := func(j *api.NewJob) { j.UniqueKey = "k" }
		first := f.add(t, dependent(unique))[0].ID
		if again := f.add(t, dependent(unique))[0]; !again.Duplicate {
			t.Fatalf("a job with a unique key that is held: got %+v, want a duplicate", again)
		}
		sealed := f.batch(t)
		if _, err := f.SealBatch(t.Context(), f.tenant, namespace, sealed.ID); err != nil {
			t.Fatalf("SealBatch: %v", err)
		}
		draining := true
		if _, err := f.Configure(t.Context(), f.tenant, namespace, "drained", queue.Change{Draining: &draining}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		missing := func(j *api.NewJob) { j.DependsOn = append(j.DependsOn, api.NewJobID()) }
		for _, refused := range []struct {
			queue string
			key   string
			jobs  []api.NewJob
			want  api.Code
		}{
			{"drained", "", []api.NewJob{dependent()}, api.CodeQueueDraining},
			{"drained", "key", []api.NewJob{dependent()}, api.CodeQueueDraining},
			{emails, "", []api.NewJob{dependent(inBatch(sealed.ID))}, api.CodeBatchSealed},
			{emails, "", []api.NewJob{dependent(), job(`2`, missing)}, api.CodeJobNotFound},
		} {
			_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: refused.queue, IdempotencyKey: refused.key, Jobs: refused.jobs})
			if api.ErrorCode(err) != refused.want {
				t.Fatalf("Enqueue: got error %v, want code %s", err, refused.want)
			}
		}
		left, err := f.store.Client().SMembers(t.Context(), f.store.JobKeys(f.tenant).Dependents(root)).Result()
		if err != nil || len(left) != 1 || left[0] != first {
			t.Errorf("the dependents of the root: got %v and error %v, want %s only", left, err, first)
		}
	})
}

// Texts with jobs count as well. Once the bytes are used up they are cut, and nothing is refused: a
// job must be able to fail, to be held and to keep its lease.
func TestTextsOfJobsAreLimited(t *testing.T) {
	t.Parallel()
	const most, attempts = 1 << 20, 30
	each(t, func(t *testing.T, f *fixture) {
		quotastest.Limit(t, f.store, quota.TenantLimits{JobBytes: most})
		f.add(t, job(`1`, func(j *api.NewJob) { j.MaxAttempts, j.Backoff = attempts, api.BackoffNone }), job(`2`), job(`3`))
		long := strings.Repeat("é", api.MaxJobErrorBytes/2)
		var id string
		for range attempts {
			j := f.fetch(t, 1)[0]
			id = j.ID
			if out := f.fail(t, j, func(fail *api.JobFail) { fail.Error, fail.Stack = long, long }); !out.OK {
				t.Fatalf("Fail: got %+v, want success", out)
			}
			f.tend(t)
		}
		stored, errs := 0, f.get(t, id).Errors
		for _, e := range errs {
			stored += len(e.Error) + len(e.Stack)
		}
		if bound := most + most/2; stored > bound || len(errs) != attempts {
			t.Errorf("got %d errors with %d bytes, want %d with at most %d", len(errs), stored, attempts, bound)
		}
		if e := errs[attempts-1]; len(e.Error) != 256 || len(e.Stack) != 256 {
			t.Errorf("the last error has %d and %d bytes, want 256 each", len(e.Error), len(e.Stack))
		}
		reason := strings.Repeat("x", 1024)
		leases := f.fetch(t, 2)
		beat := api.JobHeartbeat{ID: leases[0].ID, LeaseEpoch: leases[0].LeaseEpoch, Progress: &api.JobProgress{Message: reason}}
		var out []api.JobOutcome
		var err error
		for range 100 { // the rest of the bytes
			out, err = f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{beat})
			if err != nil || !out[0].OK {
				t.Fatalf("Heartbeat: got %+v, error %v, want success", out, err)
			}
		}
		if got := f.get(t, leases[0].ID).Progress; len(got) > 300 {
			t.Errorf("a heartbeat left a progress of %d bytes, want at most 300", len(got))
		}
		if len(beat.Progress.Message) != len(reason) {
			t.Errorf("Heartbeat left %d bytes in the caller's message, want %d", len(beat.Progress.Message), len(reason))
		}
		out, err = f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: leases[0].ID, LeaseEpoch: leases[0].LeaseEpoch, Hold: reason}})
		if got := f.get(t, leases[0].ID); err != nil || !out[0].OK || len(got.HoldReason) != 256 {
			t.Errorf("Ack with a hold: got %+v, error %v, and a reason of %d bytes, want success and 256", out, err, len(got.HoldReason))
		}
		f.fail(t, leases[1])
		held, err := f.Hold(t.Context(), f.tenant, leases[1].ID, reason)
		if err != nil || len(held.HoldReason) != 256 {
			t.Errorf("Hold: got error %v and job %+v, want a reason of 256 bytes", err, held)
		}
	})
}
