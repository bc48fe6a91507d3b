package scheduler_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// service returns the operations on the schedules of f.
func (f *ticking) service(t *testing.T) *scheduler.Schedules {
	t.Helper()
	s, err := scheduler.NewSchedules(f.store, f.broker, f.Ticker)
	if err != nil {
		t.Fatalf("NewSchedules: %v", err)
	}
	return s
}

func anybody(context.Context, *api.Schedule) error { return nil }

// somebody returns an author with all rights.
func somebody(sub string) scheduler.Author {
	return scheduler.Author{
		Principal: api.Principal{Sub: sub, Roles: []string{"developer"}}, Access: api.AccessGranted,
		May: anybody,
	}
}

var hourly = api.NewSchedule{Name: "hourly", EverySeconds: 3600, Queue: &api.ScheduleQueue{Name: "work"}}

func eachService(t *testing.T, test func(t *testing.T, f *ticking, s *scheduler.Schedules)) {
	t.Helper()
	eachTicking(t, func(t *testing.T, f *ticking) {
		t.Helper()
		test(t, f, f.service(t))
	})
}

func TestScheduleIsFiredAndStands(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, f *ticking, s *scheduler.Schedules) {
		ctx := t.Context()
		made, err := s.Create(ctx, f.tenant, namespace, &hourly, somebody("ada"))
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		if wait := made.NextRunMS - f.ms.Load(); wait <= 0 || wait > 3_600_000 {
			t.Fatalf("Create: got the next run in %d ms, want within an hour", wait)
		}
		f.ms.Store(made.NextRunMS)
		f.round(t)
		fired, err := s.Get(ctx, f.tenant, namespace, "hourly")
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		if fired.NextRunMS != made.NextRunMS+3_600_000 || fired.Fired != 1 || fired.LastRun == nil || fired.LastRun.TickMS != made.NextRunMS ||
			fired.LastRun.State != api.JobPending || len(fired.InFlight) != 1 || fired.InFlight[0] != fired.LastRun.JobID {
			t.Errorf("Get after a tick = %+v with last run %+v, want one pending job of tick %d", fired, fired.LastRun, made.NextRunMS)
		}
		f.ms.Store(fired.NextRunMS)
		f.round(t)
		skipped, err := s.Get(ctx, f.tenant, namespace, "hourly")
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		if diff := cmp.Diff(&api.ScheduleSkip{TickMS: fired.NextRunMS, Reason: api.SkipOverlap}, skipped.LastSkip); diff != "" || skipped.Skipped != 1 {
			t.Errorf("Get after a skipped tick = %+v, want one skip; -want +got of the last:\n%s", skipped, diff)
		}
		if _, _, err := s.Run(ctx, f.tenant, namespace, "hourly", "", anybody); api.ErrorCode(err) != api.CodeScheduleBusy {
			t.Errorf("Run beside another one: got error %v, want code %s", err, api.CodeScheduleBusy)
		}
	})
}

