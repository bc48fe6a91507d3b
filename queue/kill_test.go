package queue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestRepairersMendWhatAKilledStoreLeaves kills the store at random moments, also during scripts,
// whose earlier writes KVRocks keeps. Every confirmed job exists, and after maintenance and a
// repairer every index is correct.
func TestRepairersMendWhatAKilledStoreLeaves(t *testing.T) {
	t.Parallel()
	kills := storagetest.Kills()
	server := storagetest.DurableServer(t)
	cfg := storage.Config{URL: server.URL}
	whole := newFixture(t, cfg)
	brokers := []*fixture{whole, whole.beside(t, cfg, -5*time.Second), whole.beside(t, cfg, 0)}
	repaired, failed, all := map[string]int{}, 0, 0
	for range kills {
		m := newMob(t)
		for i, f := range brokers {
			of := *f
			of.tenant = m.tenant
			m.brokers[i] = &of
		}
		m.prepare()
		m.rage(func() {
			<-time.After(20*time.Millisecond + rand.N(200*time.Millisecond))
			server.Kill()
		})
		server.Start(t)
		for _, f := range brokers {
			storagetest.AwaitReachable(t, f.store)
		}
		f := *m.brokers[0]
		f.crashed = true
		f.sound(t, m.accepted...)
		f.crashed, f.repaired = false, true
		for kind, n := range f.repair(t) {
			repaired[kind] += n
		}
		f.sound(t, m.accepted...)
		m.soundCallbacks(&f)
		failed, all = failed+m.failed, all+len(m.accepted)
		f.empty(t)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d jobs were accepted, %d calls failed, repairs: %v", all, failed, repaired)
	if failed < kills {
		t.Errorf("got %d calls that failed by a kill, want at least %d", failed, kills)
	}
}

// repair runs passes of a repairer over the whole store until every suspect is old enough to be
// repaired, and returns the number of repairs by kind.
func (f *fixture) repair(t *testing.T) map[string]int {
	t.Helper()
	repaired := map[string]int{}
	r := f.NewRepairer()
	for range 4 {
		for _, scan := range []func() (repair.Findings, error){
			func() (repair.Findings, error) {
				return r.Queues(t.Context(), f.tenant, f.clock.ms.Load(), 100_000)
			},
			func() (repair.Findings, error) { return r.Jobs(t.Context(), f.clock.ms.Load(), 100_000) },
		} {
			for end := false; !end; {
				found, err := scan()
				if err != nil {
					t.Fatalf("scan: %v", err)
				}
				for _, m := range found.Repairs {
					repaired[m.Kind]++
				}
				for _, id := range found.Unreadable {
					t.Errorf("record %s cannot be read, want all readable", id)
				}
				end = found.End
			}
		}
		f.settle(t)
		f.clock.advance(61 * time.Second)
	}
	return repaired
}

// mob is a group of clients that make random calls to a store that is killed.
type mob struct {
	t       *testing.T
	tenant  string
	brokers [3]*fixture
	batches []api.Batch

	mu       sync.Mutex
	accepted []string
	leases   []api.FetchedJob
	failed   int // calls that the store did not answer
}

func newMob(t *testing.T) *mob { return &mob{t: t, tenant: storagetest.Tenant(t)} }

// prepare makes the batches, which have callbacks.
func (m *mob) prepare() {
	m.t.Helper()
	for range 3 {
		b, err := m.brokers[0].CreateBatch(m.t.Context(), m.tenant, namespace, &api.BatchCallback{Queue: "callbacks", NewJob: job(`1`)})
		if err != nil {
			m.t.Fatalf("CreateBatch: %v", err)
		}
		m.batches = append(m.batches, *b)
	}
}

// rage runs the clients until the store, which kill stops, is unavailable.
func (m *mob) rage(kill func()) {
	var clients sync.WaitGroup
	for i := range 9 {
		clients.Go(func() {
			for n := 0; ; n++ {
				switch err := m.step(m.brokers[i%3], i); api.ErrorCode(err) {
				case "", api.CodeJobState, api.CodeJobNotFound, api.CodeStoreConflict, api.CodeBatchSealed:
				case api.CodeStoreUnavailable:
					m.mu.Lock()
					m.failed++
					m.mu.Unlock()
					return
				default:
					m.t.Errorf("step: got error %v, want success, a refusal or code %s", err, api.CodeStoreUnavailable)
					return
				}
			}
		})
	}
	kill()
	clients.Wait()
}

// pick removes and returns a random element, the zero value if there is none.
func pick[T any](m *mob, of *[]T) (one T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(*of) > 0 {
		one = (*of)[rand.IntN(len(*of))]
	}
	return one
}

// jobs returns jobs of every kind.
func (m *mob) jobs(f *fixture) []api.NewJob {
	jobs, batch := make([]api.NewJob, 1+rand.IntN(100)), ""
	if rand.IntN(5) == 0 {
		batch = pick(m, &m.batches).ID
	}
	for i := range jobs {
		jobs[i] = job(`1`)
		switch j := &jobs[i]; rand.IntN(10) {
		case 0:
			j.Hold = true
		case 1:
			j.RunAtMS = f.clock.ms.Load() + rand.Int64N(2000)
		case 2:
			j.ExpireAtMS = f.clock.ms.Load() + 500 + rand.Int64N(500_000)
		case 3:
			j.UniqueKey = fmt.Sprint("unique ", rand.IntN(500))
		case 4:
			if first := pick(m, &m.accepted); first != "" {
				j.DependsOn = []string{first}
			}
		case 5:
			j.MaxAttempts = 1
		default:
			j.Priority = api.Priorities()[rand.IntN(4)]
		}
		jobs[i].BatchID = batch
	}
	return jobs
}

func (m *mob) step(f *fixture, client int) error {
	ctx, q, id := m.t.Context(), crowdQueues[rand.IntN(2)], pick(m, &m.accepted)
	f.clock.advance(time.Millisecond)
	switch r := rand.IntN(20); {
	case r < 4 || id == "":
		out, err := f.Enqueue(ctx, queue.Enqueue{Tenant: m.tenant, Namespace: namespace, Queue: q, Jobs: m.jobs(f)})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.accepted = append(m.accepted, idsOf(out)...)
		return err
	case r < 8:
		got, err := f.Fetch(ctx, queue.Fetch{
			Tenant: m.tenant, Namespace: namespace, Queues: crowdQueues, WorkerID: fmt.Sprint("w", client), Count: 1 + rand.IntN(20), Lease: time.Second,
		})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.leases = append(m.leases, got...)
		return err
	case r < 16:
		return m.settle(f, r)
	case r == 16:
		_, err := f.Tend(ctx, m.tenant, namespace, q, f.clock.ms.Load())
		return err
	case r == 17:
		_, err := f.Move(ctx, m.tenant, id, q)
		return err
	case r == 18:
		if rand.IntN(2) == 0 {
			_, err := f.Cancel(ctx, m.tenant, id)
			return err
		}
		_, err := f.Hold(ctx, m.tenant, id, "why")
		if err == nil {
			_, err = f.Approve(ctx, m.tenant, id)
		}
		return err
	case r == 19 && rand.IntN(20) == 0:
		_, err := f.SealBatch(ctx, m.tenant, namespace, pick(m, &m.batches).ID)
		return err
	}
	return nil
}

// settle settles some leases, which other clients may have settled.
func (m *mob) settle(f *fixture, how int) error {
	m.mu.Lock()
	leases := slices.Clone(m.leases[:min(len(m.leases), 1+rand.IntN(10))])
	m.leases = m.leases[len(leases):]
	m.mu.Unlock()
	if len(leases) == 0 {
		return nil
	}
	var outcomes []api.JobOutcome
	var err error
	switch how {
	case 8, 9:
		fails := make([]api.JobFail, len(leases))
		for i, l := range leases {
			fails[i] = api.JobFail{ID: l.ID, LeaseEpoch: l.LeaseEpoch, Error: "broke"}
		}
		outcomes, err = f.Fail(m.t.Context(), m.tenant, fails)
	default:
		acks := make([]api.JobAck, len(leases))
		for i, l := range leases {
			acks[i] = api.JobAck{ID: l.ID, LeaseEpoch: l.LeaseEpoch, Continue: how == 10}
		}
		outcomes, err = f.Ack(m.t.Context(), m.tenant, acks)
	}
	for _, o := range outcomes {
		if !o.OK && o.Code == api.CodeStoreUnavailable {
			return api.Errorf(o.Code, "%s", o.Message)
		}
	}
	return err
}

// soundCallbacks checks that the callback of a batch exists if and only if the batch is complete.
func (m *mob) soundCallbacks(f *fixture) {
	m.t.Helper()
	jobs := f.jobs(m.t)
	for _, batch := range m.batches {
		b, err := f.GetBatch(m.t.Context(), m.tenant, namespace, batch.ID)
		if err != nil {
			m.t.Fatalf("GetBatch: %v", err)
		}
		if made := jobs[b.CallbackID] != nil; made != (b.Sealed && b.Pending == 0) {
			m.t.Errorf("batch %+v: the callback exists is %v, want %v", b, made, !made)
		}
	}
}
