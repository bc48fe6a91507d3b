package sweeper_test

import (
	"encoding/json"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// repairBench is a store of a test's own with a clock of its own.
type repairBench struct {
	*queue.Broker
	t      *testing.T
	cfg    storage.Config
	store  *storage.Store
	ms     *atomic.Int64
	tenant string
}

const (
	home   = "default"
	emails = "emails"
)

func newRepairBench(t *testing.T, cfg storage.Config) *repairBench {
	t.Helper()
	b := &repairBench{t: t, ms: &atomic.Int64{}, tenant: storagetest.Tenant(t)}
	b.ms.Store(1_760_000_000_000)
	cfg.Clock = func() time.Time { return time.UnixMilli(b.ms.Load()) }
	b.cfg, b.store = cfg, storagetest.Open(t, cfg)
	b.Broker = brokerOn(t, b.store)
	return b
}

// eachOwn runs test on stores of its own: a sweep counts what it finds anywhere.
func eachOwn(t *testing.T, test func(t *testing.T, cfg storage.Config)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, storage.Config{URL: storagetest.Redis(t).URL})
	})
}

func (b *repairBench) now() int64                    { return b.ms.Load() }
func (b *repairBench) advance(d time.Duration)       { b.ms.Add(d.Milliseconds()) }
func (b *repairBench) client() redis.UniversalClient { return b.store.Client() }
func (b *repairBench) keys(q string) storage.QueueKeys {
	return b.store.JobKeys(b.tenant).Queue(home, q)
}

func (b *repairBench) must(err error) {
	if err != nil {
		b.t.Helper()
		b.t.Fatalf("got error %v, want none", err)
	}
}

// dueKey is the due set that q is in, and how it is called there.
func (b *repairBench) dueKey(q string) (key, member string) {
	member = storage.DueQueuePrefix + b.tenant + "/" + home + "/" + q
	return storage.KeyDue(storage.DueShard(member)), member
}

func (b *repairBench) readyKey(q string) (key, member string) {
	_, member = b.dueKey(q)
	return storage.KeyReady(storage.DueShard(member)), member
}

func (b *repairBench) add(q string, change ...func(*api.NewJob)) string {
	b.t.Helper()
	j := api.NewJob{Payload: json.RawMessage(`1`)}
	for _, c := range change {
		c(&j)
	}
	out, err := b.Enqueue(b.t.Context(), queue.Enqueue{Tenant: b.tenant, Namespace: home, Queue: q, Jobs: []api.NewJob{j}})
	b.must(err)
	return out[0].ID
}

// invoke enqueues a job that runs a function, with its activation.
func (b *repairBench) invoke(function string) (job string, a *activations.Record) {
	b.t.Helper()
	b.must(storage.NewTenants(b.store).RegisterNamespace(b.t.Context(), b.tenant, home))
	_, err := storage.NewFunctions(b.store).Create(b.t.Context(), api.Function{
		Tenant: b.tenant, Namespace: home, Name: function, Runtime: api.RuntimeJS, CreatedAtMS: b.now(),
	})
	b.must(err)
	spec := &api.JobSpec{
		Namespace: home, Queue: api.FunctionQueuePrefix + function, Payload: json.RawMessage(`{}`),
		JobOptions: api.JobOptions{Target: &api.JobTarget{Function: function, Version: 1}},
	}
	job = api.NewJobID()
	_, _, err = b.EnqueueInvocation(b.t.Context(), b.tenant, job, spec)
	b.must(err)
	a = activations.Queued(b.tenant, job, spec)
	_, _, err = activations.New(b.store).Start(b.t.Context(), a)
	b.must(err)
	return job, a
}

// fetch takes a job of q.
func (b *repairBench) fetch(q string) api.FetchedJob {
	b.t.Helper()
	jobs, err := b.Fetch(b.t.Context(), queue.Fetch{
		Tenant: b.tenant, Namespace: home, Queues: []string{q}, WorkerID: "w1", Count: 1, Internal: true,
	})
	b.must(err)
	if len(jobs) != 1 {
		b.t.Fatalf("Fetch = %+v, want one job", jobs)
	}
	return jobs[0]
}

func (b *repairBench) ack(j api.FetchedJob) {
	b.t.Helper()
	out, err := b.Ack(b.t.Context(), b.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch}})
	b.must(err)
	if !out[0].OK {
		b.t.Fatalf("Ack(%s) = %+v, want it accepted", j.ID, out)
	}
}

func (b *repairBench) tend(q string) {
	b.t.Helper()
	_, err := b.Tend(b.t.Context(), b.tenant, home, q, b.now())
	b.must(err)
}

func (b *repairBench) state(id string) api.JobState {
	b.t.Helper()
	state, err := b.StateOf(b.t.Context(), b.tenant, id)
	b.must(err)
	return state
}

// sweepers returns n sweepers, each of a replica of its own.
func (b *repairBench) sweepers(n int) (all []*sweeper.Sweeper) {
	b.t.Helper()
	for range n {
		store := storagetest.Open(b.t, b.cfg)
		s, err := sweeper.New(store, brokerOn(b.t, store), sweeper.Config{PassInterval: time.Millisecond, IdleInterval: 1, Reads: 1_000_000}, zap.NewNop())
		b.must(err)
		all = append(all, s)
	}
	return all
}

// kinds are repairs by kind.
type kinds map[string]int

// passSteps is more than the steps of a pass after one that found nothing.
const passSteps = 18

// pass lets all sweepers make at least one pass at the same time, and counts their repairs.
func (b *repairBench) pass(sweepers []*sweeper.Sweeper) kinds {
	b.t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := kinds{}
	for _, s := range sweepers {
		wg.Go(func() {
			for range passSteps {
				b.advance(2 * time.Millisecond)
				counts, err := s.RunOnce(b.t.Context(), b.store.Now())
				if err != nil {
					b.t.Errorf("RunOnce: %v", err)
				}
				mu.Lock()
				for _, r := range counts.Repairs {
					if r.Tenant == b.tenant {
						got[r.Kind]++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return got
}

// sweep makes passes until every repair must have been made.
func (b *repairBench) sweep(sweepers []*sweeper.Sweeper) kinds {
	b.t.Helper()
	sum := kinds{}
	for range 3 {
		for kind, n := range b.pass(sweepers) {
			sum[kind] += n
		}
		b.advance(61 * time.Second)
	}
	return sum
}

func (k kinds) equal(o kinds) bool { return maps.Equal(k, o) }
