package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

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
			t.Fatalf("first tick: got %d ms after the creation, want within 60,000", first-created)
		}
		f.round(t)
		if len(f.jobs(t, "work")) != 0 {
			t.Fatal("got a job before the first tick, want none")
		}
		for i := range 5 {
			f.ms.Store(first + int64(i)*60_000 + int64(i)*700) // ever later, but less than a tick
			f.round(t)
			f.round(t) // nothing is due
		}
		jobs := f.jobs(t, "work")
		if len(jobs) != 5 {
			t.Fatalf("got %d jobs, want 5", len(jobs))
		}
		for i, j := range jobs {
			tick := first + int64(i)*60_000
			want := api.JobTick{Schedule: "minutely", TickMS: tick, TickSeq: int64(i) + 1}
			if *j.Schedule != want || string(j.Payload) != `{"n":1}` || j.MaxAttempts != 2 || j.Priority != api.PriorityHigh || j.State != api.JobPending {
				t.Errorf("job %d = %+v of tick %+v, want tick %+v", i, j, j.Schedule, want)
			}
			if j.ID != api.DerivedJobID("tick", f.tenant, namespace, "minutely", fmt.Sprint(created), fmt.Sprint(tick)) {
				t.Errorf("job %d: got id %s, want the one derived from tick %d", i, j.ID, tick)
			}
		}
		s := f.load(t, path).State
		if s.NextTickMS != first+5*60_000 || s.TickSeq != 5 || s.Fired != 5 || s.LastTickMS != first+4*60_000 || s.LastJobID != jobs[4].ID {
			t.Errorf("after 5 ticks: got state %+v, want 5 fired, the last at %d with job %s", s, first+4*60_000, jobs[4].ID)
		}
		if got := metricstest.Value(t, f.metrics, "sous_schedule_ticks_total", "outcome=fired"); got != 5 {
			t.Errorf("got %g fired ticks in the metrics, want 5", got)
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
		if len(jobs) != 1 || jobs[0].Target.Alias != api.DefaultAlias || string(jobs[0].Payload) != "{}" || jobs[0].ActivationID != jobs[0].ID {
			t.Fatalf("jobs = %+v, want one of the default alias", jobs)
		}
		if on := f.stored(t, jobs[0].ID).Activation; on.Principal.Sub != "me" || on.Access != api.AccessGranted {
			t.Errorf("the job runs for %+v with access %v, want me and granted", on.Principal, on.Access)
		}
		a, err := activations.New(f.store).Get(t.Context(), f.tenant, jobs[0].ID)
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		want := fmt.Sprintf(`{"schedule":"nightly","tick_ms":%d,"tick_seq":1}`, f.ms.Load())
		if a.Status != api.StatusQueued || a.Trigger.Type != api.TriggerSchedule || string(a.Trigger.Source) != want || a.JobID != jobs[0].ID {
			t.Errorf("activation = %+v, want it queued for job %s with source %s", a, jobs[0].ID, want)
		}
		ready, _, err := f.broker.Ready(t.Context(), f.ms.Load())
		if err != nil || !slices.Contains(ready, queue.FunctionQueue{Tenant: f.tenant, Namespace: namespace, Queue: "fn.report"}) {
			t.Errorf("Ready = %v, %v, want queue fn.report", ready, err)
		}
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
			t.Fatalf("Run = %+v, %v, want job %s at %d", run, err, id, f.ms.Load())
		}
		after := f.load(t, path)
		if s := after.State; s.NextTickMS != before.NextTickMS || s.TickSeq != 0 || s.Fired != 1 || s.LastJobID != id || !slices.Equal(after.InFlight, []string{id}) {
			t.Errorf("after Run: got %+v, want one run more, in flight, and the same next tick", after)
		}
		if again, err := f.Run(t.Context(), path, id, anybody); err != nil || again.JobID != id || again.State != api.JobPending || len(f.jobs(t, "work")) != 1 {
			t.Errorf("Run again with the same id = %+v, %v, want the pending job %s and no other", again, err, id)
		}
		if _, err := f.Run(t.Context(), path, api.NewJobID(), anybody); api.ErrorCode(err) != api.CodeScheduleBusy {
			t.Errorf("second Run: got error %v, want code %s", err, api.CodeScheduleBusy)
		}
		if _, err := f.Run(t.Context(), f.path("missing"), api.NewJobID(), anybody); api.ErrorCode(err) != api.CodeScheduleNotFound {
			t.Errorf("Run of a missing schedule: got error %v, want code %s", err, api.CodeScheduleNotFound)
		}
		f.ack(t, f.take(t))
		on := true
		if _, err := f.broker.Configure(t.Context(), f.tenant, namespace, "work", queue.Change{Draining: &on}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		if _, err := f.Run(t.Context(), path, api.NewJobID(), anybody); api.ErrorCode(err) != api.CodeQueueDraining {
			t.Errorf("Run into a queue that drains: got error %v, want code %s", err, api.CodeQueueDraining)
		}
	})
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
			t.Fatalf("Exec: %v", err)
		}
		f.round(t)
		if got := score("early"); int64(got) != next {
			t.Errorf("schedule early: got due at %.0f, want its next tick %d", got, next)
		}
		if got := score("gone"); got != 0 {
			t.Errorf("missing schedule: got due at %.0f, want no entry", got)
		}
		// The record was changed, the state was not: the tick that it waited for stands.
		state, _ := f.store.ScheduleKeys(path)
		f.store.Client().HSet(t.Context(), state, "rev", 0)
		f.ms.Store(next + 1)
		f.round(t)
		if s := f.load(t, path).State; s.Rev != 1 || s.NextTickMS != next+3_600_000 || s.Fired != 1 {
			t.Errorf("after an interrupted change: got state %+v, want revision 1, one tick fired, the next at %d", s, next+3_600_000)
		}
		if got := metricstest.Value(t, f.metrics, "sous_schedule_ticks_total", "outcome=mended"); got != 3 {
			t.Errorf("got %g mended schedules in the metrics, want 3", got)
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
	if _, err := f.loop().RunOnce(t.Context(), f.ms.Load()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("RunOnce: got error %v, want one that names the schedule %q", err, "broken")
	}
	if len(other.jobs(t, "work")) != 1 || len(f.jobs(t, "work")) != 1 {
		t.Errorf("sound schedules: got %d jobs of the other tenant and %d of the one with the broken schedule, want 1 each", len(other.jobs(t, "work")), len(f.jobs(t, "work")))
	}
	if due := f.store.Client().ZScore(t.Context(), storage.KeyDue(storage.DueShard("schedule/"+f.tenant)), "schedule/"+f.tenant).Val(); int64(due) <= f.ms.Load() {
		t.Errorf("tenant with a broken schedule: got due at %.0f, want after %d", due, f.ms.Load())
	}
}

