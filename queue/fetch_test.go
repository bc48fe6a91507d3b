package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// afterClaim is a hook that calls then after a claim.
type afterClaim struct{ then func() }

func (h afterClaim) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h afterClaim) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h afterClaim) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && err == nil {
			h.then()
		}
		return err
	}
}

// TestAFetchWhoseCallerHasGonePutsItsJobsBack: no worker would know of their leases.
func TestAFetchWhoseCallerHasGonePutsItsJobsBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	id := f.add(t, job(`1`))[0].ID
	ctx, leave := context.WithCancel(t.Context())
	f.store.Client().AddHook(afterClaim{then: leave})
	jobs, err := f.Fetch(ctx, queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1", Count: 5})
	if !errors.Is(err, context.Canceled) || len(jobs) != 0 {
		t.Fatalf("Fetch whose caller has gone: got jobs %+v, error %v, want none and context.Canceled", jobs, err)
	}
	if j := f.get(t, id); j.State != api.JobPending && j.State != api.JobRetrying || j.Attempt != 0 {
		t.Errorf("the job is %s after attempt %d, want it put back without an attempt", j.State, j.Attempt)
	}
	if _, err := f.Tend(t.Context(), f.tenant, namespace, emails, f.clock.ms.Load()); err != nil {
		t.Fatalf("Tend: %v", err)
	}
	if got := f.fetch(t, 1); len(got) != 1 || got[0].Attempt != 1 {
		t.Errorf("next Fetch = %+v, want the job in attempt 1", got)
	}
}
