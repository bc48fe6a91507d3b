package queue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// beside returns a broker of another process on f's store, whose clock differs by skew.
func (f *fixture) beside(t testing.TB, cfg storage.Config, skew time.Duration) *fixture {
	t.Helper()
	other := *f
	cfg.Clock = func() time.Time { return f.clock.now().Add(skew) }
	other.store = storagetest.Open(t, cfg)
	other.Broker = brokerOn(t, other.store)
	return &other
}

// replicas returns brokers over one store. The clock of the second is 5 s behind.
func replicas(t *testing.T, backend storagetest.Backend) []*fixture {
	t.Helper()
	cfg := backend.Config(t)
	f := newFixture(t, cfg)
	return []*fixture{f, f.beside(t, cfg, -5*time.Second), f.beside(t, cfg, 0)}
}

// TestNoLiveMemberLiesBelowACursor: producers whose clocks differ by 5 s add jobs of one
// millisecond while fetchers advance the cursors. Every job is handed out once.
func TestNoLiveMemberLiesBelowACursor(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			brokers := replicas(t, backend)
			const all = 1000
			var producers, fetchers sync.WaitGroup
			var made, taken atomic.Int64
			var over atomic.Bool
			var seen sync.Map
			for i, f := range brokers {
				producers.Go(func() {
					priorities := api.Priorities()
					for n := made.Add(10); n <= all; n = made.Add(10) {
						jobs := make([]api.NewJob, 10)
						for k := range jobs {
							jobs[k] = job(`1`, func(j *api.NewJob) { j.Priority = priorities[(k+int(n))%4] })
						}
						f.add(t, jobs...)
					}
				})
				fetchers.Go(func() {
					for {
						last := over.Load()
						got := f.fetch(t, 1+rand.IntN(20))
						for _, j := range got {
							if _, twice := seen.LoadOrStore(j.ID, i); twice {
								t.Errorf("got job %s twice, want it once", j.ID)
							}
							taken.Add(1)
						}
						if last && len(got) == 0 {
							return
						}
					}
				})
			}
			producers.Wait()
			over.Store(true)
			fetchers.Wait()
			brokers[0].sound(t)
			if taken.Load() != all {
				t.Errorf("got %d jobs handed out, want %d", taken.Load(), all)
			}
		})
	}
}

// TestConcurrentClientsLoseNothing: whatever clients of several brokers do concurrently, no job
// is lost and none is completed twice.
func TestConcurrentClientsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			brokers := replicas(t, backend)
			c := &crowd{completed: map[string]int{}}
			var work sync.WaitGroup
			for i := range 9 {
				work.Go(func() {
					for range 60 {
						c.step(t, brokers[i%3], i)
					}
				})
			}
			work.Wait()
			c.drain(t, brokers[0])
			if len(c.accepted) < 50 {
				t.Errorf("the clients added %d jobs, want at least 50", len(c.accepted))
			}
			for _, id := range c.accepted {
				if j := brokers[0].get(t, id); j.State != api.JobCompleted || c.completed[id] != 1 {
					t.Errorf("job %s: got state %s, completed %d times, want it completed once", id, j.State, c.completed[id])
				}
			}
		})
	}
}

// crowd is the state that concurrent clients share.
type crowd struct {
	mu        sync.Mutex
	accepted  []string
	leases    []api.FetchedJob
	completed map[string]int
}

func (c *crowd) lease() (l api.FetchedJob, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.leases) == 0 {
		return l, false
	}
	i := rand.IntN(len(c.leases))
	return c.leases[i], true
}

func (c *crowd) some() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.accepted) == 0 {
		return ""
	}
	return c.accepted[rand.IntN(len(c.accepted))]
}

var crowdQueues = []string{emails, "others"}

