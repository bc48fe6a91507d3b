package storage_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestPublishStoresTheVersion(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		id := f.draft(t, "aa")
		v, created, err := f.publish(id, "aa", "prod")
		if err != nil || !created {
			t.Fatalf("Publish: got created %v and error %v, want true", created, err)
		}
		got, err := f.versions.Get(ctx, tn, ns, name, 1)
		if err != nil {
			t.Fatalf("versions.Get: %v", err)
		}
		if d := cmp.Diff(v, got); d != "" {
			t.Errorf("version differs (-want +got):\n%s", d)
		}
		if tar, err := f.versions.Bundle(ctx, tn, ns, name, 1); err != nil || string(tar) != "tar of aa" {
			t.Errorf("Bundle: got %q and error %v, want %q", tar, err, "tar of aa")
		}
		for _, ref := range []api.Ref{{Alias: "prod"}, {Version: 1}} {
			r, err := f.versions.Resolve(ctx, tn, ns, name, ref)
			if err != nil {
				t.Fatalf("versions.Resolve: %v", err)
			}
			if d := cmp.Diff(storage.Resolved{Function: f.fn, Version: v, Alias: ref.Alias}, r); d != "" {
				t.Errorf("resolved function differs (-want +got):\n%s", d)
			}
		}
		_, err = f.drafts.Get(ctx, tn, ns, name, id)
		if api.ErrorCode(err) != api.CodeDraftConsumed {
			t.Errorf("consumed draft: %v; want CodeDraftConsumed", err)
		}
		if _, _, err := f.publish(id, "aa", ""); api.ErrorCode(err) != api.CodeDraftConsumed {
			t.Errorf("publish again: %v; want CodeDraftConsumed", err)
		}
	})
}

func TestPublishOfTheSameAnswersTheLatest(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		if _, _, err := f.publish(f.draft(t, "aa"), "aa", ""); err != nil {
			t.Fatalf("publish: %v", err)
		}
		id := f.draft(t, "aa")
		v, created, err := f.publish(id, "aa", "prod")
		if err != nil || created || v.Version != 1 {
			t.Fatalf("Publish of equal files: got %+v, created %v and error %v, want the existing version 1", v, created, err)
		}
		if a, err := f.aliases.Get(ctx, tn, ns, name, "prod"); err != nil || a.Version != 1 {
			t.Errorf("Get of prod: got %+v and error %v, want version 1", a, err)
		}
		if _, err := f.drafts.Get(ctx, tn, ns, name, id); api.ErrorCode(err) != api.CodeDraftConsumed {
			t.Errorf("draft: %v; want CodeDraftConsumed", err)
		}
		if latest, err := f.versions.Latest(ctx, tn, ns, name); err != nil || latest != 1 {
			t.Errorf("Latest: got %d and error %v, want 1", latest, err)
		}
		// Equal to an older version is a new version.
		for i, sha := range []string{"bb", "aa"} {
			if v, created, err := f.publish(f.draft(t, sha), sha, ""); err != nil || !created || v.Version != int64(i+2) {
				t.Errorf("Publish of %s: got %+v, created %v and error %v, want a new version %d", sha, v, created, err, i+2)
			}
		}
	})
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		now := s.NowMS()
		dayOld := api.NewDraftID(now - api.DraftTTLMS)
		tests := map[string]struct {
			id   string
			want api.Code
		}{
			"never uploaded": {api.NewDraftID(now), api.CodeDraftNotFound},
			"a day old":      {dayOld, api.CodeDraftExpired},
			"no draft id":    {"drf_x", api.CodeValidationName},
		}
		for name, tt := range tests {
			if _, _, err := f.publish(tt.id, "aa", "prod"); api.ErrorCode(err) != tt.want {
				t.Errorf("publish %s: %v; want the code tt.want", name, err)
			}
			if _, err := f.drafts.Get(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name, tt.id); api.ErrorCode(err) != tt.want {
				t.Errorf("get %s: %v; want the code tt.want", name, err)
			}
		}
		over := api.Draft{DraftID: api.NewDraftID(now), ExpiresAtMS: now}
		if err := f.drafts.Put(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name, over); err != nil {
			t.Fatalf("drafts.Put: %v", err)
		}
		if _, err := f.drafts.Get(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name, over.DraftID); api.ErrorCode(err) != api.CodeDraftExpired {
			t.Errorf("past its time: %v; want CodeDraftExpired", err)
		}
		id := f.draft(t, "aa")
		if err := f.functions.Delete(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name, now); err != nil {
			t.Fatalf("functions.Delete: %v", err)
		}
		if _, _, err := f.publish(id, "aa", "prod"); api.ErrorCode(err) != api.CodeFunctionNotFound {
			t.Errorf("deleted function: %v; want CodeFunctionNotFound", err)
		}
		if err := f.drafts.Put(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name, api.Draft{DraftID: id}); api.ErrorCode(err) != api.CodeFunctionNotFound {
			t.Errorf("draft of a deleted function: %v; want CodeFunctionNotFound", err)
		}
	})
}

