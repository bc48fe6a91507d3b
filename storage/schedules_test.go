package storage_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// newSchedule is a record at its first revision, and the put that creates it.
func newSchedule(tenant, name string, createdMS, nextMS int64) schedules.Put {
	return schedules.Put{
		Path: storage.SchedulePath{Tenant: tenant, Namespace: "payments", Name: name},
		After: &schedules.Stored{Schedule: api.Schedule{
			Name: name, EverySeconds: 60, OverlapPolicy: api.OverlapSkip, Catchup: api.CatchupAll, Enabled: true,
			Revision: 1, CreatedAtMS: createdMS, UpdatedAtMS: createdMS,
		}, Principal: api.Principal{Sub: "someone", Roles: []string{"developer"}}, Access: api.AccessGranted},
		NextMS: nextMS,
	}
}

// change is a put of the next revision of what s holds.
func change(s *schedules.Loaded, nextMS int64, keep bool) schedules.Put {
	after := *s.Meta
	after.Revision++
	after.UpdatedAtMS++
	return schedules.Put{Path: s.Path, Before: s, After: &after, NextMS: nextMS, Keep: keep}
}

func loadSchedule(t *testing.T, s *storage.Store, path storage.SchedulePath) *schedules.Loaded {
	t.Helper()
	loaded, err := schedules.New(s).Load(t.Context(), path)
	if err != nil {
		t.Fatalf("Schedules.Load: %v", err)
	}
	return loaded
}

// scheduleKeyed is everything that the store keeps of a schedule, for comparisons.
func scheduleKeyed(t *testing.T, s *storage.Store, path storage.SchedulePath) map[string]string {
	t.Helper()
	ctx, rdb := t.Context(), s.Client()
	state, inFlight := s.ScheduleKeys(path)
	prefix := strings.TrimSuffix(state, ":state")
	index := strings.TrimSuffix(prefix, path.Name) + "index"
	kept := map[string]string{"meta": rdb.Get(ctx, prefix+":meta").Val(), "in flight": strings.Join(rdb.ZRange(ctx, inFlight, 0, -1).Val(), " ")}
	maps.Copy(kept, rdb.HGetAll(ctx, state).Val())
	if at, err := rdb.ZScore(ctx, s.ScheduleDueKey(path.Tenant), path.Namespace+"/"+path.Name).Result(); err == nil {
		kept["due"] = strconv.FormatInt(int64(at), 10)
	}
	if rdb.SIsMember(ctx, index, path.Name).Val() {
		kept["listed"] = "yes"
	}
	return kept
}

