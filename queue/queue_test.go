package queue_test

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// clock is the manual clock of a test.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_760_000_000_000)
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// fixture is a broker over a store, with a tenant and a clock of its own.
type fixture struct {
	*queue.Broker
	store  *storage.Store
	clock  *clock
	tenant string
	// crashed reports that a script was interrupted. Stale entries may be in indexes until
	// a call reads them, and stale unique keys until an enqueue needs them.
	crashed bool
	// repaired reports that a repairer ran after an interruption. Stale entries may only
	// be in the sets of ended jobs, and unique keys as before.
	repaired bool
}

// each runs test on every backend.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, backend.Config(t)))
		})
	}
}

// eachAlone is each with stores that no other test uses. A test that repairs all jobs and batches
// by a clock of its own would change those of others.
func eachAlone(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for name, config := range storagetest.OwnStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, config(t)))
		})
	}
}

func newFixture(t testing.TB, cfg storage.Config) *fixture {
	t.Helper()
	c := newClock()
	cfg.Clock = c.now
	store := storagetest.Open(t, cfg)
	return &fixture{Broker: brokerOn(t, store), store: store, clock: c, tenant: storagetest.Tenant(t)}
}

func brokerOn(t testing.TB, store *storage.Store, retention ...time.Duration) *queue.Broker {
	t.Helper()
	cfg := queue.Config{Random: func() float64 { return 0.5 }}
	if len(retention) > 0 {
		cfg.Retention.Default = retention[0]
	}
	b, err := queue.New(t.Context(), store, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(b.Close)
	return b
}

const (
	namespace = "default"
	emails    = "emails"
)

// add enqueues jobs to emails.
func (f *fixture) add(t testing.TB, jobs ...api.NewJob) []api.EnqueuedJob {
	t.Helper()
	out, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: jobs})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	return out
}

func job(payload string, change ...func(*api.NewJob)) api.NewJob {
	j := api.NewJob{Payload: json.RawMessage(payload)}
	for _, c := range change {
		c(&j)
	}
	return j
}

// fetch claims up to n jobs of emails.
func (f *fixture) fetch(t testing.TB, n int) []api.FetchedJob {
	t.Helper()
	jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{emails}, WorkerID: "w1", Count: n})
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	return jobs
}

func (f *fixture) get(t testing.TB, id string) *api.Job {
	t.Helper()
	j, err := f.Get(t.Context(), f.tenant, id)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return j
}

func (f *fixture) ack(t testing.TB, j api.FetchedJob, result string) api.JobOutcome {
	t.Helper()
	out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Result: json.RawMessage(result)}})
	if err != nil {
		t.Fatalf("Ack: %v", err)
	}
	return out[0]
}

func (f *fixture) fail(t testing.TB, j api.FetchedJob, change ...func(*api.JobFail)) api.JobOutcome {
	t.Helper()
	fail := api.JobFail{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "broke", Stack: "at line 1"}
	for _, c := range change {
		c(&fail)
	}
	out, err := f.Fail(t.Context(), f.tenant, []api.JobFail{fail})
	if err != nil {
		t.Fatalf("Fail: %v", err)
	}
	return out[0]
}

// tend does the due work of emails. RunOnce would also maintain the queues of tests with other
// clocks.
func (f *fixture) tend(t testing.TB) queue.Counts {
	t.Helper()
	counts, err := f.Tend(t.Context(), f.tenant, namespace, emails, f.clock.ms.Load())
	if err != nil {
		t.Fatalf("Tend: %v", err)
	}
	return counts
}

