package storage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestAliases(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		for _, sha := range []string{"aa", "bb"} {
			if _, _, err := f.publish(f.draft(t, sha), sha, ""); err != nil {
				t.Fatalf("publish: %v", err)
			}
		}
		steps := []struct {
			name    string
			version int64
			ifMatch *int64
			want    api.Code
		}{
			{"no such version", 3, nil, api.CodeVersionNotFound},
			{"version zero", 0, nil, api.CodeVersionNotFound},
			{"must point at 1, does not exist", 1, new(int64(1)), api.CodePreconditionFailed},
			{"must not exist", 1, new(int64(0)), ""},
			{"must not exist, does", 2, new(int64(0)), api.CodePreconditionFailed},
			{"must point at 2, points at 1", 2, new(int64(2)), api.CodePreconditionFailed},
			{"must point at 1", 2, new(int64(1)), ""},
			{"whatever it is", 1, nil, ""},
		}
		for i, step := range steps {
			_, err := f.aliases.Set(ctx, tn, ns, name, "prod", step.version, step.ifMatch, int64(i))
			if api.ErrorCode(err) != step.want {
				t.Errorf("%s: aliases.Set: got %v; want the code step.want", step.name, err)
			}
			if named := fmt.Sprintf("version %d does not exist", step.version); step.want == api.CodeVersionNotFound && !strings.Contains(err.Error(), named) {
				t.Errorf("%s: got %v, want %q", step.name, err, named)
			}
		}
		// A repeat of the same write succeeds, although the guard is met no more.
		for range 2 {
			if _, err := f.aliases.Set(ctx, tn, ns, name, "prod", 2, new(int64(1)), 99); err != nil {
				t.Errorf("aliases.Set: %v", err)
			}
		}
		want := api.Alias{Alias: "prod", Version: 2, UpdatedAtMS: 99}
		got, err := f.aliases.Get(ctx, tn, ns, name, "prod")
		if err != nil {
			t.Fatalf("aliases.Get: %v", err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("difference (-want +got):\n%s", d)
		}
		if err := f.aliases.Delete(ctx, tn, ns, name, "prod", new(int64(1))); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("guarded delete: %v; want CodePreconditionFailed", err)
		}
		for _, want := range []api.Code{"", api.CodeAliasNotFound} {
			if err := f.aliases.Delete(ctx, tn, ns, name, "prod", nil); api.ErrorCode(err) != want {
				t.Errorf("delete: %v; want the code want", err)
			}
		}
		if _, err := f.versions.Resolve(ctx, tn, ns, name, api.Ref{Alias: "prod"}); api.ErrorCode(err) != api.CodeAliasNotFound {
			t.Errorf("resolve: %v; want CodeAliasNotFound", err)
		}
		if _, err := f.versions.Resolve(ctx, tn, ns, name, api.Ref{Version: 3}); api.ErrorCode(err) != api.CodeVersionNotFound {
			t.Errorf("resolve: %v; want CodeVersionNotFound", err)
		}
		if err := f.functions.Delete(ctx, tn, ns, name, 1); err != nil {
			t.Fatalf("functions.Delete: %v", err)
		}
		if _, err := f.aliases.Set(ctx, tn, ns, name, "prod", 1, nil, 1); api.ErrorCode(err) != api.CodeFunctionNotFound || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("alias of a deleted function: %v; want CodeFunctionNotFound with the name %q", err, name)
		}
	})
}

func TestAliasPages(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		if _, _, err := f.publish(f.draft(t, "aa"), "aa", ""); err != nil {
			t.Fatalf("publish: %v", err)
		}
		var want, got []string
		for i := range 7 {
			alias := fmt.Sprintf("alias-%d", i)
			want = append(want, alias)
			if _, err := f.aliases.Set(ctx, tn, ns, name, alias, 1, nil, 1); err != nil {
				t.Fatalf("aliases.Set: %v", err)
			}
		}
		for after := ""; ; {
			items, next, err := f.aliases.List(ctx, tn, ns, name, after, 3)
			if err != nil {
				t.Fatalf("aliases.List: %v", err)
			}
			for _, a := range items {
				got = append(got, a.Alias)
			}
			after = next
			if next == "" {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("difference (-want +got):\n%s", d)
		}
	})
}

func TestConcurrentAliasUpdatesLeaveOneOfThem(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		for i := range 4 {
			sha := fmt.Sprint(i)
			if _, _, err := f.publish(f.draft(t, sha), sha, ""); err != nil {
				t.Fatalf("publish: %v", err)
			}
		}
		// Unguarded: all succeed, and one of the values stands.
		written := make([]api.Alias, 16)
		err := errors.Join(storagetest.Concurrently(len(written), func(i int) (err error) {
			written[i], err = f.aliases.Set(ctx, tn, ns, name, "prod", int64(i%4+1), nil, int64(i))
			return err
		})...)
		if err != nil {
			t.Fatalf("errors.Join: %v", err)
		}
		got, err := f.aliases.Get(ctx, tn, ns, name, "prod")
		if err != nil {
			t.Fatalf("aliases.Get: %v", err)
		}
		if got != written[got.UpdatedAtMS] {
			t.Errorf("got alias %+v, want one that a call has written: %+v", got, written[got.UpdatedAtMS])
		}
		// Guarded by the same version: one succeeds.
		if _, err := f.aliases.Set(ctx, tn, ns, name, "guarded", 1, nil, 1); err != nil {
			t.Fatalf("aliases.Set: %v", err)
		}
		won := 0
		for _, err := range storagetest.Concurrently(8, func(i int) error {
			_, err := f.aliases.Set(ctx, tn, ns, name, "guarded", int64(i%3+2), new(int64(1)), int64(100+i))
			return err
		}) {
			switch api.ErrorCode(err) {
			case "":
				won++
			case api.CodePreconditionFailed:
			default:
				t.Errorf("Set: got error %v, want success or code %s", err, api.CodePreconditionFailed)
			}
		}
		if won != 1 {
			t.Errorf("got %d guarded updates that succeeded, want 1", won)
		}
	})
}