func TestScheduleLifecycle(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, repository, tenant := t.Context(), schedules.New(s), storagetest.Tenant(t)
		put := newSchedule(tenant, "nightly", 1_000, 61_000)
		if err := repository.Put(ctx, put); err != nil {
			t.Fatalf("Put: %v", err)
		}
		made := loadSchedule(t, s, put.Path)
		if diff := cmp.Diff(put.After, made.Meta); diff != "" {
			t.Errorf("record differs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(schedules.State{Rev: 1, Turn: 1_000, NextTickMS: 61_000}, made.State); diff != "" {
			t.Errorf("state differs (-want +got):\n%s", diff)
		}
		member := storage.DueSchedulePrefix + tenant
		due := storage.KeyDue(storage.DueShard(member))
		if at := s.Client().ZScore(ctx, due, member).Val(); at != 61_000 {
			t.Errorf("got the tenant due at %v, want 61000", at)
		}
		if ok, err := storage.NewTenants(s).HasNamespace(ctx, tenant, "payments"); !ok || err != nil {
			t.Errorf("Tenants.HasNamespace: got the namespace is not registered %v; want ok and no error", err)
		}

		if err := repository.Put(ctx, put); err != nil {
			t.Errorf("a repeat: %v", err)
		}
		other := newSchedule(tenant, "nightly", 2_000, 62_000)
		if err := repository.Put(ctx, other); api.ErrorCode(err) != api.CodeStoreConflict {
			t.Errorf("another of that name: %v; want CodeStoreConflict", err)
		}
		if diff := cmp.Diff(made, loadSchedule(t, s, put.Path)); diff != "" {
			t.Errorf("stored schedule differs (-want +got):\n%s", diff)
		}

		if err := repository.Put(ctx, change(made, 99_000, true)); err != nil {
			t.Fatalf("Put: %v", err)
		}
		kept := loadSchedule(t, s, put.Path)
		if diff := cmp.Diff(schedules.State{Rev: 2, Turn: 1_001, NextTickMS: 61_000}, kept.State); diff != "" {
			t.Errorf("change that keeps the next tick: state differs (-want +got):\n%s", diff)
		}
		stale := change(made, 99_000, false)
		stale.After.EverySeconds = 99
		if err := repository.Put(ctx, stale); api.ErrorCode(err) != api.CodeStoreConflict {
			t.Errorf("Put over a later change: got error %v, want CodeStoreConflict", err)
		}
		if err := repository.Put(ctx, change(kept, 0, false)); err != nil {
			t.Fatalf("Put: %v", err)
		}
		disabled := scheduleKeyed(t, s, put.Path)
		if disabled["due"] != "" || disabled["next_tick_ms"] != "0" || disabled["rev"] != "3" {
			t.Errorf(`disabled: got %v, want no due, next_tick_ms 0 and rev 3`, disabled)
		}
		if err := repository.Put(ctx, change(loadSchedule(t, s, put.Path), 120_000, false)); err != nil {
			t.Fatalf("Put: %v", err)
		}
		if enabled := scheduleKeyed(t, s, put.Path); enabled["due"] != "120000" || enabled["next_tick_ms"] != "120000" {
			t.Errorf(`enabled: got %v, want due and next_tick_ms 120000`, enabled)
		}

		last := loadSchedule(t, s, put.Path)
		if err := repository.Delete(ctx, made); api.ErrorCode(err) != api.CodeStoreConflict {
			t.Errorf("Delete after a later change: got error %v, want CodeStoreConflict", err)
		}
		for range 2 { // safe to repeat
			if err := repository.Delete(ctx, last); err != nil {
				t.Fatalf("Delete: %v", err)
			}
			if diff := cmp.Diff(map[string]string{"meta": "", "in flight": ""}, scheduleKeyed(t, s, put.Path)); diff != "" {
				t.Errorf("keys differ (-want +got):\n%s", diff)
			}
		}
		if err := repository.Put(ctx, change(last, 99_000, false)); api.ErrorCode(err) != api.CodeStoreConflict {
			t.Errorf("Put over a deleted schedule: got error %v, want CodeStoreConflict", err)
		}
	})
}

// TestScheduleIsMadeAnew tests that a new schedule inherits nothing from a deleted one of
// the same name, and that a replica that read the deleted one cannot advance the new one.
func TestScheduleIsMadeAnew(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		ctx, repository := t.Context(), schedules.New(s)
		put := newSchedule(storagetest.Tenant(t), "nightly", 1_000, 61_000)
		state, inFlight := s.ScheduleKeys(put.Path)
		// As a crash in the middle of a deletion leaves it.
		s.Client().HSet(ctx, state, "rev", 1, "turn", 7, "next_tick_ms", 5, "fired", 3)
		s.Client().ZAdd(ctx, inFlight, redis.Z{Score: 5, Member: "some-job"})
		if err := repository.Put(ctx, put); err != nil {
			t.Fatalf("Put: %v", err)
		}
		loaded := loadSchedule(t, s, put.Path)
		if diff := cmp.Diff(schedules.State{Rev: 1, Turn: 1_000, NextTickMS: 61_000}, loaded.State); diff != "" || len(loaded.InFlight) > 0 {
			t.Errorf("state differs (-want +got):\n%s\njobs in flight: got %v, want none", diff, loaded.InFlight)
		}
	})
}

