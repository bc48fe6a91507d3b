package invoker

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/models"
	"github.com/codesous/sous/invoker/sandbox"
)

// A tenant whose renewal is slow does not delay the renewals of the others: each of these two
// ends when the other has begun.
func TestTenantsAreRenewedTogether(t *testing.T) {
	t.Parallel()
	begun := map[string]chan struct{}{"t_slow01": make(chan struct{}), "t_slow02": make(chan struct{})}
	other := map[string]string{"t_slow01": "t_slow02", "t_slow02": "t_slow01"}
	w := &worker{i: &Invoker{logger: zap.NewNop()}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	w.renewDue(ctx, map[string][]*leasedJob{"t_slow01": {{}}, "t_slow02": {{}}}, func(ctx context.Context, tenant string, _ []*leasedJob) error {
		close(begun[tenant])
		select {
		case <-begun[other[tenant]]:
		case <-ctx.Done():
			t.Errorf("tenant %s: got no renewal of tenant %s at the same time, want one", tenant, other[tenant])
			cancel()
		}
		return nil
	})
	for tenant, renewed := range begun {
		select {
		case <-renewed:
		default:
			t.Errorf("tenant %s: got no renewal of its leases, want one", tenant)
		}
	}
}

// Host calls are served concurrently: the update that the function made last wins, in
// whatever order they arrive.
func TestUpdatesKeepTheLast(t *testing.T) {
	t.Parallel()
	s := hostcall.Scope{Models: &models.Caller{}}
	j := &leasedJob{}
	(&worker{}).join(j, &sandbox.Call{}, &s)
	s.UpdateJob(2, hostcall.JobUpdate{Progress: &api.JobProgress{Current: 2}})
	s.UpdateJob(3, hostcall.JobUpdate{Checkpoint: json.RawMessage("3")})
	s.UpdateJob(1, hostcall.JobUpdate{Progress: &api.JobProgress{Current: 1}, Checkpoint: json.RawMessage("1")})
	if j.update.Progress.Current != 2 || string(j.update.Checkpoint) != "3" {
		t.Errorf("update = %+v %s, want progress 2 and checkpoint 3", j.update.Progress, j.update.Checkpoint)
	}
}
