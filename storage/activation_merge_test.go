package storage_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// TestListOfManyFunctions lists the activations of two namespaces together, a few at a time:
// each comes once, newest first, also those of a deleted function and those of one
// millisecond.
func TestListOfManyFunctions(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		base := s.NowMS() - 5000
		var all []*activations.Record
		for i := range 6 {
			f.fn.Namespace, f.fn.Name = []string{"payments", "shop"}[i%2], fmt.Sprintf("function%d", i)
			if _, err := f.functions.Create(t.Context(), f.fn); err != nil {
				t.Fatalf("functions.Create: %v", err)
			}
			for n := range 30 * i { // the first has none, the last more than one window
				a := f.running()
				a.StartMS = base + int64(n/7)
				if _, _, err := f.activations.Start(t.Context(), a); err != nil {
					t.Fatalf("activations.Start: %v", err)
				}
				all = append(all, a)
			}
		}
		if err := f.functions.Delete(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, s.NowMS()); err != nil {
			t.Fatalf("functions.Delete: %v", err)
		}
		slices.SortFunc(all, func(a, b *activations.Record) int {
			return cmp.Or(cmp.Compare(b.StartMS, a.StartMS), cmp.Compare(b.ActivationID, a.ActivationID))
		})
		tail := all[17].ActivationID[28:]
		for name, tc := range map[string]struct {
			filter activations.Filter
			want   func(a *activations.Record) bool
		}{
			"tenant":    {activations.Filter{Limit: 7}, func(*activations.Record) bool { return true }},
			"namespace": {activations.Filter{Limit: 100, Namespace: "shop"}, func(a *activations.Record) bool { return a.Namespace == "shop" }},
			"times": {activations.Filter{Limit: 9, FromMS: base + 3, ToMS: base + 8},
				func(a *activations.Record) bool { return a.StartMS >= base+3 && a.StartMS < base+8 }},
			"end of id": {activations.Filter{Limit: 10, ID: tail}, func(a *activations.Record) bool { return a == all[17] }},
			"beginning of id": {activations.Filter{Limit: 10, Namespace: all[3].Namespace, ID: all[3].ActivationID[:12]},
				func(a *activations.Record) bool { return a == all[3] }},
			"none": {activations.Filter{Limit: 10, Namespace: "empty"}, func(*activations.Record) bool { return false }},
		} {
			var want []string
			for _, a := range all {
				if tc.want(a) {
					want = append(want, a.ActivationID)
				}
			}
			tc.filter.Tenant = f.fn.Tenant
			if got := f.listed(t, tc.filter); !slices.Equal(got, want) {
				t.Errorf("%s: got other activations than want:\n%s", name, gocmp.Diff(got, want))
			}
		}
	})
}

// TestListRefusesTooManyFunctions: a list that would read too many indexes is refused.
func TestListRefusesTooManyFunctions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())}))
	const together = 20 // fewer than the connections of a store
	for _, err := range storagetest.Concurrently(together, func(first int) error {
		for i := first; i < activations.MaxListed; i += together {
			fn := f.fn
			fn.Name = fmt.Sprintf("function%d", i)
			if _, err := f.functions.Create(t.Context(), fn); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Fatalf("functions.Create: %v", err)
		}
	}
	_, _, err := f.activations.List(t.Context(), activations.Filter{Tenant: f.fn.Tenant})
	if api.ErrorCode(err) != api.CodeValidationName {
		t.Errorf("a list of %d functions: got %v, want %s", activations.MaxListed+1, err, api.CodeValidationName)
	}
}

// TestListOfManyNamespaces: a list of a tenant with more namespaces than it may have is refused with
// one command, and one with fewer reads their functions in few round trips.
func TestListOfManyNamespaces(t *testing.T) {
	t.Parallel()
	var trips atomic.Int64
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	s.Client().AddHook(storagetest.Before(func([]redis.Cmder) { trips.Add(1) }))
	sent := storagetest.CountCommands(s.Client())
	f := newFixture(t, s)
	a := f.running()
	if _, _, err := f.activations.Start(t.Context(), a); err != nil {
		t.Fatalf("activations.Start: %v", err)
	}
	register := func(from, to int) {
		t.Helper()
		names := make([]any, 0, to-from)
		for i := from; i < to; i++ {
			names = append(names, fmt.Sprintf("empty%05d", i))
		}
		if err := s.Client().SAdd(t.Context(), s.Keys().Namespaces(f.fn.Tenant), names...).Err(); err != nil {
			t.Fatalf("SAdd: %v", err)
		}
	}
	register(1, activations.MaxListed)
	began := trips.Load()
	items, _, err := f.activations.List(t.Context(), activations.Filter{Tenant: f.fn.Tenant, Limit: 1})
	if err != nil || len(items) != 1 || items[0].ActivationID != a.ActivationID {
		t.Errorf("a list of %d namespaces: got %d activations and error %v, want that of the only function", activations.MaxListed, len(items), err)
	}
	if got, most := trips.Load()-began, int64(100); got > most {
		t.Errorf("a list of %d namespaces: got %d round trips, want at most %d", activations.MaxListed, got, most)
	}
	register(activations.MaxListed, 10_000)
	before := sent()
	_, _, err = f.activations.List(t.Context(), activations.Filter{Tenant: f.fn.Tenant, Limit: 1})
	if api.ErrorCode(err) != api.CodeValidationName {
		t.Errorf("a list of 10,000 namespaces: got error %v, want %s", err, api.CodeValidationName)
	}
	if got := sent() - before; got != 1 {
		t.Errorf("a list of 10,000 namespaces: got %d commands, want 1", got)
	}
}
