package queue_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/storagetest"
)

// TestARemadeJobIsSettledInItsOwnQueue: a job with a derived id may be made again after it was
// deleted, in another queue and with epochs from 1. A replica that cached the earlier one settles
// the new one in the right queue.
func TestARemadeJobIsSettledInItsOwnQueue(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			all := replicas(t, backend)
			f, other := all[0], all[2]
			head := f.add(t, job("1", func(j *api.NewJob) { j.Chain = &api.Chain{Steps: []api.ChainStep{{Queue: "others"}}} }))[0].ID
			f.ack(t, f.fetch(t, 1)[0], "")
			step := api.DerivedJobID("chain", f.tenant, head, "step")
			if _, err := f.Move(t.Context(), f.tenant, step, emails); err != nil {
				t.Fatalf("Move: %v", err)
			}
			first := f.fetch(t, 1) // from emails, which f remembers
			if len(first) != 1 || first[0].ID != step {
				t.Fatalf("first fetch: got %+v, want the step %s", first, step)
			}
			f.ack(t, first[0], "")
			if err := f.Delete(t.Context(), f.tenant, step); err != nil {
				t.Fatalf("Delete: %v", err)
			}
			// As after a crash that left the marker of the end: maintenance makes the step again.
			after := f.store.JobKeys(f.tenant).Queue(namespace, emails).After()
			if err := f.store.Client().ZAdd(t.Context(), after, redis.Z{Score: 1, Member: head}).Err(); err != nil {
				t.Fatalf("ZAdd: %v", err)
			}
			f.tend(t)
			again, err := other.Fetch(t.Context(), queue.Fetch{
				Tenant: f.tenant, Namespace: namespace, Queues: []string{"others"}, WorkerID: "w2", Count: 1,
			})
			if err != nil || len(again) != 1 || again[0].ID != step {
				t.Fatalf("fetch of the remade job: got %+v, %v; want %s", again, err, step)
			}
			beats := []api.JobHeartbeat{{ID: again[0].ID, LeaseEpoch: again[0].LeaseEpoch}}
			if out, err := f.Heartbeat(t.Context(), f.tenant, beats); err != nil || !out[0].OK {
				t.Errorf("heartbeat: got %+v, %v; want OK", out, err)
			}
			f.sound(t, step)
			if out := f.ack(t, again[0], ""); !out.OK {
				t.Errorf("ack: got %+v, want OK", out)
			}
			f.sound(t, step)
		})
	}
}
