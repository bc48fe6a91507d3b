package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// TestBatchesThatAreDoneExpire: the records of a batch expire only after it is sealed and its
// jobs have ended, and then after the retention of jobs.
func TestBatchesThatAreDoneExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		batch, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: "reports"})
		if err != nil {
			t.Fatalf("CreateBatch: %v", err)
		}
		lives := func(part string) time.Duration {
			d, err := f.store.Client().PTTL(t.Context(), f.store.JobKeys(f.tenant).Batch(batch.ID)+part).Result()
			if err != nil {
				t.Fatalf("Result: %v", err)
			}
			return d
		}
		f.add(t, job("1", func(j *api.NewJob) { j.BatchID = batch.ID }))
		if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
			t.Fatalf("SealBatch: %v", err)
		}
		if d := lives(":meta"); d > 0 {
			t.Errorf("time to live of an unfinished batch = %s, want none", d)
		}
		if out := f.ack(t, f.fetch(t, 1)[0], ""); !out.OK {
			t.Fatalf("ack: got %+v, want success", out)
		}
		for _, part := range []string{":meta", ":jobs", ":succeeded"} {
			if d := lives(part); d <= 0 || d > api.JobRetentionMS*time.Millisecond {
				t.Errorf("time to live of %s = %s, want at most %d ms", part, d, int64(api.JobRetentionMS))
			}
		}
		made, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"reports"}, WorkerID: "w"})
		if err != nil || len(made) != 1 {
			t.Errorf("Fetch of the callback = %v, %v, want one job", made, err)
		}
	})
}

// TestOpenBatchesExpire: an open batch lives for a week after its last change, which is a job that
// is added or ends; a sealed one lives until its jobs have ended. Lists have those that exist.
func TestOpenBatchesExpire(t *testing.T) {
	t.Parallel()
	eachAlone(t, func(t *testing.T, f *fixture) {
		const day = 24 * time.Hour
		idle, used, sealed := f.batch(t), f.batch(t), f.batch(t)
		f.add(t, job(`1`, inBatch(sealed.ID)))
		if _, err := f.SealBatch(t.Context(), f.tenant, namespace, sealed.ID); err != nil {
			t.Fatalf("SealBatch: %v", err)
		}
		sweep := func(after time.Duration, want ...string) {
			t.Helper()
			f.clock.advance(after)
			repairer := f.NewRepairer()
			for {
				findings, err := repairer.Jobs(t.Context(), f.clock.ms.Load(), 100_000)
				if err != nil {
					t.Fatalf("Jobs: %v", err)
				}
				if findings.End {
					break
				}
			}
			var got []string
			for cursor := ""; ; {
				page, next, err := f.ListBatches(t.Context(), f.tenant, namespace, cursor, 2)
				if err != nil {
					t.Fatalf("ListBatches: %v", err)
				}
				for _, b := range page {
					got = append(got, b.ID)
				}
				if next == "" {
					break
				}
				cursor = next
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("after %s: got batches %v, want %v", after, got, want)
			}
		}
		sweep(6*day, idle.ID, used.ID, sealed.ID)
		f.add(t, job(`1`, inBatch(used.ID)))
		sweep(2*day, used.ID, sealed.ID)
		if _, err := f.GetBatch(t.Context(), f.tenant, namespace, idle.ID); api.ErrorCode(err) != api.CodeBatchNotFound {
			t.Errorf("Get of an expired batch: got error %v, want CodeBatchNotFound", err)
		}
		if b, err := f.GetBatch(t.Context(), f.tenant, namespace, used.ID); err != nil || b.ExpiresAtMS != f.clock.ms.Load()+(5*day).Milliseconds() {
			t.Errorf("GetBatch: got %+v, error %v, want it to expire in 5 days", b, err)
		}
		for _, j := range f.fetch(t, 2) {
			f.ack(t, j, "")
		}
		sweep(6*day, used.ID, sealed.ID)
		sweep(2 * day) // the retention of the sealed one has passed, too
		if err := f.DeleteBatch(t.Context(), f.tenant, namespace, used.ID); api.ErrorCode(err) != api.CodeBatchNotFound {
			t.Errorf("Delete of an expired batch: got error %v, want CodeBatchNotFound", err)
		}
	})
}

// TestCallbackIsMadeOnce: a job of a finished batch that is retried and ends again does not make
// the callback again, although the callback's job has been purged.
func TestCallbackIsMadeOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		hour := time.Hour.Milliseconds()
		if _, err := f.Configure(t.Context(), f.tenant, namespace, "reports", queue.Change{RetentionMS: &hour}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		batch, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: "reports"})
		if err != nil {
			t.Fatalf("CreateBatch: %v", err)
		}
		member := f.add(t, job("1", func(j *api.NewJob) { j.BatchID, j.MaxAttempts = batch.ID, 1 }))[0]
		if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
			t.Fatalf("SealBatch: %v", err)
		}
		f.fail(t, f.fetch(t, 1)[0])
		callbacks := func() []api.FetchedJob {
			t.Helper()
			made, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"reports"}, WorkerID: "w"})
			if err != nil {
				t.Fatalf("Fetch: %v", err)
			}
			return made
		}
		made := callbacks()
		if len(made) != 1 {
			t.Fatalf("got %d callbacks, want 1", len(made))
		}
		f.ack(t, made[0], "")
		f.clock.advance(2 * time.Hour)
		if _, err := f.Tend(t.Context(), f.tenant, namespace, "reports", f.clock.ms.Load()); err != nil {
			t.Fatalf("Tend: %v", err)
		}
		if _, err := f.Get(t.Context(), f.tenant, batch.CallbackID); api.ErrorCode(err) != api.CodeJobNotFound {
			t.Fatalf("Get of the callback: got error %v, want it purged", err)
		}
		if _, err := f.Retry(t.Context(), f.tenant, member.ID); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		f.ack(t, f.fetch(t, 1)[0], "")
		if again := callbacks(); len(again) != 0 {
			t.Errorf("got %d callbacks after the retry, want none", len(again))
		}
	})
}
