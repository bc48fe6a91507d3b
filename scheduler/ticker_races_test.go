package scheduler_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

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
						t.Errorf("Run: %v", err)
					}
				})
			}
		}
		f.round(t)
		work.Wait()
		s := f.load(t, path)
		if jobs := f.jobs(t, fmt.Sprintf("q-%d", i)); len(jobs) != 1 || s.State.Fired != 1 || len(s.InFlight) != 1 || s.InFlight[0] != jobs[0].ID {
			t.Errorf("schedule %d: got %d jobs with %+v, want one job, fired and in flight", i, len(jobs), s)
		}
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
		loop := r.loop()
		work.Go(func() {
			for r.ms.Load() < begin+seconds*1000 {
				if _, err := loop.RunOnce(t.Context(), r.ms.Load()); err != nil {
					t.Errorf("RunOnce: %v", err)
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
			t.Errorf("schedule %d: got %d jobs of %d ticks with state %+v, want one job each tick fired, and all ticks fired or skipped", i, len(jobs), len(ticks), s)
		}
		if want := []int64{s.TickSeq, 1, 3}[i%3]; s.Fired != want {
			t.Errorf("schedule %d: %d fired, want %d", i, s.Fired, want)
		}
	}
}

// TestATickMayBeCutAfterAnyWrite ends the ticker's script after each of its writes, as
// a crash of KVRocks does. The next read of the schedule makes it whole: one job a tick, in its
// queue, and none beside it where the policy forbids it.
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
						t.Fatalf("Tend: %v", err)
					}
				}
				f.sound(t, path, queueName)
				if taken != nil { // a repeated tick creates the same job
					f.ack(t, taken)
				}
			})
		}
	}
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
		t.Fatalf("got %d jobs of %d ticks with state %+v, want one job each tick fired, and all ticks fired or skipped", len(jobs), len(ticks), s.State)
	}
	switch s.Meta.OverlapPolicy {
	case api.OverlapSkip:
		if len(jobs) != 1 || len(s.InFlight) != 1 || s.InFlight[0] != jobs[0].ID {
			t.Errorf("overlap policy %s: got %d jobs, in flight %v, want one, in flight", api.OverlapSkip, len(jobs), s.InFlight)
		}
	case api.OverlapQueue:
		waiting := 0
		for _, j := range jobs {
			if j.State == api.JobWaiting {
				waiting++
			}
		}
		if len(jobs) != 3 || waiting != 2 || len(s.InFlight) != 3 {
			t.Errorf("overlap policy %s: got %d of %d jobs waiting, in flight %v, want 2 of 3", api.OverlapQueue, waiting, len(jobs), s.InFlight)
		}
	}
	if next, err := scheduler.NextTicks(f.tenant, namespace, &s.Meta.Schedule, f.ms.Load(), 1); err != nil || s.State.NextTickMS != next[0] {
		t.Errorf("next tick: got %d, want %d", s.State.NextTickMS, next[0])
	}
	if s.Meta.Queue != nil && f.take(t) == nil {
		t.Error("Fetch: got no job, want one")
	}
}
