package queue

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// duringReading runs step once, after a reading of a queue's heads was answered and
// before it is judged.
type duringReading struct {
	step func()
	ran  atomic.Bool
}

func (*duringReading) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*duringReading) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (d *duringReading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if cmds[0].Name() == "zrangebyscore" && d.ran.CompareAndSwap(false, true) {
			d.step()
		}
		return err
	}
}

// A fetch reads behind the candidates of other fetches. Where those end while it
// reads, and leave a job, it looks again and does not find the queue empty, nor does it
// wait for those that have not ended.
func TestAFetchFindsWhatOthersLeaveWhileItReads(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		for name, all := range map[string]bool{"all end": true, "one ends": false} {
			t.Run(backend.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				findsWhatIsLeft(t, backend.Config(t), all)
			})
		}
	}
}

func findsWhatIsLeft(t *testing.T, cfg storage.Config, all bool) {
	t.Helper()
	var ms atomic.Int64
	ms.Store(1_760_000_000_000)
	cfg.Clock = func() time.Time { return time.UnixMilli(ms.Load()) }
	s := storagetest.Open(t, cfg)
	broker, err := New(t.Context(), s, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	ctx, tenant := t.Context(), storagetest.Tenant(t)
	var ids []string
	for range 3 {
		out, err := broker.Enqueue(ctx, Enqueue{Tenant: tenant, Namespace: "default", Queue: "emails", Jobs: []api.NewJob{{Payload: json.RawMessage(`1`)}}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out[0].ID)
		ms.Add(1) // each has a score of its own
	}
	q := queueKey{tenant, "default", "emails"}
	l := broker.lane(q)
	pair, _, releasePair, err := broker.candidates(ctx, q, l, 2)
	if err != nil || len(pair) != 2 {
		t.Fatal(pair, err)
	}
	last, _, releaseLast, err := broker.candidates(ctx, q, l, 1)
	if err != nil || len(last) != 1 || last[0].id != ids[2] {
		t.Fatal(last, err)
	}
	// The last job is claimed, and one of the pair; the other one is left.
	if err := s.Client().ZRem(ctx, broker.keys(q).Set(string(api.JobPending)), ids[0], ids[2]).Err(); err != nil {
		t.Fatal(err)
	}
	s.Client().AddHook(&duringReading{step: func() {
		releasePair(1)
		if all {
			releaseLast(1)
		}
	}})
	l.mu.Lock()
	l.since = time.Now().Add(time.Hour) // the fetch does not begin at the cursors again
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	jobs, err := broker.Fetch(ctx, Fetch{Tenant: tenant, Namespace: "default", Queues: []string{"emails"}, WorkerID: "w"})
	if err != nil || len(jobs) != 1 || jobs[0].ID != ids[1] {
		t.Fatalf("fetched %+v, want %s: %v", jobs, ids[1], err)
	}
}
