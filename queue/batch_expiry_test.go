package queue_test

import (
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// A batch stays while it has work or takes more, and goes when its jobs do.
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
			t.Errorf("expires in %s with a job in hand", d)
		}
		if out := f.ack(t, f.fetch(t, 1)[0], ""); !out.OK {
			t.Fatalf("ack: got out %+v; want out.OK", out)
		}
		for _, part := range []string{":meta", ":jobs", ":succeeded"} {
			if d := lives(part); d <= 0 || d > api.JobRetentionMS*time.Millisecond {
				t.Errorf("%s expires in %s", part, d)
			}
		}
		made, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"reports"}, WorkerID: "w"})
		if err != nil || len(made) != 1 {
			t.Errorf("the callback: %v %v", made, err)
		}
	})
}
