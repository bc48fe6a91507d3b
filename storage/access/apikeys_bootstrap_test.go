package access_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/storagetest"
)

// bootstrap tries until no other test of the same store bootstraps.
func bootstrap(t *testing.T, s *storage.Store, tenant string, replace bool) (k api.Key, digest string, replaced []string, err error) {
	t.Helper()
	k, digest = newKey(t, tenant, s.NowMS())
	storagetest.Eventually(t, func() bool {
		_, replaced, err = access.NewAPIKeys(s).Bootstrap(t.Context(), k, digest, replace)
		return api.ErrorCode(err) != api.CodeStoreConflict
	})
	return k, digest, replaced, err
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		keys, tenant, ctx := access.NewAPIKeys(s), storagetest.Tenant(t), t.Context()
		// Those who may do less, or elsewhere, are no reason to refuse.
		developer, _ := createKey(t, s, tenant, func(k *api.Key) { k.Roles = []string{api.RoleDeveloper} })
		narrow, _ := createKey(t, s, tenant, func(k *api.Key) { k.Namespace = "payments" })
		createKey(t, s, storagetest.Tenant(t), nil)

		first, firstDigest, replaced, err := bootstrap(t, s, tenant, false)
		if err != nil || len(replaced) != 0 {
			t.Fatalf("Bootstrap: got replaced %v and error %v, want none replaced", replaced, err)
		}
		refused, refusedDigest, _, err := bootstrap(t, s, tenant, false)
		if api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("a second one: %v; want CodePreconditionFailed", err)
		}
		wantNoKey(t, s, refused, refusedDigest)
		next, _, replaced, err := bootstrap(t, s, tenant, true)
		if err != nil {
			t.Fatalf("bootstrap: %v", err)
		}
		if d := cmp.Diff([]string{first.ID}, replaced); d != "" {
			t.Errorf("replaced keys differ (-want +got):\n%s", d)
		}
		wantNoKey(t, s, first, firstDigest)
		for _, k := range []api.Key{developer, narrow, next} {
			if _, err := keys.Get(ctx, tenant, k.ID); err != nil {
				t.Errorf("%+v: keys.Get: %v", k, err)
			}
		}
	})
}

func TestBootstrapsRace(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		keys, tenant := access.NewAPIKeys(s), storagetest.Tenant(t)
		made := 0
		for made == 0 { // other tests of this store may hold the lock
			for _, err := range storagetest.Concurrently(16, func(int) error {
				k, digest := newKey(t, tenant, s.NowMS())
				_, _, err := keys.Bootstrap(t.Context(), k, digest, false)
				return err
			}) {
				switch api.ErrorCode(err) {
				case "":
					made++
				case api.CodeStoreConflict, api.CodePreconditionFailed:
				default:
					t.Fatalf("Bootstrap: got error %v, want success, code %s or code %s", err, api.CodeStoreConflict, api.CodePreconditionFailed)
				}
			}
		}
		items, _, err := keys.List(t.Context(), tenant, "", 0)
		if err != nil || made != 1 || len(items) != 1 {
			t.Errorf("got %d bootstraps that succeeded, keys %+v and error %v, want 1 and its key", made, items, err)
		}
	})
}

// The lock expires by itself, so that a crash does not lock out the next caller.
func TestBootstrapLock(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	client := storeClient(t, server.URL)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	keys, ctx := access.NewAPIKeys(s), t.Context()
	if err := client.Set(ctx, "cs:keys:bootstrap", "key_x", time.Minute).Err(); err != nil {
		t.Fatalf("client.Set: %v", err)
	}
	k, digest := newKey(t, api.AllTenants, s.NowMS())
	if _, _, err := keys.Bootstrap(ctx, k, digest, true); api.ErrorCode(err) != api.CodeStoreConflict {
		t.Errorf("while another is under way: %v; want CodeStoreConflict", err)
	}
	if holder, err := client.Get(ctx, "cs:keys:bootstrap").Result(); err != nil || holder != "key_x" {
		t.Errorf("lock of another bootstrap: got holder %q and error %v, want %q", holder, err, "key_x")
	}
	if yes, err := keys.Any(ctx); err != nil || yes {
		t.Errorf("Any: got %v and error %v, want false", yes, err)
	}
	// As after a command whose answer was lost: the lock is this call's own.
	if err := client.Set(ctx, "cs:keys:bootstrap", k.ID, time.Minute).Err(); err != nil {
		t.Fatalf("client.Set: %v", err)
	}
	if _, _, err := keys.Bootstrap(ctx, k, digest, false); err != nil {
		t.Errorf("keys.Bootstrap: %v", err)
	}
	if n, err := client.Exists(ctx, "cs:keys:bootstrap").Result(); err != nil || n != 0 {
		t.Errorf("lock after the bootstrap: got %d keys and error %v, want none", n, err)
	}
	if yes, err := keys.Any(ctx); err != nil || !yes {
		t.Errorf("Any: got %v and error %v, want true", yes, err)
	}
	if err := keys.Revoke(ctx, api.AllTenants, k.ID); err != nil {
		t.Errorf("keys.Revoke: %v", err)
	}
	if yes, err := keys.Any(ctx); err != nil || yes {
		t.Errorf("Any after the revocation: got %v and error %v, want false", yes, err)
	}
}
