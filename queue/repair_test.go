package queue_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestRepeatedAcksAreCountedOnce: a repeated ack does not increment the counter of settled jobs.
func TestRepeatedAcksAreCountedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	reg := prometheus.NewRegistry()
	measured, err := queue.New(t.Context(), f.store, queue.Config{Metrics: reg})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(measured.Close)
	f.Broker = measured
	f.add(t, job(`1`))
	got := f.fetch(t, 1)
	for range 3 {
		if out := f.ack(t, got[0], ""); !out.OK || out.State != api.JobCompleted {
			t.Errorf("ack: got %+v, want success and state completed", out)
		}
	}
	if n := metricstest.Value(t, reg, "sous_queue_settled_jobs_total", "state=completed"); n != 1 {
		t.Errorf("got %g settled jobs in the metrics, want 1", n)
	}
}

// TestDeletedQueueThatGetsJobs: a queue that gets jobs while it is deleted exists afterwards.
func TestDeletedQueueThatGetsJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`))
		stop := make(chan struct{})
		var added []string
		adding := make(chan error, 1)
		go func() {
			for {
				out, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`2`)}})
				if err != nil {
					adding <- err
					return
				}
				added = append(added, out[0].ID)
				select {
				case <-stop:
					adding <- nil
					return
				default:
				}
			}
		}()
		for range 10 {
			if err := f.DeleteQueue(t.Context(), f.tenant, namespace, emails); err != nil && api.ErrorCode(err) != api.CodeQueueNotFound {
				t.Errorf("DeleteQueue: got error %v, want none or CodeQueueNotFound", err)
			}
		}
		close(stop)
		if err := <-adding; err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		for _, id := range added {
			if state, err := f.StateOf(t.Context(), f.tenant, id); err != nil || state == "" {
				continue // deleted with the queue
			}
			if names := f.queues(t); len(names) != 1 {
				t.Fatalf("got queues %[2]v, want the one queue of job %[1]s", id, names)
			}
		}
	})
}
