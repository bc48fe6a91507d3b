package invoker

import (
	"context"
	"slices"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestVerdictsHoldWhenAReplicaStops: what the handler decided counts, and the other jobs return
// to their queue.
func TestVerdictsHoldWhenAReplicaStops(t *testing.T) {
	t.Parallel()
	w := &worker{i: &Invoker{aborted: make(chan struct{})}}
	close(w.i.aborted)
	out := &api.Outcome{
		Activation: api.Activation{Status: api.StatusCancelled},
		Verdicts:   []api.MessageVerdict{{Acked: true}, {Retried: true}, {}},
	}
	if v := w.verdict(out, 0, 3); v.putBack || v.failure != nil {
		t.Errorf("an acknowledged job: got %+v, want it complete", v)
	}
	if v := w.verdict(out, 1, 3); v.putBack || v.failure == nil {
		t.Errorf("a job to be retried: got %+v, want its attempt failed", v)
	}
	if v := w.verdict(out, 2, 3); !v.putBack {
		t.Errorf("a job without a verdict: got %+v, want it put back", v)
	}
}

// TestDueLeasesHasAllJobs: more leases than one call renews are due at once, the one that ends
// first before the others, without those of settled and of lost jobs.
func TestDueLeasesHasAllJobs(t *testing.T) {
	t.Parallel()
	const count = 2*api.MaxSettleJobs + 10
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	w := &worker{i: &Invoker{store: store}, jobs: map[*leasedJob]struct{}{}}
	for n := range count + 2 {
		j := &leasedJob{queue: queue.FunctionQueue{Tenant: "t_acme01"}, expiresMS: int64(count - n), settled: n == count}
		j.ctx, j.lose = context.WithCancelCause(t.Context())
		if n == count+1 {
			j.lose(errLeaseLost)
		}
		w.jobs[j] = struct{}{}
	}
	due := w.dueLeases()["t_acme01"]
	sorted := slices.IsSortedFunc(due, func(a, b *leasedJob) int { return int(a.expiresMS - b.expiresMS) })
	if len(due) != count || !sorted {
		t.Errorf("got %d leases, in order: %v, want %d in order", len(due), sorted, count)
	}
}