// TestConcurrentPublishesNumberWithoutGaps has two processes' worth of
// publishers: those of one queue up, those of two conflict.
func TestConcurrentPublishesNumberWithoutGaps(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.AllBackends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			f := newFixture(t, storagetest.Open(t, cfg))
			other := *f
			other.versions = storage.NewVersions(storagetest.Open(t, cfg))
			const n = 32
			drafts := make([]string, n)
			for i := range drafts {
				drafts[i] = f.draft(t, fmt.Sprint("sha", i))
			}
			got := make([]int64, n)
			errs := storagetest.Concurrently(n, func(i int) error {
				by := []*fixture{f, &other}[i%2]
				v, created, err := by.publish(drafts[i], fmt.Sprint("sha", i), "prod")
				if err == nil && !created {
					err = errors.New("not created")
				}
				got[i] = v.Version
				return err
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("errors.Join: %v", err)
			}
			slices.Sort(got)
			for i, v := range got {
				if v != int64(i+1) {
					t.Fatalf("got versions %v, want %d at position %d", got, i+1, i)
				}
			}
			checkFunction(t, f)
		})
	}
}

func TestConcurrentPublishesConsumeADraftOnce(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.AllBackends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			f := newFixture(t, storagetest.Open(t, cfg))
			other := *f
			other.versions = storage.NewVersions(storagetest.Open(t, cfg))
			id := f.draft(t, "aa")
			errs := storagetest.Concurrently(16, func(i int) error {
				by := []*fixture{f, &other}[i%2]
				// Each publisher's config differs, so that no two are the same publish.
				_, _, err := by.versions.Publish(t.Context(), storage.Publish{
					Tenant: f.fn.Tenant, Namespace: f.fn.Namespace, Function: f.fn.Name, DraftID: id,
					SHA256: "aa", Config: api.VersionConfig{MemoryMB: i}, NowMS: f.NowMS(),
				})
				return err
			})
			won := 0
			for _, err := range errs {
				switch api.ErrorCode(err) {
				case "":
					won++
				case api.CodeDraftConsumed:
				default:
					t.Errorf("Publish: got error %v, want success or code %s", err, api.CodeDraftConsumed)
				}
			}
			if won != 1 {
				t.Errorf("got %d publishes of one draft that succeeded, want 1", won)
			}
			checkFunction(t, f)
		})
	}
}

// checkFunction reads all records of a function and fails if they are inconsistent. It
// returns the latest version.
func checkFunction(t *testing.T, f *fixture) int64 {
	t.Helper()
	ctx, tn, ns, name := t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name
	detail, err := f.functions.Detail(ctx, tn, ns, name)
	if err != nil {
		t.Fatalf("functions.Detail: %v", err)
	}
	latest, err := f.versions.Latest(ctx, tn, ns, name)
	if err != nil {
		t.Fatalf("versions.Latest: %v", err)
	}
	if latest > 0 && (detail.LatestVersion == nil || *detail.LatestVersion != latest) {
		t.Errorf("Detail: got latest version %v, want %d", detail.LatestVersion, latest)
	}
	items, _, err := f.versions.List(ctx, tn, ns, name, 0, api.MaxPageLimit)
	if err != nil {
		t.Fatalf("versions.List: %v", err)
	}
	if int64(len(items)) != min(latest, api.MaxPageLimit) {
		t.Errorf("List: got %d versions, want %d: version_seq is %d", len(items), min(latest, api.MaxPageLimit), latest)
	}
	for i, v := range items {
		if v.Version != latest-int64(i) {
			t.Errorf("List: got version %d at position %d, want %d", v.Version, i, latest-int64(i))
		}
		tar, err := f.versions.Bundle(ctx, tn, ns, name, v.Version)
		if err != nil || len(tar) == 0 && v.SizeBytes > 0 {
			t.Errorf("Bundle of version %d: got %d bytes and error %v, want about %d", v.Version, len(tar), err, v.SizeBytes)
		}
	}
	if _, err := f.versions.Get(ctx, tn, ns, name, latest+1); api.ErrorCode(err) != api.CodeVersionNotFound {
		t.Errorf("version %d: %v; want CodeVersionNotFound", latest+1, err)
	}
	for _, a := range detail.Aliases {
		if a.Version < 1 || a.Version > latest {
			t.Errorf("alias %s: got version %d, want from 1 to %d", a.Alias, a.Version, latest)
		}
	}
	return latest
}