func TestScheduleKeepsNoTickOfAnotherRevision(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		ctx, repository := t.Context(), schedules.New(s)
		put := newSchedule(storagetest.Tenant(t), "nightly", 1_000, 61_000)
		if err := repository.Put(ctx, put); err != nil {
			t.Fatalf("Put: %v", err)
		}
		state, _ := s.ScheduleKeys(put.Path)
		s.Client().HSet(ctx, state, "rev", 0) // the change before was cut short
		if err := repository.Put(ctx, change(loadSchedule(t, s, put.Path), 99_000, true)); err != nil {
			t.Fatalf("Put: %v", err)
		}
		if loaded := loadSchedule(t, s, put.Path); loaded.State.NextTickMS != 99_000 {
			t.Errorf("got state %+v, want the next tick 99000", loaded.State)
		}
	})
}

func TestScheduleStateRoundTrip(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		path := storage.SchedulePath{Tenant: storagetest.Tenant(t), Namespace: "payments", Name: "nightly"}
		want := schedules.State{
			Rev: 1, Turn: 2, NextTickMS: 3, TickSeq: 4, LastTickMS: 5, LastFiredMS: 6, LastJobID: "some-job", Fired: 7, Skipped: 8, Missed: 9,
			LastSkip: &api.ScheduleSkip{TickMS: 10, Reason: api.SkipOverlap},
		}
		state, inFlight := s.ScheduleKeys(path)
		s.Client().HSet(t.Context(), state, want.Words())
		for i := range api.MaxQueueLimit + 5 {
			s.Client().ZAdd(t.Context(), inFlight, redis.Z{Score: float64(i), Member: fmt.Sprintf("job-%03d", i)})
		}
		loaded := loadSchedule(t, s, path)
		if diff := cmp.Diff(want, loaded.State); diff != "" {
			t.Errorf("state differs (-want +got):\n%s", diff)
		}
		if len(loaded.InFlight) != api.MaxQueueLimit+1 {
			t.Errorf("got %d jobs in flight, want %d", len(loaded.InFlight), api.MaxQueueLimit+1)
		}
		s.Client().HSet(t.Context(), state, "fired", "many")
		if _, err := schedules.New(s).Load(t.Context(), path); err == nil {
			t.Error("a state that cannot be read is read")
		}
	})
}

func TestSchedulesOfManyTenants(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		repository := schedules.New(s)
		var paths []storage.SchedulePath
		for i := range 20 {
			put := newSchedule(storagetest.Tenant(t), fmt.Sprintf("job-%d", i), 1_000, 61_000+int64(i))
			if i%5 != 0 { // every fifth is not there
				if err := repository.Put(t.Context(), put); err != nil {
					t.Fatalf("Put: %v", err)
				}
			}
			paths = append(paths, put.Path)
		}
		loaded, err := repository.LoadMany(t.Context(), paths)
		if err != nil || len(loaded) != len(paths) {
			t.Fatalf("LoadMany: got %d schedules and error %v, want %d", len(loaded), err, len(paths))
		}
		for i, l := range loaded {
			if l.Path != paths[i] || (l.Meta == nil) != (i%5 == 0) || l.Meta != nil && (l.Meta.Name != paths[i].Name || l.State.NextTickMS != 61_000+int64(i)) {
				t.Errorf("LoadMany: got %+v at position %d, want %v, missing if the position is a multiple of 5, else with the next tick %d", l, i, paths[i], 61_000+int64(i))
			}
		}
	})
}

