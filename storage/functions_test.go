package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// fixture is a function of a tenant of its own.
type fixture struct {
	*storage.Store
	functions   *storage.Functions
	drafts      *storage.Drafts
	versions    *storage.Versions
	aliases     *storage.Aliases
	activations *activations.Repository
	fn          api.Function
}

func newFixture(t *testing.T, s *storage.Store) *fixture {
	t.Helper()
	f := &fixture{
		Store: s, functions: storage.NewFunctions(s), drafts: storage.NewDrafts(s), versions: storage.NewVersions(s),
		aliases: storage.NewAliases(s), activations: activations.New(s),
		fn: api.Function{
			Tenant: storagetest.Tenant(t), Namespace: "payments", Name: "reconcile", Runtime: api.RuntimeJS,
			Entry: api.DefaultEntry, Handler: api.DefaultHandler, CreatedAtMS: s.NowMS(),
		},
	}
	if _, err := f.functions.Create(context.Background(), f.fn); err != nil {
		t.Fatalf("functions.Create: %v", err)
	}
	return f
}

// draft stores a draft and returns its id.
func (f *fixture) draft(t *testing.T, sha string) string {
	t.Helper()
	now := f.NowMS()
	d := api.Draft{
		DraftID: api.NewDraftID(now), SHA256: sha, Files: map[string][]byte{"function.js": []byte("export default () => 1")},
		CreatedAtMS: now, ExpiresAtMS: now + api.DraftTTLMS,
	}
	if err := f.drafts.Put(context.Background(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, d); err != nil {
		t.Fatalf("drafts.Put: %v", err)
	}
	return d.DraftID
}

func (f *fixture) publish(draftID, sha, alias string) (api.Version, bool, error) {
	return f.versions.Publish(context.Background(), storage.Publish{
		Tenant: f.fn.Tenant, Namespace: f.fn.Namespace, Function: f.fn.Name, DraftID: draftID,
		SHA256: sha, Bundle: []byte("tar of " + sha), Alias: alias, NowMS: f.NowMS(),
		Config: api.VersionConfig{Entry: "function.js", Handler: "default", TimeoutMS: 3000, MemoryMB: 64, MaxConcurrency: 10},
	})
}

func TestFunctionLifecycle(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		got, err := f.functions.Get(ctx, tn, ns, name)
		if err != nil {
			t.Fatalf("functions.Get: %v", err)
		}
		if d := cmp.Diff(f.fn, got); d != "" {
			t.Errorf("function differs (-want +got):\n%s", d)
		}
		other := f.fn
		other.CreatedAtMS++
		if _, err := f.functions.Create(ctx, other); api.ErrorCode(err) != api.CodeFunctionExists {
			t.Errorf("second create: %v; want CodeFunctionExists", err)
		}
		v, created, err := f.publish(f.draft(t, "aa"), "aa", "prod")
		if err != nil || !created || v.Version != 1 {
			t.Fatalf("Publish: got %v, created %v and error %v, want a new version 1", v, created, err)
		}
		if err := f.functions.Delete(ctx, tn, ns, name, s.NowMS()); err != nil {
			t.Fatalf("functions.Delete: %v", err)
		}
		if _, err := f.functions.Get(ctx, tn, ns, name); api.ErrorCode(err) != api.CodeFunctionNotFound {
			t.Errorf("get deleted: %v; want CodeFunctionNotFound", err)
		}
		if _, err := f.functions.Create(ctx, other); err != nil {
			t.Fatalf("functions.Create: %v", err)
		}
		v, created, err = f.publish(f.draft(t, "bb"), "bb", "")
		if err != nil || !created || v.Version != 2 {
			t.Fatalf("Publish after the function was created again: got %v, created %v and error %v, want a new version 2", v, created, err)
		}
		r, err := f.versions.Resolve(ctx, tn, ns, name, api.Ref{Alias: "prod"})
		if err != nil || r.Version.Version != 1 {
			t.Errorf("Resolve: got %+v and error %v, want version 1", r, err)
		}
	})
}

// TestSummaries: a summary is the whole function, and has the default alias, however many
// aliases sort before it.
func TestSummaries(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		labelled := f.fn
		labelled.Name, labelled.Labels = "labelled", map[string]string{"team": "billing"}
		if _, err := f.functions.Create(t.Context(), labelled); err != nil {
			t.Fatalf("functions.Create: %v", err)
		}
		if _, _, err := f.publish(f.draft(t, "aa"), "aa", api.DefaultAlias); err != nil {
			t.Fatalf("publish: %v", err)
		}
		var want []string
		for i := range 30 {
			alias := fmt.Sprintf("canary-%02d", i)
			if i < 20 {
				want = append(want, alias)
			}
			if _, err := f.aliases.Set(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, alias, 1, nil, f.NowMS()); err != nil {
				t.Fatalf("aliases.Set: %v", err)
			}
		}
		items, next, err := f.functions.Summaries(t.Context(), f.fn.Tenant, f.fn.Namespace, "", 10)
		if err != nil || len(items) != 2 || next != "" {
			t.Fatalf("Summaries: got %+v, next %q, error %v, want 2 functions", items, next, err)
		}
		if d := cmp.Diff(labelled, items[0].Function); d != "" || items[0].LatestVersion != nil {
			t.Errorf("function: difference (-want +got):\n%s", d)
		}
		var got []string
		for _, alias := range items[1].Aliases {
			got = append(got, alias.Alias)
		}
		if d := cmp.Diff(append(want, api.DefaultAlias), got); d != "" {
			t.Errorf("aliases: difference (-want +got):\n%s", d)
		}
	})
}
