package claim

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// duringReading is a hook that runs step once, between the reply to a read of a queue's
// heads and its evaluation.
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

// TestAFetchFindsWhatOthersLeaveWhileItReads: a fetch reads behind the candidates that other
// fetches have reserved. If one of those ends during the read without claiming all of its
// candidates, the fetch reads again. It neither reports an empty queue nor waits for the
// reservations that have not ended.
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
	jobs, err := jobstore.New(s, storage.Retention{Default: time.Hour}, jobstore.Notify{DueAt: func(int64) {}, Wake: func(jobstore.Queue) {}})
	if err != nil {
		t.Fatalf("jobstore.New: %v", err)
	}
	c, err := New(t.Context(), s, jobs, Hooks{Claimed: func(jobstore.Queue, string, []api.FetchedJob, int64) {}})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, q := t.Context(), jobstore.Queue{Tenant: storagetest.Tenant(t), Namespace: "default", Name: "emails"}
	ids := addPending(t, jobs, q, &ms, 3)
	state := c.stateOf(q)
	pair, _, releasePair, err := c.reserve(ctx, q, state, 2)
	if err != nil || len(pair) != 2 {
		t.Fatalf("reserve(2) = %v, %v, want two jobs", pair, err)
	}
	last, _, releaseLast, err := c.reserve(ctx, q, state, 1)
	if err != nil || len(last) != 1 || last[0].id != ids[2] {
		t.Fatalf("reserve(1) = %v, %v, want %s", last, err, ids[2])
	}
	// The last job and one of the pair are claimed; the other one of the pair is not.
	if err := s.Client().ZRem(ctx, jobs.Keys(q).Set(string(api.JobPending)), ids[0], ids[2]).Err(); err != nil {
		t.Fatalf("ZRem: %v", err)
	}
	s.Client().AddHook(&duringReading{step: func() {
		releasePair(1)
		if all {
			releaseLast(1)
		}
	}})
	state.mu.Lock()
	state.since = time.Now().Add(time.Hour) // keeps the fetch from starting at the cursors
	state.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got, _, err := c.Take(ctx, q, Request{WorkerID: "w", Lease: time.Minute}, 1)
	if err != nil || len(got) != 1 || got[0].ID != ids[1] {
		t.Fatalf("Take = %+v, %v, want %s", got, err, ids[1])
	}
}

// addPending adds n pending jobs to q, each with a score of its own.
func addPending(t *testing.T, jobs *jobstore.Store, q jobstore.Queue, ms *atomic.Int64, n int) (ids []string) {
	t.Helper()
	var moments jobstore.Sequence
	for range n {
		now := ms.Load()
		spec := &api.JobSpec{Namespace: q.Namespace, Queue: q.Name, CreatedAtMS: now, Payload: json.RawMessage(`1`)}
		spec.Score = jobstore.Score(spec.Priority, moments.Next(now, 1))
		item := jobstore.NewEntry(api.NewJobID(), spec, now)
		var err error
		item.Text, err = jobstore.EncodeSpec(spec)
		if err != nil {
			t.Fatalf("EncodeSpec: %v", err)
		}
		if err := jobs.InsertPlain(t.Context(), q, []*jobstore.Entry{item}); err != nil {
			t.Fatalf("InsertPlain: %v", err)
		}
		ids = append(ids, item.ID)
		ms.Add(1)
	}
	return ids
}