// A change that a crash cut between the record and the state costs no tick that its timing
// still has, and a tick that it has no more is not fired.
func TestCutChangeLosesNoTick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*api.Schedule)
		fired  int
	}{
		"of its payload": {func(s *api.Schedule) { s.Payload = []byte(`{"n":2}`) }, 1},
		"of its timing":  {func(s *api.Schedule) { s.EverySeconds = 3601 }, 0},
		"that stops it":  {func(s *api.Schedule) { s.Enabled = false }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTicking(t, storage.Config{URL: storagetest.Redis(t).URL})
			path := f.add(t, "hourly", func(s *api.Schedule) { s.EverySeconds = 3600 })
			first := f.load(t, path)
			changed := *first.Meta
			c.change(&changed.Schedule)
			changed.Revision++
			err := f.schedules.Put(t.Context(), schedules.Put{Path: path, Before: first, After: &changed, NextMS: first.State.NextTickMS})
			if err != nil {
				t.Fatalf("Put: %v", err)
			}
			state, _ := f.store.ScheduleKeys(path)
			f.rdb().HSet(t.Context(), state, "rev", first.State.Rev) // what a cut leaves
			f.ms.Store(first.State.NextTickMS + 50)
			f.round(t)
			if jobs := f.jobs(t, "work"); len(jobs) != c.fired {
				t.Errorf("%d ticks were fired, want %d", len(jobs), c.fired)
			}
		})
	}
}
