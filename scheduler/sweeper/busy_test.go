package sweeper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// A busy system is none that crashed: while jobs flow, two sweepers mend nothing, even
// if one of them takes every call under way for one that began long ago, and each job
// is done once.
func TestSweepersLeaveBusySystemsAlone(t *testing.T) {
	t.Parallel()
	const producers, each = 4, 150
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	broker, tenant := brokerOn(t, store), storagetest.Tenant(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var mu sync.Mutex
	done := map[string]int{}
	var produced, consumed, swept sync.WaitGroup
	for p := range producers {
		produced.Go(func() {
			for n := range each {
				if err := produce(ctx, broker, tenant, p*each+n); err != nil {
					t.Errorf("produce: %v", err)
					return
				}
			}
		})
	}
	working, rest := context.WithCancel(ctx)
	for w := range producers {
		consumed.Go(func() {
			for working.Err() == nil {
				ids, err := consume(working, broker, tenant, fmt.Sprintf("w%d", w))
				if err != nil && working.Err() == nil {
					t.Errorf("consume: %v", err)
					return
				}
				mu.Lock()
				for _, id := range ids {
					done[id]++
				}
				if len(done) == producers*each*2 {
					rest()
				}
				mu.Unlock()
			}
		})
	}
	passes := 0
	for _, ahead := range []time.Duration{0, 10 * time.Minute} {
		sw, err := sweeper.New(store, brokerOn(t, store), sweeper.Config{PassInterval: 1, IdleInterval: 1}, zap.NewNop())
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		swept.Go(func() {
			for working.Err() == nil {
				counts, err := sw.RunOnce(working, store.Now().Add(ahead))
				if err != nil && working.Err() == nil {
					t.Errorf("RunOnce: %v", err)
				}
				for _, r := range counts.Repairs {
					switch {
					case r.Kind == repair.KindExpiry: // acknowledged jobs leave these
					case r.Kind == repair.KindWaiting && ahead > 0: // it knows a wait that is over by its age alone
					default:
						t.Errorf("RunOnce beside working calls: got repair %+v, want none", r)
					}
				}
				mu.Lock()
				passes += counts.Tenants
				mu.Unlock()
			}
		})
	}
	produced.Wait()
	<-working.Done()
	rest()
	consumed.Wait()
	swept.Wait()
	if ctx.Err() != nil || len(done) != producers*each*2 {
		t.Fatalf("got %d jobs done, want %d", len(done), producers*each*2)
	}
	for id, n := range done {
		if n != 1 {
			t.Errorf("job %s: got %d runs, want 1", id, n)
		}
	}
	t.Logf("%d passes", passes)
}

// produce adds a job, and one that depends on it.
func produce(ctx context.Context, b *queue.Broker, tenant string, n int) error {
	first, err := b.Enqueue(ctx, queue.Enqueue{Tenant: tenant, Namespace: home, Queue: emails, Jobs: []api.NewJob{{
		Payload: json.RawMessage(`1`), JobOptions: api.JobOptions{UniqueKey: fmt.Sprint(n), ExpireAtMS: time.Now().Add(time.Hour).UnixMilli()},
	}}})
	if err != nil {
		return err
	}
	_, err = b.Enqueue(ctx, queue.Enqueue{Tenant: tenant, Namespace: home, Queue: emails, Jobs: []api.NewJob{{
		Payload: json.RawMessage(`2`), JobOptions: api.JobOptions{DependsOn: []string{first[0].ID}, Hold: n%3 == 0},
	}}})
	return err
}

// consume does some jobs; every third one fails once, and those that are held are
// approved.
func consume(ctx context.Context, b *queue.Broker, tenant, worker string) (done []string, err error) {
	if _, err := b.Tend(ctx, tenant, home, emails, time.Now().UnixMilli()); err != nil {
		return nil, err
	}
	held, _, err := b.List(ctx, queue.List{Tenant: tenant, Namespace: home, Queue: emails, State: api.JobHeld, Limit: 10})
	if err != nil {
		return nil, err
	}
	for _, j := range held {
		if _, err := b.Approve(ctx, tenant, j.ID); err != nil && api.ErrorCode(err) != api.CodeJobState {
			return nil, err
		}
	}
	jobs, err := b.Fetch(ctx, queue.Fetch{Tenant: tenant, Namespace: home, Queues: []string{emails}, WorkerID: worker, Count: 8})
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		if j.Attempt == 1 && i%3 == 0 {
			out, err := b.Fail(ctx, tenant, []api.JobFail{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "once", RetryAfterMS: new(int64(5))}})
			if err != nil || !out[0].OK {
				return done, errors.Join(err, fmt.Errorf("fail: %+v", out))
			}
			continue
		}
		out, err := b.Ack(ctx, tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch}})
		if err != nil || !out[0].OK {
			return done, errors.Join(err, fmt.Errorf("ack: %+v", out))
		}
		done = append(done, j.ID)
	}
	return done, nil
}