func (c *crowd) step(t *testing.T, f *fixture, client int) {
	q := crowdQueues[rand.IntN(2)]
	l, leased := c.lease()
	id := c.some()
	var err error
	switch r := rand.IntN(12); {
	case r < 3 || id == "":
		out, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: q, Jobs: []api.NewJob{
			job(`1`), job(`2`, func(j *api.NewJob) { j.Priority = api.PriorityHigh }),
			job(`3`, func(j *api.NewJob) { j.RunAtMS = f.clock.ms.Load() + 500 }),
		}})
		if err != nil {
			t.Errorf("Enqueue: %v", err)
		}
		c.mu.Lock()
		c.accepted = append(c.accepted, idsOf(out)...)
		c.mu.Unlock()
	case r < 6 || !leased:
		got, err := f.Fetch(t.Context(), queue.Fetch{
			Tenant: f.tenant, Namespace: namespace, Queues: crowdQueues, WorkerID: fmt.Sprint("w", client), Count: 3, Lease: time.Second,
		})
		if err != nil {
			t.Errorf("Fetch: %v", err)
		}
		c.mu.Lock()
		c.leases = append(c.leases, got...)
		c.mu.Unlock()
	case r < 8:
		c.complete(t, f, l)
	case r == 8:
		_, err = f.Fail(t.Context(), f.tenant, []api.JobFail{{ID: l.ID, LeaseEpoch: l.LeaseEpoch, RetryAfterMS: new(int64)}})
	case r == 9:
		f.clock.advance(200 * time.Millisecond)
		_, err = f.Tend(t.Context(), f.tenant, namespace, q, f.clock.ms.Load())
	case r == 10:
		_, err = f.Move(t.Context(), f.tenant, id, q)
	case r == 11:
		_, err = f.Hold(t.Context(), f.tenant, id, "")
		if err == nil {
			_, err = f.Approve(t.Context(), f.tenant, id)
		}
	}
	if code := api.ErrorCode(err); code != "" && code != api.CodeJobState && code != api.CodeStoreConflict {
		t.Errorf(`got error %v, want none, CodeJobState or CodeStoreConflict`, err)
	}
}

// complete acknowledges a job, and counts the completion unless the ack repeats one of the same
// lease.
func (c *crowd) complete(t *testing.T, f *fixture, l api.FetchedJob) {
	out := f.ack(t, l, "")
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.leases {
		if c.leases[i].ID != l.ID || c.leases[i].LeaseEpoch != l.LeaseEpoch {
			continue
		}
		if out.OK { // another client with the same lease only repeats the ack
			c.completed[l.ID]++
		}
		c.leases = append(c.leases[:i:i], c.leases[i+1:]...)
		return
	}
}

// drain takes every job to its end.
func (c *crowd) drain(t *testing.T, f *fixture) {
	t.Helper()
	c.leases = nil
	for n := 0; n < 20 && len(c.completed) < len(c.accepted); n++ {
		f.clock.advance(time.Minute)
		f.settle(t)
		for id, j := range f.sound(t, c.accepted...) {
			switch j.state {
			case api.JobHeld:
				if _, err := f.Approve(t.Context(), f.tenant, id); err != nil {
					t.Errorf("Approve: %v", err)
				}
			case api.JobDead:
				if _, err := f.Retry(t.Context(), f.tenant, id); err != nil {
					t.Errorf("Retry: %v", err)
				}
			}
		}
		got, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: crowdQueues, WorkerID: "w", Count: 1000})
		if err != nil {
			t.Fatalf("Fetch: %v", err)
		}
		c.leases = append(c.leases, got...)
		for _, l := range got {
			c.complete(t, f, l)
		}
	}
}

// TestMaxConcurrencyIsExact: 16 fetchers of three brokers race for the slots of a queue.
func TestMaxConcurrencyIsExact(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			brokers := replicas(t, backend)
			most := int64(5)
			if _, err := brokers[0].Configure(t.Context(), brokers[0].tenant, namespace, emails, queue.Change{MaxConcurrency: &most}); err != nil {
				t.Fatalf("Configure: %v", err)
			}
			const all = 120
			brokers[0].many(t, all)
			var work, watch sync.WaitGroup
			var done, peak atomic.Int64
			active := brokers[0].store.JobKeys(brokers[0].tenant).Queue(namespace, emails).Set(string(api.JobActive))
			watch.Go(func() {
				for done.Load() < all && !t.Failed() {
					n, err := brokers[0].store.Client().ZCard(t.Context(), active).Result()
					if err != nil || n > most {
						t.Errorf("active jobs = %d, %v, want at most %d", n, err, most)
					}
					peak.Store(max(peak.Load(), n))
				}
			})
			for i := range 16 {
				work.Go(func() {
					f := brokers[i%3]
					for done.Load() < all && !t.Failed() {
						for _, j := range f.fetch(t, 1+i%4) {
							f.ack(t, j, "")
							done.Add(1)
						}
					}
				})
			}
			work.Wait()
			watch.Wait()
			if peak.Load() != most || done.Load() != all {
				t.Errorf("got at most %d jobs active at a time and %d in total, want %d and %d", peak.Load(), done.Load(), most, all)
			}
			if got := brokers[0].fetch(t, 10); len(got) != 0 {
				t.Errorf("fetch at the end: got %+v, want no job", got)
			}
		})
	}
}
