package queue_test

import (
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