// Changes of schedules and their ticks are events, unless the queue records none.
func TestSchedulesRecordEvents(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, f *ticking, s *scheduler.Schedules) {
		ctx := event.WithActor(t.Context(), "key_1")
		made, err := s.Create(ctx, f.tenant, namespace, &hourly, somebody("ada"))
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		f.ms.Store(made.NextRunMS)
		f.round(t)
		off, on, payload := false, true, json.RawMessage(`{"a":1}`)
		for _, c := range []api.ScheduleChange{{Enabled: &off}, {Enabled: &on}, {Payload: &payload}, {}} {
			if _, err := s.Update(ctx, f.tenant, namespace, "hourly", &c, 0, somebody("ada")); err != nil {
				t.Fatalf("Update: %v", err)
			}
		}
		f.ack(t, f.take(t))
		if _, _, err := s.Run(ctx, f.tenant, namespace, "hourly", "", anybody); err != nil {
			t.Fatalf("Run: %v", err)
		}
		f.ack(t, f.take(t))
		none := event.RecordOff
		if _, err := f.broker.Configure(ctx, f.tenant, namespace, "work", queue.Change{Events: &none}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		if _, _, err := s.Run(ctx, f.tenant, namespace, "hourly", "", anybody); err != nil {
			t.Fatalf("Run: %v", err)
		}
		for range 2 {
			if err := s.Delete(ctx, f.tenant, namespace, "hourly", 0); err != nil && api.ErrorCode(err) != api.CodeScheduleNotFound {
				t.Fatalf("Delete: %v", err)
			}
		}
		page, err := events.New(f.store).Read(ctx, f.tenant, "", 100)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		var got []string
		for _, e := range page.Events {
			if e.Kind() != event.KindSchedules {
				continue
			}
			got = append(got, e.Type+" "+e.Actor)
			if e.Subject != "schedules/"+namespace+"/hourly" || e.Data.Queue != "work" || e.Data.Namespace != namespace || (e.Data.JobID != "") != (e.Type == event.ScheduleFired) {
				t.Errorf("an event: got %+v, want the schedule, its queue, and the job of a tick", e)
			}
		}
		want := []string{
			"schedule.created key_1", "schedule.fired sous/schedules", "schedule.paused key_1", "schedule.resumed key_1", "schedule.updated key_1",
			"schedule.fired key_1", "schedule.deleted key_1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestFirstTickFollowsTheCreation: a tick that passes while a schedule is checked is fired, since the
// schedule was created before it.
func TestFirstTickFollowsTheCreation(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, f *ticking, s *scheduler.Schedules) {
		minutely := api.NewSchedule{Name: "minutely", Cron: "* * * * *", Queue: &api.ScheduleQueue{Name: "work"}}
		const tick = 1_760_000_040_000 // a minute's begin
		f.ms.Store(tick - 1)
		by := somebody("ada")
		by.May = func(context.Context, *api.Schedule) error {
			f.ms.Store(tick + 2)
			return nil
		}
		made, err := s.Create(t.Context(), f.tenant, namespace, &minutely, by)
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		if made.CreatedAtMS != tick-1 || made.NextRunMS != tick {
			t.Errorf("Create: created at %d, next run at %d, want %d and %d", made.CreatedAtMS, made.NextRunMS, tick-1, tick)
		}
		f.round(t)
		if fired, err := s.Get(t.Context(), f.tenant, namespace, "minutely"); err != nil || fired.Fired != 1 || fired.LastRun.TickMS != tick {
			t.Errorf("Get after a round = %+v, error %v, want the tick of %d fired", fired, err, tick)
		}
	})
}

// TestRunsByHandAreJudged: who may not use the target is refused, also where only a
// repeat is asked for; and the keys of a schedule that is no more are free again.
func TestRunsByHandAreJudged(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, f *ticking, s *scheduler.Schedules) {
		ctx := t.Context()
		parallel := hourly
		parallel.OverlapPolicy = api.OverlapParallel
		if _, err := s.Create(ctx, f.tenant, namespace, &parallel, somebody("ada")); err != nil {
			t.Fatalf("Create: %v", err)
		}
		first, _, err := s.Run(ctx, f.tenant, namespace, "hourly", "k", anybody)
		if err != nil {
			t.Fatalf("Run: %v", err)
		}
		refuse := func(_ context.Context, asked *api.Schedule) error {
			if asked.Queue.Name != "work" {
				t.Errorf("May: got schedule %+v, want one of queue work", asked)
			}
			return api.Errorf(api.CodeAuthzDenied, "no")
		}
		for _, key := range []string{"", "k", "other"} {
			if _, _, err := s.Run(ctx, f.tenant, namespace, "hourly", key, refuse); api.ErrorCode(err) != api.CodeAuthzDenied {
				t.Errorf("Run by a caller that may not, with key %q: got error %v, want %s", key, err, api.CodeAuthzDenied)
			}
		}
		if jobs := f.jobs(t, "work"); len(jobs) != 1 {
			t.Errorf("got %d jobs, want 1", len(jobs))
		}

		if err := s.Delete(ctx, f.tenant, namespace, "hourly", 0); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		f.ms.Add(1)
		if _, err := s.Create(ctx, f.tenant, namespace, &parallel, somebody("ada")); err != nil {
			t.Fatalf("Create: %v", err)
		}
		second, _, err := s.Run(ctx, f.tenant, namespace, "hourly", "k", anybody)
		if err != nil || second.JobID == first.JobID {
			t.Errorf("Run of a schedule created anew = %+v, %v, want another job than %+v", second, err, first)
		}
	})
}

