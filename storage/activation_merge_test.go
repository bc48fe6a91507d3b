package storage_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

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
