package storage_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// TestScheduleScriptsMayBeCut interrupts each script after each of its writes, checks the
// remaining records, and runs the script again.
func TestScheduleScriptsMayBeCut(t *testing.T) {
	t.Parallel()
	created := func(tenant string) schedules.Put { return newSchedule(tenant, "nightly", 1_000, 61_000) }
	operations := map[string]scheduleOperation{
		"create": func(_ *testing.T, _ *storage.Store, tenant string) func(*schedules.Repository) error {
			return func(r *schedules.Repository) error { return r.Put(t.Context(), created(tenant)) }
		},
		"create over remains": func(t *testing.T, s *storage.Store, tenant string) func(*schedules.Repository) error {
			t.Helper()
			state, inFlight := s.ScheduleKeys(created(tenant).Path)
			s.Client().HSet(t.Context(), state, "rev", 1, "turn", 7, "next_tick_ms", 5)
			s.Client().ZAdd(t.Context(), inFlight, redis.Z{Score: 5, Member: "some-job"})
			return func(r *schedules.Repository) error { return r.Put(t.Context(), created(tenant)) }
		},
		"change the timing": func(t *testing.T, s *storage.Store, tenant string) func(*schedules.Repository) error {
			t.Helper()
			put := change(mustPut(t, s, created(tenant)), 90_000, false)
			return func(r *schedules.Repository) error { return r.Put(t.Context(), put) }
		},
		"keep the next tick": func(t *testing.T, s *storage.Store, tenant string) func(*schedules.Repository) error {
			t.Helper()
			put := change(mustPut(t, s, created(tenant)), 90_000, true)
			return func(r *schedules.Repository) error { return r.Put(t.Context(), put) }
		},
		"disable": func(t *testing.T, s *storage.Store, tenant string) func(*schedules.Repository) error {
			t.Helper()
			put := change(mustPut(t, s, created(tenant)), 0, false)
			return func(r *schedules.Repository) error { return r.Put(t.Context(), put) }
		},
		"delete": func(t *testing.T, s *storage.Store, tenant string) func(*schedules.Repository) error {
			t.Helper()
			made := mustPut(t, s, created(tenant))
			return func(r *schedules.Repository) error { return r.Delete(t.Context(), made) }
		},
	}
	for _, b := range storagetest.AllBackends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			s := storagetest.Open(t, cfg)
			var cuts []*schedules.Repository
			for k := range 10 {
				cfg.ScriptPrelude = storagetest.CutAfter(k)
				cuts = append(cuts, schedules.New(storagetest.Open(t, cfg)))
			}
			for name, prepare := range operations {
				cutSchedule(t, name, prepare, s, cuts)
			}
		})
	}
}

type scheduleOperation = func(t *testing.T, s *storage.Store, tenant string) func(*schedules.Repository) error

// cutSchedule makes an operation's call on stores that cut its script after ever more
// writes, until one is not reached.
func cutSchedule(t *testing.T, name string, prepare scheduleOperation, s *storage.Store, cuts []*schedules.Repository) {
	t.Helper()
	path := func(tenant string) storage.SchedulePath {
		return storage.SchedulePath{Tenant: tenant, Namespace: "payments", Name: "nightly"}
	}
	tenant := storagetest.Tenant(t)
	if err := prepare(t, s, tenant)(schedules.New(s)); err != nil {
		t.Fatalf("%s: prepare: got error %v, want success", name, err)
	}
	want := scheduleKeyed(t, s, path(tenant))
	for k, cut := range cuts {
		tenant := storagetest.Tenant(t)
		call := prepare(t, s, tenant)
		err := call(cut)
		if err == nil {
			if k == 0 {
				t.Errorf("%s: got a script without writes, want at least 1", name)
			}
			return
		}
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
			t.Fatalf("%s: got error %v, want the CUT of the prelude", name, err)
		}
		left := loadSchedule(t, s, path(tenant))
		if left.Meta != nil && left.State.Rev == left.Meta.Revision && left.State.NextTickMS != 0 && left.State.NextTickMS < 61_000 {
			t.Errorf("%s, interrupted after %d writes: got the next tick %d of an earlier schedule, want none or at least 61000", name, k, left.State.NextTickMS)
		}
		// A delete removes the record, every other operation writes another one than was read.
		wrote := left.Meta == nil
		if name != "delete" {
			wrote = left.Meta != nil && (left.Meta.Revision == 2 || strings.HasPrefix(name, "create"))
		}
		if types := scheduleEvents(t, s, tenant); wrote && !slices.Contains(types, scheduleCuts[name]) {
			t.Errorf("%s, interrupted after %d writes: got the change with the events %v, want %s among them", name, k, types, scheduleCuts[name])
		}
		if err := call(schedules.New(s)); err != nil {
			t.Errorf("%s, cut after %d writes, again: %v", name, k, err)
		}
		if diff := cmp.Diff(want, scheduleKeyed(t, s, path(tenant))); diff != "" {
			t.Errorf("%s, repeated after %d writes: schedule differs (-want +got):\n%s", name, k, diff)
		}
	}
	t.Errorf("%s: got ever more writes, want an end", name)
}

// scheduleCuts are the types of the events of the operations that are interrupted.
var scheduleCuts = map[string]string{
	"create": event.ScheduleCreated, "create over remains": event.ScheduleCreated, "change the timing": event.ScheduleUpdated,
	"keep the next tick": event.ScheduleUpdated, "disable": event.ScheduleUpdated, "delete": event.ScheduleDeleted,
}

// scheduleEvents returns the types of the events of the tenant's schedule.
func scheduleEvents(t *testing.T, s *storage.Store, tenant string) (types []string) {
	t.Helper()
	page, err := events.New(s).Read(t.Context(), tenant, "", 100)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	for _, e := range page.Events {
		if e.Subject != "schedules/payments/nightly" {
			t.Errorf("an event: got subject %s, want schedules/payments/nightly", e.Subject)
		}
		types = append(types, e.Type)
	}
	return types
}

func mustPut(t *testing.T, s *storage.Store, put schedules.Put) *schedules.Loaded {
	t.Helper()
	if err := schedules.New(s).Put(t.Context(), put); err != nil {
		t.Fatalf("Schedules.Put: %v", err)
	}
	return loadSchedule(t, s, put.Path)
}
