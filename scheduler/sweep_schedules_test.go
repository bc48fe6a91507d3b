package scheduler_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// sweepAll makes passes until every suspect has looked wrong for long enough, and counts the
// repairs.
func (f *ticking) sweepAll(t *testing.T, sw *sweeper.Sweeper) map[string]int {
	t.Helper()
	mended := map[string]int{}
	for range 8 {
		f.advance(5 * time.Second)
		counts, err := sw.RunOnce(t.Context(), f.store.Now())
		if err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		for _, r := range counts.Repairs {
			mended[r.Kind]++
		}
	}
	return mended
}

func (f *ticking) sweeper(t *testing.T) *sweeper.Sweeper {
	t.Helper()
	s, err := sweeper.New(f.store, f.broker, sweeper.Config{Reads: 10_000}, zap.NewNop())
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

func TestSweeperMendsSchedules(t *testing.T) {
	t.Parallel()
	hourly := func(s *api.Schedule) { s.EverySeconds, s.OverlapPolicy = 3600, api.OverlapSkip }
	for name, c := range map[string]struct {
		breaks func(t *testing.T, f *ticking, path storage.SchedulePath)
		want   map[string]int
	}{
		"sound": {breaks: func(*testing.T, *ticking, storage.SchedulePath) {}},
		"a name in the list is no schedule's": {
			func(t *testing.T, f *ticking, _ storage.SchedulePath) {
				f.rdb().SAdd(t.Context(), "cs:schedule:"+f.tenant+":"+namespace+":index", "missing")
				state, inFlight := f.store.ScheduleKeys(f.path("missing"))
				f.rdb().HSet(t.Context(), state, "turn", 7)
				f.rdb().ZAdd(t.Context(), inFlight, redis.Z{Score: 1, Member: api.NewJobID()})
			},
			map[string]int{"schedule_index": 1},
		},
		"its due entry is gone": {
			func(t *testing.T, f *ticking, _ storage.SchedulePath) {
				f.add(t, "other", hourly)
				f.rdb().ZRem(t.Context(), f.store.ScheduleDueKey(f.tenant), namespace+"/hourly")
			},
			map[string]int{"schedule_due": 1},
		},
		"its due entry is late": {
			func(t *testing.T, f *ticking, _ storage.SchedulePath) {
				f.rdb().ZAdd(t.Context(), f.store.ScheduleDueKey(f.tenant), redis.Z{Score: 1_900_000_000_000, Member: namespace + "/hourly"})
			},
			map[string]int{"schedule_due": 1},
		},
		"its change was cut short": {
			func(t *testing.T, f *ticking, path storage.SchedulePath) {
				state, _ := f.store.ScheduleKeys(path)
				f.rdb().HSet(t.Context(), state, "rev", 0)
			},
			map[string]int{"schedule_due": 1},
		},
		"its creation was cut short": {
			func(t *testing.T, f *ticking, path storage.SchedulePath) {
				state, _ := f.store.ScheduleKeys(path)
				f.rdb().Del(t.Context(), state)
				f.rdb().Del(t.Context(), f.store.ScheduleDueKey(f.tenant))
				f.rdb().ZRem(t.Context(), storage.KeyDue(storage.DueShard("schedule/"+f.tenant)), "schedule/"+f.tenant)
			},
			map[string]int{"schedule_due": 1},
		},
		"its tenant is in no due set": {
			func(t *testing.T, f *ticking, _ storage.SchedulePath) {
				f.rdb().ZRem(t.Context(), storage.KeyDue(storage.DueShard("schedule/"+f.tenant)), "schedule/"+f.tenant)
			},
			map[string]int{"schedule_tenant": 1},
		},
		"its tenant is due too late": {
			func(t *testing.T, f *ticking, _ storage.SchedulePath) {
				f.rdb().ZAdd(t.Context(), storage.KeyDue(storage.DueShard("schedule/"+f.tenant)), redis.Z{Score: 1_900_000_000_000, Member: "schedule/" + f.tenant})
			},
			map[string]int{"schedule_tenant": 1},
		},
		"jobs in flight are gone": {
			func(t *testing.T, f *ticking, path storage.SchedulePath) {
				_, inFlight := f.store.ScheduleKeys(path)
				f.rdb().ZAdd(t.Context(), inFlight, redis.Z{Score: 1, Member: api.NewJobID()}, redis.Z{Score: 2, Member: api.NewJobID()})
				if _, err := f.Run(t.Context(), f.add(t, "runs", hourly), api.NewJobID(), anybody); err != nil { // this one lives
					t.Fatalf("Run: %v", err)
				}
			},
			map[string]int{"schedule_in_flight": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTicking(t, storage.Config{URL: storagetest.Redis(t).URL})
			path := f.add(t, "hourly", hourly)
			c.breaks(t, f, path)
			if got := f.sweepAll(t, f.sweeper(t)); !maps.Equal(got, c.want) {
				t.Errorf("mended were %v, want %v", got, c.want)
			}
			if got := f.sweepAll(t, f.sweeper(t)); len(got) != 0 {
				t.Errorf("second sweep: got repairs %v, want none", got)
			}
			f.round(t) // a tick may have come meanwhile
			for j := f.take(t); j != nil; j = f.take(t) {
				f.ack(t, j)
			}
			s := f.load(t, path)
			if s.State.NextTickMS <= f.ms.Load() || len(s.InFlight) != 0 {
				t.Fatalf("repaired schedule: got %+v, want a tick ahead and no job in flight", s)
			}
			f.ms.Store(s.State.NextTickMS)
			f.round(t)
			if after := f.load(t, path).State; after.Fired != s.State.Fired+1 {
				t.Errorf("next tick of the repaired schedule: got state %+v, want one tick more fired than %d", after, s.State.Fired)
			}
			if n := f.rdb().Exists(t.Context(), "cs:schedule:"+f.tenant+":"+namespace+":missing:state", "cs:schedule:"+f.tenant+":"+namespace+":missing:inflight").Val(); n != 0 {
				t.Errorf("got %d keys of a schedule that does not exist, want none", n)
			}
		})
	}
}

// TestSweeperLeavesSchedulesAlone sweeps while schedules tick and runs come and go.
func TestSweeperLeavesSchedulesAlone(t *testing.T) {
	t.Parallel()
	f := newTicking(t, storage.Config{URL: storagetest.Redis(t).URL})
	const count = 600 // more than a page
	for i := range count {
		f.add(t, fmt.Sprintf("skips-%d", i), func(s *api.Schedule) { s.OverlapPolicy, s.EverySeconds = api.OverlapSkip, 7 })
	}
	sw := f.sweeper(t)
	for range 20 {
		f.advance(1700 * time.Millisecond)
		counts, err := sw.RunOnce(t.Context(), f.store.Now())
		if err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		if len(counts.Repairs) > 0 {
			t.Fatalf("RunOnce: got repairs %+v, want none", counts.Repairs)
		}
		f.round(t)
		for j := f.take(t); j != nil; j = f.take(t) {
			f.ack(t, j)
		}
	}
}

// TestSweeperGoesOnBehindATenantThatCannotBeRead though its list of queues is none.
func TestSweeperGoesOnBehindATenantThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newTicking(t, storage.Config{URL: storagetest.Redis(t).URL})
	var tenants []string
	for range 8 {
		f.tenant = storagetest.Tenant(t)
		tenants = append(tenants, f.tenant)
		f.add(t, "hourly", func(s *api.Schedule) { s.EverySeconds = 3600 })
		f.rdb().Set(t.Context(), f.store.JobKeys(f.tenant).Queues(), "no set", 0)
		f.rdb().ZRem(t.Context(), storage.KeyDue(storage.DueShard("schedule/"+f.tenant)), "schedule/"+f.tenant)
	}
	sw, failed := f.sweeper(t), 0
	for range 8 {
		f.advance(5 * time.Second)
		if _, err := sw.RunOnce(t.Context(), f.store.Now()); err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("sweeper: got no error, want that of the tenant that cannot be read")
	}
	for _, f.tenant = range tenants {
		if f.marked(t) == 0 {
			t.Errorf("tenant %s: got no mark in the due sets, want one", f.tenant)
		}
	}
}