func TestScheduleTimeWhileDisabledIsNotCaughtUp(t *testing.T) {
	t.Parallel()
	eachService(t, func(t *testing.T, f *ticking, s *scheduler.Schedules) {
		ctx := t.Context()
		made, err := s.Create(ctx, f.tenant, namespace, &hourly, somebody("ada"))
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		on, off := true, false
		change := func(c api.ScheduleChange) *api.ScheduleStatus {
			t.Helper()
			status, err := s.Update(ctx, f.tenant, namespace, "hourly", &c, 0, somebody("ada"))
			if err != nil {
				t.Fatalf("Update: %v", err)
			}
			return status
		}
		// A change of something else keeps a tick that is due and not yet fired.
		f.ms.Store(made.NextRunMS + 1)
		latest := api.CatchupLatest
		if s := change(api.ScheduleChange{Catchup: &latest}); s.NextRunMS != made.NextRunMS {
			t.Errorf("Update of the catch-up policy: got next run %d, want %d as before", s.NextRunMS, made.NextRunMS)
		}
		if s := change(api.ScheduleChange{Enabled: &off}); s.NextRunMS != 0 {
			t.Errorf("Update that disables: got next run %d, want 0", s.NextRunMS)
		}
		f.advance(10 * time.Hour)
		f.round(t)
		s10 := change(api.ScheduleChange{Enabled: &on})
		if wait := s10.NextRunMS - f.ms.Load(); wait <= 0 || wait > 3_600_000 || s10.Fired != 0 {
			t.Errorf("Update that enables = %+v, want a next run within an hour and nothing fired", s10)
		}
		f.round(t)
		if status, err := s.Get(ctx, f.tenant, namespace, "hourly"); err != nil || status.Fired != 0 || status.Missed != 0 || status.NextRunMS != s10.NextRunMS {
			t.Errorf("Get = %+v, %v, want next run %d, and nothing fired or missed", status, err, s10.NextRunMS)
		}
		every := int64(10)
		if s := change(api.ScheduleChange{EverySeconds: &every}); s.NextRunMS > f.ms.Load()+10_000 {
			t.Errorf("Update to every 10 s: got next run in %d ms, want at most 10,000", s.NextRunMS-f.ms.Load())
		}
	})
}

func TestScheduleIsDeletedWithWhatACutLeft(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			f := newTicking(t, cfg)
			cutting := cfg
			cutting.ScriptPrelude = storagetest.CutAfter(5) // behind the three of the event: the record is gone, its state is not
			cut := f.beside(t, cutting).service(t)
			whole := f.service(t)
			if _, err := whole.Create(t.Context(), f.tenant, namespace, &hourly, somebody("ada")); err != nil {
				t.Fatalf("Create: %v", err)
			}
			if err := cut.Delete(t.Context(), f.tenant, namespace, "hourly", 0); err == nil {
				t.Fatal("got no error of the interrupted script, want one")
			}
			if err := whole.Delete(t.Context(), f.tenant, namespace, "hourly", 0); api.ErrorCode(err) != api.CodeScheduleNotFound {
				t.Errorf("second Delete: got error %v, want code %s", err, api.CodeScheduleNotFound)
			}
			left, err := f.schedules.Load(t.Context(), f.path("hourly"))
			if err != nil || left.State.Turn != 0 {
				t.Errorf("Load of a deleted schedule = %+v, %v, want no state", left.State, err)
			}
			if names, _, err := f.schedules.Names(t.Context(), f.tenant, namespace, "", 10); err != nil || len(names) != 0 {
				t.Errorf("Names = %v, %v, want none", names, err)
			}
		})
	}
}

// TestScheduleCreatedInPartsTicks cuts a creation and shows that a repeat, or the ticker,
// makes it whole.
func TestScheduleCreatedInPartsTicks(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			f := newTicking(t, cfg)
			cutting := cfg
			cutting.ScriptPrelude = storagetest.CutAfter(6) // behind the three of the event: the record is there, and no state
			cut, whole := f.beside(t, cutting).service(t), f.service(t)
			if _, err := cut.Create(t.Context(), f.tenant, namespace, &hourly, somebody("ada")); err == nil {
				t.Fatal("got no error of the interrupted script, want one")
			}
			found, err := whole.Get(t.Context(), f.tenant, namespace, "hourly")
			if err != nil || found.NextRunMS <= f.ms.Load() {
				t.Fatalf("Get = %+v, %v, want a next run after %d", found, err, f.ms.Load())
			}
			f.advance(time.Millisecond)
			if _, err := whole.Create(t.Context(), f.tenant, namespace, &hourly, somebody("ada")); api.ErrorCode(err) != api.CodeScheduleExists {
				t.Errorf("second Create: got error %v, want code %s", err, api.CodeScheduleExists)
			}
			latest := api.CatchupLatest
			changed, err := whole.Update(t.Context(), f.tenant, namespace, "hourly", &api.ScheduleChange{Catchup: &latest}, 0, somebody("ada"))
			if err != nil || changed.NextRunMS != found.NextRunMS {
				t.Fatalf("Update = %+v, %v, want next run %d", changed, err, found.NextRunMS)
			}
			f.ms.Store(changed.NextRunMS)
			f.round(t)
			if s, err := whole.Get(t.Context(), f.tenant, namespace, "hourly"); err != nil || s.Fired != 1 {
				t.Errorf("Get = %+v, %v, want one tick fired", s, err)
			}
		})
	}
}

func TestNewSchedulesNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := scheduler.NewSchedules(nil, nil, nil); err == nil {
		t.Error("NewSchedules without its parts: got no error, want one")
	}
}
