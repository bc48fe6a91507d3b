package queue_test

import (
	"testing"

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
			batch, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: "others"})
			if err != nil {
				t.Fatalf("CreateBatch: %v", err)
			}
			seal := func() {
				t.Helper()
				if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
					t.Fatalf("SealBatch: %v", err)
				}
			}
			seal()
			if _, err := f.Move(t.Context(), f.tenant, batch.CallbackID, emails); err != nil {
				t.Fatalf("Move: %v", err)
			}
			first := f.fetch(t, 1) // from emails, which f remembers
			if len(first) != 1 || first[0].ID != batch.CallbackID {
				t.Fatalf("first fetch: got %+v, want the callback %s", first, batch.CallbackID)
			}
			f.ack(t, first[0], "")
			if err := f.Delete(t.Context(), f.tenant, batch.CallbackID); err != nil {
				t.Fatalf("Delete: %v", err)
			}
			seal() // makes the callback again
			again, err := other.Fetch(t.Context(), queue.Fetch{
				Tenant: f.tenant, Namespace: namespace, Queues: []string{"others"}, WorkerID: "w2", Count: 1,
			})
			if err != nil || len(again) != 1 || again[0].ID != batch.CallbackID {
				t.Fatalf("fetch of the remade job: got %+v, %v; want %s", again, err, batch.CallbackID)
			}
			beats := []api.JobHeartbeat{{ID: again[0].ID, LeaseEpoch: again[0].LeaseEpoch}}
			if out, err := f.Heartbeat(t.Context(), f.tenant, beats); err != nil || !out[0].OK {
				t.Errorf("heartbeat: got %+v, %v; want OK", out, err)
			}
			f.sound(t, batch.CallbackID)
			if out := f.ack(t, again[0], ""); !out.OK {
				t.Errorf("ack: got %+v, want OK", out)
			}
			f.sound(t, batch.CallbackID)
		})
	}
}