func TestJobLifecycle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		added := f.add(t, job(`{"to":"a"}`), job(`{"to":"b"}`))
		if added[0].State != api.JobPending || added[0].Duplicate {
			t.Fatalf("add: got %+v, want a pending job and no duplicate", added)
		}
		got := f.fetch(t, 10)
		if len(got) != 2 || got[0].ID != added[0].ID || string(got[0].Payload) != `{"to":"a"}` || got[0].Attempt != 1 || got[0].LeaseEpoch != 1 {
			t.Fatalf("fetch: got %+v, want two jobs, first %s with its payload, attempt 1 and epoch 1", got, added[0].ID)
		}
		if more := f.fetch(t, 10); len(more) != 0 {
			t.Fatalf("second Fetch = %+v, want no job", more)
		}
		for range 2 { // a repeat succeeds
			if out := f.ack(t, got[0], `{"sent":true}`); !out.OK || out.State != api.JobCompleted {
				t.Errorf("ack: got %+v, want success and state completed", out)
			}
		}
		if out := f.fail(t, got[0]); out.Code != api.CodeJobLeaseLost || out.State != api.JobCompleted {
			t.Errorf("Fail after the end of the job = %+v, want CodeJobLeaseLost and completed", out)
		}
		j := f.get(t, got[0].ID)
		if j.State != api.JobCompleted || string(j.Result) != `{"sent":true}` || j.EndedAtMS == 0 || j.MaxAttempts != 4 {
			t.Errorf("got job %+v, want state completed with result {\"sent\":true}, its end, and 4 attempts", j)
		}
		// The other job fails until it is dead.
		for attempt := 1; attempt <= 4; attempt++ {
			for range 2 {
				if out := f.fail(t, got[1]); !out.OK {
					t.Fatalf("fail in attempt %d: got %+v, want success", attempt, out)
				}
			}
			j = f.get(t, got[1].ID)
			if len(j.Errors) != attempt || j.Errors[attempt-1].Attempt != attempt || j.Errors[0].Stack != "at line 1" {
				t.Fatalf("attempt %d: got errors %+v, want one for each attempt, with the stack \"at line 1\"", attempt, j.Errors)
			}
			if attempt == 4 {
				break
			}
			wait := time.Duration(5<<(attempt-1)) * time.Second
			if j.State != api.JobRetrying || j.DueAtMS != f.clock.ms.Load()+wait.Milliseconds() {
				t.Fatalf("attempt %d: the job is %s and due in %d ms, want retrying after its backoff", attempt, j.State, j.DueAtMS-f.clock.ms.Load())
			}
			f.tend(t)
			if early := f.fetch(t, 1); len(early) != 0 {
				t.Fatalf("attempt %d: got %+v before the backoff ended, want no job", attempt, early)
			}
			f.clock.advance(wait)
			if c := f.tend(t); c.Promoted != 1 {
				t.Fatalf("tend after attempt %d: got %+v, want 1 promoted", attempt, c)
			}
			next := f.fetch(t, 1)
			if len(next) != 1 || next[0].Attempt != attempt+1 {
				t.Fatalf("fetch after attempt %d: got %+v, want one job in attempt %d", attempt, next, attempt+1)
			}
			got[1] = next[0]
		}
		if j.State != api.JobDead || j.DeadReason != api.DeadAttempts {
			t.Errorf("got job %+v, want state dead for reason %s", j, api.DeadAttempts)
		}
		if _, err := f.Retry(t.Context(), f.tenant, j.ID); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		for attempt := 5; attempt <= 6; attempt++ { // each retry allows one more
			again := f.fetch(t, 1)
			if len(again) != 1 || again[0].Attempt != attempt || again[0].MaxAttempts != attempt {
				t.Fatalf("fetch after the retry: got %+v, want one job in attempt %d of %d", again, attempt, attempt)
			}
			if out := f.fail(t, again[0]); !out.OK || out.State != api.JobDead {
				t.Fatalf("fail of attempt %d: got %+v, want state dead", attempt, out)
			}
			if _, err := f.Retry(t.Context(), f.tenant, j.ID); err != nil {
				t.Fatalf("Retry: %v", err)
			}
		}
		var numbers []int
		for _, e := range f.get(t, j.ID).Errors {
			numbers = append(numbers, e.Attempt)
		}
		if want := []int{1, 2, 3, 4, 5, 6}; !slices.Equal(numbers, want) {
			t.Errorf("errors of attempts: got %v, want %v", numbers, want)
		}
	})
}

func TestLeasesExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`, func(j *api.NewJob) { j.MaxAttempts = 2 }))
		first := f.fetch(t, 1)[0]
		f.clock.advance(20 * time.Second)
		out, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: first.ID, LeaseEpoch: 1, Progress: &api.JobProgress{Current: 1, Total: 2}, Checkpoint: json.RawMessage(`{"at":7}`)}})
		if err != nil || !out[0].OK {
			t.Fatalf("Heartbeat: got %v, error %v, want success", out, err)
		}
		f.clock.advance(20 * time.Second)
		if c := f.tend(t); c.Reclaimed != 0 {
			t.Fatalf("Tend = %+v, want no reclaimed job before the extended lease expires", c)
		}
		f.clock.advance(11 * time.Second)
		if c := f.tend(t); c.Reclaimed != 1 {
			t.Fatalf("tend after the end of the lease: got %+v, want 1 reclaimed", c)
		}
		second := f.fetch(t, 1)[0]
		if second.Attempt != 2 || second.LeaseEpoch != 2 || string(second.Checkpoint) != `{"at":7}` {
			t.Fatalf("second fetch: got %+v, want attempt 2, epoch 2 and checkpoint {\"at\":7}", second)
		}
		if out := f.ack(t, first, `"late"`); out.Code != api.CodeJobLeaseLost || out.State != api.JobActive {
			t.Fatalf("ack by the first worker: got %+v, want CodeJobLeaseLost and state active", out)
		}
		f.clock.advance(31 * time.Second)
		if c := f.tend(t); c.Crashed != 1 {
			t.Fatalf("tend after the last attempt: got %+v, want 1 crashed", c)
		}
		if j := f.get(t, first.ID); j.State != api.JobDead || j.DeadReason != api.DeadCrashed || len(j.Errors) != 2 {
			t.Fatalf("got job %+v, want state dead for reason %s with 2 errors", j, api.DeadCrashed)
		}
	})
}