func TestScheduleList(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		ctx, repository, tenant := t.Context(), schedules.New(s), storagetest.Tenant(t)
		for _, name := range []string{"ccc", "aaa", "ddd", "bbb", "eee"} {
			if err := repository.Put(ctx, newSchedule(tenant, name, 1_000, 61_000)); err != nil {
				t.Fatalf("Put: %v", err)
			}
		}
		state, _ := s.ScheduleKeys(storage.SchedulePath{Tenant: tenant, Namespace: "payments", Name: "bbb"})
		s.Client().Del(ctx, strings.TrimSuffix(state, ":state")+":meta") // as a crash leaves it
		var pages [][]string
		for after, more := "", true; more; {
			items, next, err := repository.List(ctx, tenant, "payments", after, 2)
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			var names []string
			for _, item := range items {
				names = append(names, item.Meta.Name)
			}
			pages = append(pages, names)
			after, more = next, next != ""
		}
		if diff := cmp.Diff([][]string{{"aaa"}, {"ccc", "ddd"}, {"eee"}}, pages); diff != "" {
			t.Errorf("pages differ (-want +got):\n%s", diff)
		}
	})
}

func TestScheduleLimit(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		ctx, repository := t.Context(), schedules.New(s)
		put := newSchedule(storagetest.Tenant(t), "nightly", 1_000, 61_000)
		state, _ := s.ScheduleKeys(put.Path)
		index := strings.TrimSuffix(state, "nightly:state") + "index"
		names := make([]any, api.MaxSchedules)
		for i := range names {
			names[i] = fmt.Sprintf("job-%d", i)
		}
		s.Client().SAdd(ctx, index, names...)
		if err := repository.Put(ctx, put); api.ErrorCode(err) != api.CodeScheduleLimit {
			t.Errorf("one too many: %v; want CodeScheduleLimit", err)
		}
		if kept := scheduleKeyed(t, s, put.Path); kept["meta"] != "" || kept["listed"] != "" || kept["due"] != "" {
			t.Errorf("got %v left, want no meta, listed and due", kept)
		}
		again := newSchedule(put.Path.Tenant, "job-7", 1_000, 61_000) // its creation was cut short
		if err := repository.Put(ctx, again); err != nil {
			t.Errorf("Put: %v", err)
		}
	})
}

// TestSchedulesAreMadeByOne races creators, and then updaters, of one schedule.
func TestSchedulesAreMadeByOne(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		repository, tenant := schedules.New(s), storagetest.Tenant(t)
		race := func(put func(i int64) schedules.Put) (winner int64) {
			const racers = 8
			var done sync.WaitGroup
			errs := make([]error, racers)
			for i := range racers {
				done.Go(func() { errs[i] = repository.Put(t.Context(), put(int64(i))) })
			}
			done.Wait()
			winner = -1
			for i, err := range errs {
				switch {
				case err == nil && winner < 0:
					winner = int64(i)
				case api.ErrorCode(err) != api.CodeStoreConflict:
					t.Errorf("racer %d: got error %v, want success of one, and code %s", i, err, api.CodeStoreConflict)
				}
			}
			return winner
		}
		path := storage.SchedulePath{Tenant: tenant, Namespace: "payments", Name: "nightly"}
		won := race(func(i int64) schedules.Put { return newSchedule(tenant, "nightly", 1_000+i, 61_000+i) })
		made := loadSchedule(t, s, path)
		if made.Meta.CreatedAtMS != 1_000+won || made.State.NextTickMS != 61_000+won {
			t.Errorf("got record %+v and state %+v, want those of the racer that succeeded, %d", made.Meta, made.State, won)
		}
		won = race(func(i int64) schedules.Put {
			put := change(made, 90_000+i, false)
			put.After.EverySeconds = 100 + i
			return put
		})
		changed := loadSchedule(t, s, path)
		if changed.Meta.EverySeconds != 100+won || changed.State.NextTickMS != 90_000+won || changed.State.Rev != 2 {
			t.Errorf("got record %+v and state %+v, want those of the racer that succeeded, %d, at revision 2", changed.Meta, changed.State, won)
		}
	})
}
