package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestSchedulesThatCannotBeReadDelayNoOther of their tenant, nor of another one.
func TestSchedulesThatCannotBeReadDelayNoOther(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			cfg := backend.Config(t)
			f := newTicking(t, cfg)
			rdb := f.rdb()
			for i := range 100 { // more than a page
				state, inFlight := f.store.ScheduleKeys(f.add(t, fmt.Sprintf("broken-%02d", i), nil))
				var err error
				switch i % 5 {
				case 0:
					err = rdb.HSet(t.Context(), state, "turn", "x").Err()
				case 1:
					err = rdb.Set(t.Context(), strings.TrimSuffix(state, ":state")+":meta", "{", 0).Err()
				case 2:
					rdb.Del(t.Context(), state)
					err = rdb.Set(t.Context(), state, "no hash", 0).Err()
				case 3:
					err = rdb.Set(t.Context(), inFlight, "no set", 0).Err()
				case 4:
					err = rdb.HSet(t.Context(), state, "turn", "007").Err()
				}
				if err != nil {
					t.Fatalf("HSet: %v", err)
				}
			}
			sound := f.add(t, "sound", nil)
			beside := f.beside(t, cfg)
			beside.tenant = storagetest.Tenant(t)
			other := beside.add(t, "sound", nil)
			due := append(f.due(t), beside.due(t)...)
			for range 4 {
				f.advance(time.Second)
				_, _ = f.Tend(t.Context(), due, f.ms.Load()) // of those that cannot be read
				due = append(f.due(t), beside.due(t)...)
			}
			for of, path := range map[*ticking]storage.SchedulePath{f: sound, beside: other} {
				if fired := of.load(t, path).State.Fired; fired != 4 {
					t.Errorf("schedule %s of %s: got %d ticks fired in 4 s, want 4", path.Name, of.tenant, fired)
				}
			}
			// A turn that no write would find as it was read is none.
			if _, err := f.schedules.Load(t.Context(), f.path("broken-04")); err == nil {
				t.Error("Load of a state with turn 007: got no error, want one")
			}
			// Who can be read again is not forgotten.
			state, _ := f.store.ScheduleKeys(f.path("broken-00"))
			rdb.HSet(t.Context(), state, "turn", 7)
			f.advance(time.Minute)
			_, _ = f.Tend(t.Context(), f.due(t), f.ms.Load())
			if s := f.load(t, f.path("broken-00")).State; s.Fired == 0 {
				t.Errorf("repaired schedule: got state %+v, want ticks fired", s)
			}
		})
	}
}

// TestAScheduleThatCannotBeReadCanBeDeleted without a revision.
func TestAScheduleThatCannotBeReadCanBeDeleted(t *testing.T) {
	t.Parallel()
	eachTicking(t, func(t *testing.T, f *ticking) {
		path := f.add(t, "broken", nil)
		state, _ := f.store.ScheduleKeys(path)
		f.rdb().HSet(t.Context(), state, "turn", "x")
		s := newSchedules(t, f)
		if err := s.Delete(t.Context(), f.tenant, namespace, "broken", 7); err == nil {
			t.Error("Delete of an unreadable schedule with a revision: got no error, want one")
		}
		if err := s.Delete(t.Context(), f.tenant, namespace, "broken", 0); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if _, err := s.Get(t.Context(), f.tenant, namespace, "broken"); api.ErrorCode(err) != api.CodeScheduleNotFound {
			t.Errorf("Get after Delete: got error %v, want code %s", err, api.CodeScheduleNotFound)
		}
		if n := f.rdb().Exists(t.Context(), state).Val(); n != 0 {
			t.Error("Delete: got the state left, want it removed")
		}
	})
}

func newSchedules(t *testing.T, f *ticking) *scheduler.Schedules {
	t.Helper()
	s, err := scheduler.NewSchedules(f.store, f.broker, f.Ticker)
	if err != nil {
		t.Fatalf("NewSchedules: %v", err)
	}
	return s
}
