package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// dueRounds is the number of queues whose enqueues race against maintenance.
const dueRounds = 1500

// TestNoJobSleepsBehindARemovedDueEntry races enqueues against the maintenance of two replicas.
// Each queue is used once, so that a lost due entry is not replaced. One job is due immediately,
// which makes maintenance visit the queue. The other is added during the visit, and is due
// after the visitor's claim ends.
func TestNoJobSleepsBehindARemovedDueEntry(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newFixture(t, cfg)
	replicas := []*fixture{f, f.beside(t, cfg, 0)}
	var enqueuers, maintainers sync.WaitGroup
	done := make(chan struct{})
	loops := make([]*scheduler.Loop, len(replicas))
	for i, r := range replicas {
		loops[i] = loopOn(t, r.store, r.Broker)
		maintainers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := loops[i].RunOnce(t.Context(), f.clock.ms.Load()); err != nil {
					t.Errorf("RunOnce of replica %d: %v", i, err)
				}
			}
		})
	}
	rounds := make(chan int)
	for range 4 {
		enqueuers.Go(func() {
			for n := range rounds {
				var both sync.WaitGroup
				for i, ahead := range []int64{1, 3_600_000} {
					both.Go(func() { f.addAt(t, replicas[i], fmt.Sprint("q", n), ahead) })
				}
				f.clock.advance(time.Millisecond)
				both.Wait()
			}
		})
	}
	for n := range dueRounds {
		rounds <- n
	}
	close(rounds)
	enqueuers.Wait()
	close(done)
	maintainers.Wait()
	f.clock.advance(2 * time.Hour)
	for range 200 { // one round reads one page of each shard
		c, err := loops[0].RunOnce(t.Context(), f.clock.ms.Load())
		if err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		if c.Queues == 0 {
			break
		}
	}
	states := map[api.JobState]int{}
	for _, j := range f.jobs(t) {
		states[j.state]++
	}
	if states[api.JobPending] != 2*dueRounds {
		t.Errorf("jobs by state: got %v, want %d pending", states, 2*dueRounds)
	}
}

func (f *fixture) addAt(t *testing.T, by *fixture, q string, ahead int64) {
	_, err := by.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: q, Jobs: []api.NewJob{
		job(`1`, func(j *api.NewJob) { j.RunAtMS = f.clock.ms.Load() + ahead }),
	}})
	if err != nil {
		t.Errorf("Enqueue in queue %s: %v", q, err)
	}
}

// loopOn returns the loop of a replica.
func loopOn(t *testing.T, s *storage.Store, b *queue.Broker) *scheduler.Loop {
	t.Helper()
	ticker, err := scheduler.NewTicker(s, b, nil, zap.NewNop())
	if err != nil {
		t.Fatalf("NewTicker: %v", err)
	}
	return scheduler.NewLoop(s, b, ticker, zap.NewNop())
}

// TestLoopKeepsUp: the loop promotes a job of another replica at its time, and ends with its
// context.
func TestLoopKeepsUp(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	cfg.Clock = time.Now
	store := storagetest.Open(t, cfg)
	b := brokerOn(t, store)
	tenant := storagetest.Tenant(t)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for range 2 {
		work.Go(func() { loopOn(t, store, b).Run(ctx) })
	}
	added, err := b.Enqueue(t.Context(), queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{
		job(`1`, func(j *api.NewJob) { j.RunAtMS = time.Now().UnixMilli() + 300 }),
	}})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	got, err := b.Fetch(t.Context(), queue.Fetch{
		Tenant: tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1", Wait: 20 * time.Second,
	})
	if err != nil || len(got) != 1 || got[0].ID != added[0].ID {
		t.Fatalf("Fetch = %+v, %v, want job %s", got, err, added[0].ID)
	}
}

// TestAJobThatComesWhileItsQueueIsMaintained adds a job that is due after the visitor's claim ends.
// The enqueue does not change the due entry, which the visitor is about to remove.
func TestAJobThatComesWhileItsQueueIsMaintained(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newFixture(t, cfg)
	other := f.beside(t, cfg, 0)
	f.addAt(t, f, emails, 1)
	f.clock.advance(time.Millisecond)
	// The first script on the due set claims the member, the second settles it.
	f.store.Client().AddHook(between("cs:due:", 2, func() { f.addAt(t, other, emails, 3_600_000) }))
	loop := loopOn(t, f.store, f.Broker)
	for range 2 {
		if _, err := loop.RunOnce(t.Context(), f.clock.ms.Load()); err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		f.clock.advance(2 * time.Hour)
	}
	if got := f.fetch(t, 5); len(got) != 2 {
		t.Errorf("Fetch: got %d jobs (%+v), want 2", len(got), got)
	}
}

// TestADueEntryIsSettledOnce: of two callers of the settle script that have read the same entry,
// only the first changes it.
func TestADueEntryIsSettledOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		key := f.store.JobKeys(f.tenant).Queue(namespace, "due").Set("due") // a key of the test's own
		settle := func(score int64, next string) any {
			t.Helper()
			n, err := f.store.Script(t.Context(), storage.ScriptDueSettle, []string{key}, "q", score, next)
			if err != nil {
				t.Fatalf("%s with score %d and next %q: %v", storage.ScriptDueSettle, score, next, err)
			}
			return n
		}
		if err := f.store.Client().ZAdd(t.Context(), key, redis.Z{Score: 7, Member: "q"}).Err(); err != nil {
			t.Fatalf("ZADD: %v", err)
		}
		for _, step := range []struct {
			score int64
			next  string
			want  int64
		}{{7, "17", 1}, {7, "17", 0}, {7, "", 0}, {17, "", 1}, {17, "", 0}} {
			if n := settle(step.score, step.next); n != step.want {
				t.Errorf("%s(%d, %q) = %v, want %d", storage.ScriptDueSettle, step.score, step.next, n, step.want)
			}
		}
	})
}
