package storage_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestRegistryAndWalk(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tenants, tenant := storage.NewTenants(s), f.fn.Tenant
		for _, want := range []struct {
			tenant string
			exists bool
		}{{tenant, true}, {storagetest.Tenant(t), false}} {
			if got, err := tenants.Exists(ctx, want.tenant); err != nil || got != want.exists {
				t.Errorf("Exists of %s: got %v and error %v, want %v", want.tenant, got, err, want.exists)
			}
		}
		want := []storage.FunctionPath{{Tenant: tenant}, {Tenant: tenant, Namespace: f.fn.Namespace}, {Tenant: tenant, Namespace: f.fn.Namespace, Function: f.fn.Name}}
		var namespaces []string
		for i := range 7 {
			fn := f.fn
			fn.Namespace = fmt.Sprintf("space-%d", i)
			if _, err := f.functions.Create(ctx, fn); err != nil {
				t.Fatalf("functions.Create: %v", err)
			}
			namespaces = append(namespaces, fn.Namespace)
			want = append(want, storage.FunctionPath{Tenant: tenant, Namespace: fn.Namespace},
				storage.FunctionPath{Tenant: tenant, Namespace: fn.Namespace, Function: fn.Name})
		}
		// A deleted function may have activations left: it is walked too.
		if err := f.functions.Delete(ctx, tenant, "space-3", f.fn.Name, 1); err != nil {
			t.Fatalf("functions.Delete: %v", err)
		}
		var got []storage.FunctionPath
		for path, err := range tenants.Walk(ctx) {
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if path.Tenant == tenant {
				got = append(got, path)
			}
		}
		slices.SortFunc(got, func(a, b storage.FunctionPath) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Function, b.Function))
		})
		if d := gocmp.Diff(want, slices.Compact(got)); d != "" {
			t.Errorf("Walk differs (-want +got):\n%s", d)
		}
		var paged []string
		for after := ""; ; {
			items, next, err := tenants.Namespaces(ctx, tenant, after, 3)
			if err != nil {
				t.Fatalf("tenants.Namespaces: %v", err)
			}
			paged = append(paged, items...)
			after = next
			if next == "" {
				break
			}
		}
		if d := gocmp.Diff(slices.Concat([]string{f.fn.Namespace}, namespaces), paged); d != "" {
			t.Errorf("namespaces differ (-want +got):\n%s", d)
		}
	})
}

func TestFunctionPages(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		var want []string
		for i := range 10 {
			fn := f.fn
			fn.Name = fmt.Sprintf("fn-%d", i)
			if _, err := f.functions.Create(ctx, fn); err != nil {
				t.Fatalf("functions.Create: %v", err)
			}
			if i%3 == 0 {
				if err := f.functions.Delete(ctx, fn.Tenant, fn.Namespace, fn.Name, 1); err != nil {
					t.Fatalf("functions.Delete: %v", err)
				}
				continue
			}
			want = append(want, fn.Name)
		}
		want = append(want, f.fn.Name)
		for _, limit := range []int{1, 2, 3, 7, 8, 500} {
			var got []string
			for after := ""; ; {
				items, next, err := f.functions.List(ctx, f.fn.Tenant, f.fn.Namespace, after, limit)
				if err != nil {
					t.Fatalf("functions.List: %v", err)
				}
				if len(items) > limit {
					t.Errorf("got %d items on a page, want at most %d", len(items), limit)
				}
				for _, fn := range items {
					got = append(got, fn.Name)
				}
				after = next
				if next == "" {
					break
				}
			}
			if d := gocmp.Diff(want, got); d != "" {
				t.Errorf("pages of %d differ (-want +got):\n%s", limit, d)
			}
		}
	})
}

func TestHasNamespace(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		tenants, tenant := storage.NewTenants(s), storagetest.Tenant(t)
		if err := tenants.RegisterNamespace(t.Context(), tenant, "payments"); err != nil {
			t.Fatalf("tenants.Register: %v", err)
		}
		for namespace, want := range map[string]bool{"payments": true, "others": false} {
			if got, err := tenants.HasNamespace(t.Context(), tenant, namespace); err != nil || got != want {
				t.Errorf("HasNamespace of %s: got %v and error %v, want %v", namespace, got, err, want)
			}
		}
	})
}
