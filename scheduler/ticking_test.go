package scheduler_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// ticking is a ticker over a store, with a tenant and a clock of its own.
type ticking struct {
	*scheduler.Ticker
	store     *storage.Store
	broker    *queue.Broker
	schedules *schedules.Repository
	metrics   *prometheus.Registry
	tenant    string
	ms        *atomic.Int64
}

const namespace = "default"

func newTicking(t *testing.T, cfg storage.Config) *ticking {
	t.Helper()
	f := &ticking{tenant: storagetest.Tenant(t), ms: &atomic.Int64{}}
	f.ms.Store(1_760_000_000_000)
	f.open(t, cfg)
	return f
}

// open opens a store for f, with a broker and a ticker.
func (f *ticking) open(t *testing.T, cfg storage.Config) {
	t.Helper()
	cfg.Clock = func() time.Time { return time.UnixMilli(f.ms.Load()) }
	f.store = storagetest.Open(t, cfg)
	var err error
	f.broker, err = queue.New(t.Context(), f.store, queue.Config{})
	if err != nil {
		t.Fatalf("queue.New: %v", err)
	}
	t.Cleanup(f.broker.Close)
	f.metrics = prometheus.NewRegistry()
	f.Ticker, err = scheduler.NewTicker(f.store, f.broker, f.metrics, zap.NewNop())
	if err != nil {
		t.Fatalf("NewTicker: %v", err)
	}
	f.schedules = schedules.New(f.store)
}

// loop returns a loop of this replica.
func (f *ticking) loop() *scheduler.Loop {
	return scheduler.NewLoop(f.store, f.broker, f.Ticker, zap.NewNop())
}

// beside returns another replica with the same store, tenant and clock.
func (f *ticking) beside(t *testing.T, cfg storage.Config) *ticking {
	t.Helper()
	other := *f
	other.open(t, cfg)
	return &other
}

func eachTicking(t *testing.T, test func(t *testing.T, f *ticking)) {
	t.Helper()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			test(t, newTicking(t, backend.Config(t)))
		})
	}
}

func (f *ticking) advance(d time.Duration) int64 { return f.ms.Add(d.Milliseconds()) }

// round does the due work of f's tenant only: other tests share the store, and have clocks of
// their own.
func (f *ticking) round(t *testing.T) {
	t.Helper()
	if _, err := f.Tend(t.Context(), f.due(t), f.ms.Load()); err != nil {
		t.Fatalf("Tend: %v", err)
	}
	if _, err := f.broker.Tend(t.Context(), f.tenant, namespace, "work", f.ms.Load()); err != nil {
		t.Fatalf("Tend: %v", err)
	}
}

func (f *ticking) path(name string) storage.SchedulePath {
	return storage.SchedulePath{Tenant: f.tenant, Namespace: namespace, Name: name}
}

// add creates a schedule of one second that fills the queue work, modified by change.
func (f *ticking) add(t *testing.T, name string, change func(*api.Schedule)) storage.SchedulePath {
	t.Helper()
	s := api.Schedule{
		Name: name, EverySeconds: 1, OverlapPolicy: api.OverlapParallel, QueueLimit: 3, Catchup: api.CatchupAll, MaxCatchupTicks: 60,
		Queue: &api.ScheduleQueue{Name: "work"}, Payload: json.RawMessage(`{"n":1}`), Enabled: true,
		Revision: 1, CreatedAtMS: f.ms.Load(), UpdatedAtMS: f.ms.Load(),
	}
	if change != nil {
		change(&s)
	}
	next, err := scheduler.NextTicks(f.tenant, namespace, &s, f.ms.Load(), 1)
	if err != nil {
		t.Fatalf("NextTicks: %v", err)
	}
	err = f.schedules.Put(t.Context(), schedules.Put{
		Path: f.path(name), NextMS: next[0],
		After: &schedules.Stored{Schedule: s, Principal: api.Principal{Sub: "me"}, Access: api.AccessGranted},
	})
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return f.path(name)
}

func (f *ticking) load(t *testing.T, path storage.SchedulePath) *schedules.Loaded {
	t.Helper()
	s, err := f.schedules.Load(t.Context(), path)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s
}

// stored returns the stored part of a job, which has more than the API shows.
func (f *ticking) stored(t *testing.T, id string) (spec api.JobSpec) {
	t.Helper()
	raw, err := f.store.Client().Get(t.Context(), f.store.JobKeys(f.tenant).Spec(id)).Result()
	if err != nil {
		t.Fatalf("read the spec of job %s: %v", id, err)
	}
	header, _, _ := strings.Cut(raw, "\n")
	if err := json.Unmarshal([]byte(header), &spec); err != nil {
		t.Fatalf("decode the spec of job %s: %v", id, err)
	}
	return spec
}

// jobs returns all jobs of a queue in the order of their ticks.
func (f *ticking) jobs(t *testing.T, queueName string) (all []api.Job) {
	t.Helper()
	for _, state := range api.JobStates() {
		for after := ""; ; {
			items, next, err := f.broker.List(t.Context(), queue.List{Tenant: f.tenant, Namespace: namespace, Queue: queueName, State: state, Cursor: after, Limit: 200})
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			all = append(all, items...)
			after = next
			if next == "" {
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b api.Job) int { return int(a.Schedule.TickMS - b.Schedule.TickMS) })
	return all
}

// take fetches one job of work.
func (f *ticking) take(t *testing.T) *api.FetchedJob {
	t.Helper()
	jobs, err := f.broker.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"work"}, WorkerID: "w1", Count: 1})
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	if len(jobs) == 0 {
		return nil
	}
	return &jobs[0]
}

func (f *ticking) ack(t *testing.T, j *api.FetchedJob) {
	t.Helper()
	out, err := f.broker.Ack(t.Context(), f.tenant, []api.JobAck{{ID: j.ID, LeaseEpoch: j.LeaseEpoch}})
	if err != nil || !out[0].OK {
		t.Fatalf("Ack(%s) = %+v, %v, want it accepted", j.ID, out, err)
	}
}

func (f *ticking) fail(t *testing.T, j *api.FetchedJob, fatal bool) {
	t.Helper()
	out, err := f.broker.Fail(t.Context(), f.tenant, []api.JobFail{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "no", Fatal: fatal}})
	if err != nil || !out[0].OK {
		t.Fatalf("Fail(%s) = %+v, %v, want it accepted", j.ID, out, err)
	}
}

// due returns the tenant's member of the due sets, if it is due.
func (f *ticking) due(t *testing.T) []storage.DueMember {
	t.Helper()
	m := storage.DueSchedulePrefix + f.tenant
	key := storage.KeyDue(storage.DueShard(m))
	score, err := f.store.Client().ZScore(t.Context(), key, m).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("ZScore: %v", err)
	}
	if err != nil || int64(score) > f.ms.Load() {
		return nil
	}
	return []storage.DueMember{{Key: key, Member: m, Score: int64(score)}}
}

func (f *ticking) rdb() redis.UniversalClient { return f.store.Client() }

func redisZ(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }
