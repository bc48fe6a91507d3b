package scheduler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// ticking is a ticker over a store, with a tenant and a time of its own.
type ticking struct {
	*scheduler.Ticker
	store     *storage.Store
	broker    *queue.Broker
	schedules *storage.Schedules
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

// open gives f a store and what works on it.
func (f *ticking) open(t *testing.T, cfg storage.Config) {
	t.Helper()
	cfg.Clock = func() time.Time { return time.UnixMilli(f.ms.Load()) }
	f.store = storagetest.Open(t, cfg)
	var err error
	if f.broker, err = queue.New(t.Context(), f.store, queue.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.broker.Close)
	f.metrics = prometheus.NewRegistry()
	if f.Ticker, err = scheduler.NewTicker(f.store, f.broker, f.metrics, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	f.schedules = storage.NewSchedules(f.store)
	f.broker.OnSchedulesDue(f.Tend, f.Idle)
}

// beside is another replica on the same store, tenant and time.
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

// round looks after what is due of the tenant: others, who share the store, have times of
// their own.
func (f *ticking) round(t *testing.T) {
	t.Helper()
	if _, err := f.Tend(t.Context(), f.due(t), f.ms.Load()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.broker.Tend(t.Context(), f.tenant, namespace, "work", f.ms.Load()); err != nil {
		t.Fatal(err)
	}
}

func (f *ticking) path(name string) storage.SchedulePath {
	return storage.SchedulePath{Tenant: f.tenant, Namespace: namespace, Name: name}
}

// add makes a schedule of one second that fills queue work, as change says.
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
		t.Fatal(err)
	}
	err = f.schedules.Put(t.Context(), storage.SchedulePut{
		Path: f.path(name), NextMS: next[0],
		After: &storage.StoredSchedule{Schedule: s, Principal: api.Principal{Sub: "me"}, Access: api.AccessGranted},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f.path(name)
}

func (f *ticking) load(t *testing.T, path storage.SchedulePath) *storage.LoadedSchedule {
	t.Helper()
	s, err := f.schedules.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// jobs are all jobs of a queue, by tick.
func (f *ticking) jobs(t *testing.T, queueName string) (all []api.Job) {
	t.Helper()
	for _, state := range api.JobStates() {
		for after := ""; ; {
			items, next, err := f.broker.List(t.Context(), queue.List{Tenant: f.tenant, Namespace: namespace, Queue: queueName, State: state, Cursor: after, Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, items...)
			if after = next; next == "" {
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
		t.Fatal(err)
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
		t.Fatal(out, err)
	}
}

func (f *ticking) fail(t *testing.T, j *api.FetchedJob, fatal bool) {
	t.Helper()
	out, err := f.broker.Fail(t.Context(), f.tenant, []api.JobFail{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "no", Fatal: fatal}})
	if err != nil || !out[0].OK {
		t.Fatal(out, err)
	}
}

func TestTickerKeepsToTheGrid(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		created := f.ms.Load()
		path := f.add(t, "minutely", func(s *api.Schedule) {
			s.EverySeconds = 60
			s.Queue.MaxAttempts = 2
			s.Queue.Priority = api.PriorityHigh
		})
		first := f.load(t, path).State.NextTickMS
		if first <= created || first > created+60_000 {
			t.Fatalf("the first tick is %d ms ahead", first-created)
		}
		f.round(t)
		if len(f.jobs(t, "work")) != 0 {
			t.Fatal("it fired before its time")
		}
		for i := range 5 {
			f.ms.Store(first + int64(i)*60_000 + int64(i)*700) // ever later, but less than a tick
			f.round(t)
			f.round(t) // nothing is due
		}
		jobs := f.jobs(t, "work")
		if len(jobs) != 5 {
			t.Fatalf("%d jobs", len(jobs))
		}
		for i, j := range jobs {
			tick := first + int64(i)*60_000
			want := api.ScheduledTick{Schedule: "minutely", CreatedAtMS: created, TickMS: tick, TickSeq: int64(i) + 1}
			if *j.Schedule != want || string(j.Payload) != `{"n":1}` || j.MaxAttempts != 2 || j.Priority != api.PriorityHigh || j.State != api.JobPending {
				t.Errorf("job %d: %+v", i, j)
			}
			if j.ID != api.DerivedJobID("tick", f.tenant, namespace, "minutely", fmt.Sprint(created), fmt.Sprint(tick)) {
				t.Errorf("job %d has another id", i)
			}
		}
		s := f.load(t, path).State
		if s.NextTickMS != first+5*60_000 || s.TickSeq != 5 || s.Fired != 5 || s.LastTickMS != first+4*60_000 || s.LastJobID != jobs[4].ID {
			t.Errorf("it stands at %+v", s)
		}
		if got := metricstest.Value(t, f.metrics, "sous_schedule_ticks_total", "outcome=fired"); got != 5 {
			t.Errorf("%g ticks were counted", got)
		}
	})
}

// TestTickerInvokesFunctions: the record can be read before the function runs, and a
// function that is not there is for the worker to tell.
func TestTickerInvokesFunctions(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "nightly", func(s *api.Schedule) {
			s.Queue, s.Ref, s.Payload = nil, &api.JobTarget{Function: "report"}, nil
		})
		f.ms.Store(f.load(t, path).State.NextTickMS)
		f.round(t)
		jobs := f.jobs(t, "fn.report")
		if len(jobs) != 1 || jobs[0].Target.Alias != api.DefaultAlias || string(jobs[0].Payload) != "{}" ||
			jobs[0].Activation.Principal.Sub != "me" || jobs[0].Activation.Access != api.AccessGranted {
			t.Fatalf("%+v", jobs)
		}
		a, err := storage.NewActivations(f.store).Get(t.Context(), f.tenant, jobs[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"schedule":"nightly","tick_ms":%d,"tick_seq":1}`, f.ms.Load())
		if a.Status != api.StatusQueued || a.Trigger.Type != api.TriggerSchedule || string(a.Trigger.Source) != want || a.JobID != jobs[0].ID {
			t.Errorf("%+v", a)
		}
		ready, _, err := f.broker.Ready(t.Context(), f.ms.Load())
		if err != nil || !slices.Contains(ready, queue.FunctionQueue{Tenant: f.tenant, Namespace: namespace, Queue: "fn.report"}) {
			t.Errorf("ready are %v: %v", ready, err)
		}
	})
}

func TestTickerSkipsWhileARunIsUnderWay(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "skips", func(s *api.Schedule) { s.OverlapPolicy = api.OverlapSkip })
		second := func(fired, skipped int64, why string) {
			t.Helper()
			f.advance(time.Second)
			f.round(t)
			s := f.load(t, path)
			if s.State.Fired != fired || s.State.Skipped != skipped {
				t.Fatalf("%s: %d fired, %d skipped; want %d, %d", why, s.State.Fired, s.State.Skipped, fired, skipped)
			}
		}
		second(1, 0, "nothing runs")
		second(1, 1, "it waits for a worker")
		if s := f.load(t, path); s.State.LastSkip.Reason != api.SkipOverlap || len(s.InFlight) != 1 {
			t.Errorf("%+v", s)
		}
		j := f.take(t)
		second(1, 2, "it runs")
		f.fail(t, j, false)
		second(1, 3, "it waits for its retry")
		f.advance(10 * time.Second) // the ticks until then are passed over
		f.round(t)
		s := f.load(t, path)
		if j = f.take(t); j == nil || j.Attempt != 2 {
			t.Fatalf("the retry is %+v", j)
		}
		f.ack(t, j)
		if left := f.load(t, path).InFlight; len(left) != 0 {
			t.Fatalf("in flight is %v", left)
		}
		skipped := s.State.Skipped
		second(2, skipped, "it has completed")
		f.fail(t, f.take(t), true)
		second(3, skipped, "it is dead")
		if _, err := f.broker.Cancel(t.Context(), f.tenant, f.load(t, path).State.LastJobID); err != nil {
			t.Fatal(err)
		}
		second(4, skipped, "it was cancelled")
		// Whoever took the mark away died before: the job itself tells.
		j = f.take(t)
		f.ack(t, j)
		_, inFlight := f.store.ScheduleKeys(path)
		f.store.Client().ZAdd(t.Context(), inFlight, redisZ(1, j.ID), redisZ(2, api.NewJobID()))
		second(5, skipped, "the marks are of jobs that ended, or never were")
		if left := f.load(t, path).InFlight; len(left) != 1 {
			t.Errorf("in flight is %v", left)
		}
	})
}

func TestTickerQueuesRuns(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "queues", func(s *api.Schedule) { s.OverlapPolicy = api.OverlapQueue })
		for range 6 {
			f.advance(time.Second)
			f.round(t)
		}
		s := f.load(t, path)
		if s.State.Fired != 3 || s.State.Skipped != 3 || s.State.LastSkip.Reason != api.SkipQueueFull || len(s.InFlight) != 3 {
			t.Fatalf("%+v", s)
		}
		var ran []int64
		for range 3 {
			j := f.take(t)
			if j == nil {
				t.Fatalf("after %v none can be taken", ran)
			}
			if other := f.take(t); other != nil {
				t.Fatal("two run at once")
			}
			ran = append(ran, j.Spec.Schedule.TickMS)
			if len(ran) == 2 {
				f.fail(t, j, true) // the next one goes on nevertheless
			} else {
				f.ack(t, j)
			}
		}
		if !slices.IsSorted(ran) || f.take(t) != nil || len(f.load(t, path).InFlight) != 0 {
			t.Errorf("they ran in order %v", ran)
		}
		f.advance(time.Second)
		f.round(t)
		if f.take(t) == nil {
			t.Error("it does not go on")
		}
	})
}

func TestTickerCatchesUp(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		all := f.add(t, "all", func(s *api.Schedule) { s.MaxCatchupTicks = 7; s.Queue.Name = "all" })
		latest := f.add(t, "latest", func(s *api.Schedule) { s.Catchup = api.CatchupLatest; s.Queue.Name = "latest" })
		f.advance(30 * time.Minute)
		f.round(t)
		onTime := int64(api.CatchupGraceMS / 1000) // and one more, by the phase
		for path, late := range map[storage.SchedulePath]int64{all: 7, latest: 0} {
			s := f.load(t, path).State
			jobs := f.jobs(t, path.Name)
			if over := int64(len(jobs)) - late - onTime; over < 0 || over > 1 || s.Fired != int64(len(jobs)) || s.Fired+s.Missed != s.TickSeq {
				t.Errorf("%s: %d jobs, %+v", path.Name, len(jobs), s)
			}
			for i, j := range jobs[1:] {
				if j.Schedule.TickMS != jobs[i].Schedule.TickMS+1000 || j.Schedule.TickSeq != jobs[i].Schedule.TickSeq+1 {
					t.Errorf("%s: behind %+v comes %+v", path.Name, jobs[i].Schedule, j.Schedule)
				}
			}
		}
		none := f.add(t, "none", func(s *api.Schedule) { s.Catchup = api.CatchupNone; s.EverySeconds = 3600; s.Queue.Name = "none" })
		f.ms.Store(f.load(t, none).State.NextTickMS + 5*3_600_000 + 60_000)
		f.round(t)
		if s := f.load(t, none).State; s.Fired != 0 || s.Missed != 6 || s.NextTickMS <= f.ms.Load() || len(f.jobs(t, "none")) != 0 {
			t.Errorf("none: %+v", s)
		}
	})
}

func TestTickerRespectsTheQueue(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "unique", func(s *api.Schedule) { s.Queue.UniqueKey = "one" })
		tick := func(fired, skipped int64, reason string) {
			t.Helper()
			f.advance(time.Second)
			f.round(t)
			s := f.load(t, path).State
			if s.Fired != fired || s.Skipped != skipped || reason != "" && s.LastSkip.Reason != reason {
				t.Fatalf("%+v, want %d fired, %d skipped, %s", s, fired, skipped, reason)
			}
		}
		tick(1, 0, "")
		tick(1, 1, api.SkipDuplicate)
		f.ack(t, f.take(t))
		tick(2, 1, "")
		f.ack(t, f.take(t))
		on, off := true, false
		if _, err := f.broker.Configure(t.Context(), f.tenant, namespace, "work", queue.Change{Draining: &on}); err != nil {
			t.Fatal(err)
		}
		tick(2, 2, api.SkipDraining)
		if _, err := f.broker.Configure(t.Context(), f.tenant, namespace, "work", queue.Change{Draining: &off}); err != nil {
			t.Fatal(err)
		}
		tick(3, 2, "")
		// A holder that a crash left: the key names a job that is not there.
		f.ack(t, f.take(t))
		key := f.store.JobKeys(f.tenant).Unique(namespace, "work", "one")
		if err := f.store.Client().Set(t.Context(), key, api.NewJobID(), time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		tick(4, 2, "")
	})
}

func TestRunByHand(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "hourly", func(s *api.Schedule) { s.EverySeconds, s.OverlapPolicy = 3600, api.OverlapSkip })
		before := f.load(t, path).State
		id := api.NewJobID()
		run, err := f.Run(t.Context(), path, id, anybody)
		if err != nil || run.JobID != id || run.TickMS != f.ms.Load() {
			t.Fatal(run, err)
		}
		after := f.load(t, path)
		if s := after.State; s.NextTickMS != before.NextTickMS || s.TickSeq != 0 || s.Fired != 1 || s.LastJobID != id || !slices.Equal(after.InFlight, []string{id}) {
			t.Errorf("%+v", after)
		}
		if again, err := f.Run(t.Context(), path, id, anybody); err != nil || again.JobID != id || again.State != api.JobPending || len(f.jobs(t, "work")) != 1 {
			t.Errorf("again: %+v, %v", again, err)
		}
		if _, err := f.Run(t.Context(), path, api.NewJobID(), anybody); api.ErrorCode(err) != api.CodeScheduleBusy {
			t.Errorf("a second run: %v", err)
		}
		if _, err := f.Run(t.Context(), f.path("nobody"), api.NewJobID(), anybody); api.ErrorCode(err) != api.CodeScheduleNotFound {
			t.Errorf("of no schedule: %v", err)
		}
		f.ack(t, f.take(t))
		on := true
		if _, err := f.broker.Configure(t.Context(), f.tenant, namespace, "work", queue.Change{Draining: &on}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Run(t.Context(), path, api.NewJobID(), anybody); api.ErrorCode(err) != api.CodeQueueDraining {
			t.Errorf("into a queue that drains: %v", err)
		}
	})
}

// TestRunsByHandRace: the overlap policy holds among many who ask at once, and the ticker.
func TestRunsByHandRace(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newTicking(t, cfg)
	replicas := []*ticking{f, f.beside(t, cfg), f.beside(t, cfg)}
	for i := range 20 {
		path := f.add(t, fmt.Sprintf("skips-%d", i), func(s *api.Schedule) {
			s.OverlapPolicy, s.Queue.Name = api.OverlapSkip, fmt.Sprintf("q-%d", i)
		})
		f.ms.Store(f.load(t, path).State.NextTickMS)
		var work sync.WaitGroup
		for _, r := range replicas {
			for range 3 {
				work.Go(func() {
					_, err := r.Run(t.Context(), path, api.NewJobID(), anybody)
					if code := api.ErrorCode(err); err != nil && code != api.CodeScheduleBusy && code != api.CodeStoreConflict {
						t.Error(err)
					}
				})
			}
		}
		f.round(t)
		work.Wait()
		s := f.load(t, path)
		if jobs := f.jobs(t, fmt.Sprintf("q-%d", i)); len(jobs) != 1 || s.State.Fired != 1 || len(s.InFlight) != 1 || s.InFlight[0] != jobs[0].ID {
			t.Errorf("%d jobs: %+v", len(jobs), s)
		}
	}
}

// TestTickerMendsWhatACrashLeft: a due entry without its schedule, of another moment,
// and a change whose state did not follow.
func TestTickerMendsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		due := f.store.ScheduleDueKey(f.tenant)
		score := func(name string) float64 { return f.store.Client().ZScore(t.Context(), due, namespace+"/"+name).Val() }
		path := f.add(t, "early", func(s *api.Schedule) { s.EverySeconds = 3600 })
		next := f.load(t, path).State.NextTickMS
		for _, name := range []string{"early", "gone"} {
			f.store.Client().ZAdd(t.Context(), due, redisZ(float64(f.ms.Load()), namespace+"/"+name))
		}
		pipe := f.store.Client().Pipeline()
		storage.MarkDue(t.Context(), pipe, storage.DueSchedulePrefix+f.tenant, f.ms.Load())
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.round(t)
		if got := score("early"); int64(got) != next {
			t.Errorf("it is due at %f, its next tick is %d", got, next)
		}
		if got := score("gone"); got != 0 {
			t.Errorf("a schedule that is not there is due at %f", got)
		}
		// The record was changed, the state was not.
		state, _ := f.store.ScheduleKeys(path)
		f.store.Client().HSet(t.Context(), state, "rev", 0)
		f.ms.Store(next + 1)
		f.round(t)
		if s := f.load(t, path).State; s.Rev != 1 || s.NextTickMS != next+3_600_000 || s.Fired != 0 {
			t.Errorf("%+v", s)
		}
		if got := metricstest.Value(t, f.metrics, "sous_schedule_ticks_total", "outcome=mended"); got != 3 {
			t.Errorf("%g were mended", got)
		}
	})
}

// TestAScheduleThatCannotBeReadStopsNoOtherTenant breaks one tenant's record.
func TestAScheduleThatCannotBeReadStopsNoOtherTenant(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newTicking(t, cfg)
	broken := f.add(t, "broken", nil)
	state, _ := f.store.ScheduleKeys(broken)
	f.store.Client().HSet(t.Context(), state, "turn", "x")
	f.add(t, "beside", nil)
	other := f.beside(t, cfg)
	other.tenant = storagetest.Tenant(t)
	other.add(t, "sound", nil)
	f.advance(time.Second)
	if _, _, err := f.broker.RunOnce(t.Context(), f.ms.Load()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("it says %v", err)
	}
	if len(other.jobs(t, "work")) != 1 || len(f.jobs(t, "work")) != 1 {
		t.Errorf("%d and %d jobs", len(other.jobs(t, "work")), len(f.jobs(t, "work")))
	}
	if due := f.store.Client().ZScore(t.Context(), storage.KeyDue(storage.DueShard("schedule/"+f.tenant)), "schedule/"+f.tenant).Val(); int64(due) <= f.ms.Load() {
		t.Errorf("the tenant is due at %f", due)
	}
}

// TestTicksAreFiredOnce has several replicas look after the same schedules while time
// passes and their changes race: each tick has one job.
func TestTicksAreFiredOnce(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newTicking(t, cfg)
	replicas := []*ticking{f, f.beside(t, cfg), f.beside(t, cfg), f.beside(t, cfg)}
	const count, seconds = 40, 40
	for i := range count {
		f.add(t, fmt.Sprintf("tick-%d", i), func(s *api.Schedule) {
			s.OverlapPolicy = []string{api.OverlapParallel, api.OverlapSkip, api.OverlapQueue}[i%3]
			s.Queue.Name = fmt.Sprintf("q-%d", i)
		})
	}
	begin := f.ms.Load()
	var work sync.WaitGroup
	for _, r := range replicas {
		work.Go(func() {
			for r.ms.Load() < begin+seconds*1000 {
				if _, _, err := r.broker.RunOnce(t.Context(), r.ms.Load()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Go(func() {
		for range seconds * 10 {
			f.advance(100 * time.Millisecond)
			f.round(t)
		}
	})
	work.Wait()
	f.advance(10 * time.Second) // a claim of a replica that ended may be left
	f.round(t)
	f.round(t) // one visit's time may not have been enough
	for i := range count {
		s := f.load(t, f.path(fmt.Sprintf("tick-%d", i))).State
		jobs := f.jobs(t, fmt.Sprintf("q-%d", i))
		ticks := map[int64]bool{}
		for _, j := range jobs {
			ticks[j.Schedule.TickMS] = true
		}
		if len(ticks) != len(jobs) || int(s.Fired) != len(jobs) || s.Fired+s.Skipped != s.TickSeq || s.TickSeq < seconds || s.TickSeq > seconds+11 || s.Missed != 0 {
			t.Errorf("schedule %d: %d jobs for %d ticks, %+v", i, len(jobs), len(ticks), s)
		}
		if want := []int64{s.TickSeq, 1, 3}[i%3]; s.Fired != want {
			t.Errorf("schedule %d: %d fired, want %d", i, s.Fired, want)
		}
	}
}

// TestATickMayBeCutAfterAnyWrite ends the ticker's script after each of its writes, as
// a crash of KVRocks does. The next look makes it whole: one job a tick, in its queue,
// and none beside it where the policy forbids it.
func TestATickMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for cut := range 12 {
		for name, change := range map[string]func(*api.Schedule){
			"parallel": func(*api.Schedule) {},
			"skip":     func(s *api.Schedule) { s.OverlapPolicy = api.OverlapSkip },
			"queue":    func(s *api.Schedule) { s.OverlapPolicy = api.OverlapQueue },
			"unique":   func(s *api.Schedule) { s.Queue.UniqueKey = "k" },
			"expires":  func(s *api.Schedule) { s.Queue, s.Ref = nil, &api.JobTarget{Function: "work"} },
		} {
			t.Run(fmt.Sprintf("%s/%d", name, cut), func(t *testing.T) {
				t.Parallel()
				f := newTicking(t, storage.Config{URL: server.URL})
				path := f.add(t, name, change)
				queueName := "work"
				if name == "expires" {
					queueName = "fn.work"
				}
				broken := f.beside(t, storage.Config{URL: server.URL, ScriptPrelude: storagetest.CutAfter(cut)})
				var taken *api.FetchedJob
				for range 3 { // the second may be cut in another place
					f.advance(time.Second)
					_, _ = broken.Tend(t.Context(), f.due(t), f.ms.Load())
					if name == "parallel" && taken == nil {
						taken = f.take(t)
					}
					f.advance(6 * time.Second) // its claim passes
					if _, err := f.Tend(t.Context(), f.due(t), f.ms.Load()); err != nil {
						t.Fatal(err)
					}
				}
				f.sound(t, path, queueName)
				if taken != nil { // what was made again is what it was
					f.ack(t, taken)
				}
			})
		}
	}
}

// due are the tenant's members of the due sets.
func (f *ticking) due(t *testing.T) []storage.DueMember {
	t.Helper()
	m := storage.DueSchedulePrefix + f.tenant
	key := storage.KeyDue(storage.DueShard(m))
	score, err := f.store.Client().ZScore(t.Context(), key, m).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if err != nil || int64(score) > f.ms.Load() {
		return nil
	}
	return []storage.DueMember{{Key: key, Member: m, Score: int64(score)}}
}

// sound holds a schedule after cuts to what it says it fired.
func (f *ticking) sound(t *testing.T, path storage.SchedulePath, queueName string) {
	t.Helper()
	s := f.load(t, path)
	jobs := f.jobs(t, queueName)
	ticks := map[int64]int{}
	for _, j := range jobs {
		ticks[j.Schedule.TickMS]++
	}
	if int(s.State.Fired) != len(jobs) || len(ticks) != len(jobs) || s.State.Fired+s.State.Skipped != s.State.TickSeq || s.State.Missed != 0 || s.State.Fired == 0 {
		t.Fatalf("%d jobs for %d ticks: %+v", len(jobs), len(ticks), s.State)
	}
	switch s.Meta.OverlapPolicy {
	case api.OverlapSkip:
		if len(jobs) != 1 || len(s.InFlight) != 1 || s.InFlight[0] != jobs[0].ID {
			t.Errorf("it skips, and %d run: %v", len(jobs), s.InFlight)
		}
	case api.OverlapQueue:
		waiting := 0
		for _, j := range jobs {
			if j.State == api.JobWaiting {
				waiting++
			}
		}
		if len(jobs) != 3 || waiting != 2 || len(s.InFlight) != 3 {
			t.Errorf("%d wait of %d: %v", waiting, len(jobs), s.InFlight)
		}
	}
	if next, err := scheduler.NextTicks(f.tenant, namespace, &s.Meta.Schedule, f.ms.Load(), 1); err != nil || s.State.NextTickMS != next[0] {
		t.Errorf("its next tick is %d, not %d", s.State.NextTickMS, next[0])
	}
	if s.Meta.Queue != nil && f.take(t) == nil {
		t.Error("none of its jobs can be taken")
	}
}

func (f *ticking) rdb() redis.UniversalClient { return f.store.Client() }

func redisZ(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }
