package access_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/storagetest"
)

// newKey makes an administrator's key, as if at nowMS, and the digest of its text.
func newKey(t *testing.T, tenant string, nowMS int64) (k api.Key, digest string) {
	t.Helper()
	text, id, err := api.NewKeySecret(nowMS, rand.Reader)
	if err != nil {
		t.Fatalf("NewKeySecret: %v", err)
	}
	return api.Key{ID: id, Tenant: tenant, Name: "a key", Roles: []string{api.RoleAdmin}, CreatedAtMS: nowMS}, api.KeyDigest(text)
}

// createKey stores what newKey made, changed by change.
func createKey(t *testing.T, s *storage.Store, tenant string, change func(*api.Key)) (k api.Key, digest string) {
	t.Helper()
	k, digest = newKey(t, tenant, s.NowMS())
	if change != nil {
		change(&k)
	}
	if err := access.NewAPIKeys(s).Create(t.Context(), k, digest); err != nil {
		t.Fatalf("APIKeys.Create: %v", err)
	}
	return k, digest
}

// wantNoKey demands that neither the digest nor the id leads to a key.
func wantNoKey(t *testing.T, s *storage.Store, k api.Key, digest string) {
	t.Helper()
	keys := access.NewAPIKeys(s)
	if got, err := keys.Find(t.Context(), digest); api.ErrorCode(err) != api.CodeKeyNotFound {
		t.Errorf("found by its digest: %+v %v; want CodeKeyNotFound", got, err)
	}
	if got, err := keys.Get(t.Context(), k.Tenant, k.ID); api.ErrorCode(err) != api.CodeKeyNotFound {
		t.Errorf("found by its id: %+v %v; want CodeKeyNotFound", got, err)
	}
	if got, _, err := keys.List(t.Context(), k.Tenant, "", 0); err != nil || slices.ContainsFunc(got, func(o api.Key) bool { return o.ID == k.ID }) {
		t.Errorf("List: got %+v and error %v, want it without %s", got, err, k.ID)
	}
}

func TestKeyLifecycle(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		keys, tenant, ctx := access.NewAPIKeys(s), storagetest.Tenant(t), t.Context()
		k, digest := createKey(t, s, tenant, func(k *api.Key) {
			k.Roles, k.Namespace, k.CreatedBy = []string{api.RoleViewer, "role:x"}, "payments", "key_x"
			k.ExpiresAtMS = s.NowMS() + time.Hour.Milliseconds()
		})
		if err := keys.Create(ctx, k, digest); err != nil { // again
			t.Errorf("keys.Create: %v", err)
		}
		for name, read := range map[string]func() (api.Key, error){
			"by digest": func() (api.Key, error) { return keys.Find(ctx, digest) },
			"by id":     func() (api.Key, error) { return keys.Get(ctx, tenant, k.ID) },
			"listed": func() (api.Key, error) {
				items, next, err := keys.List(ctx, tenant, "", 0)
				if err != nil || len(items) != 1 || next != "" {
					return api.Key{}, fmt.Errorf("%+v %q %w", items, next, err)
				}
				return items[0], nil
			},
		} {
			got, err := read()
			if err != nil {
				t.Errorf("%s: read: %v", name, err)
			}
			if d := cmp.Diff(k, got); d != "" {
				t.Errorf("%s: key differs (-want +got):\n%s", name, d)
			}
		}
		other := k
		other.Tenant = storagetest.Tenant(t)
		if _, err := keys.Get(ctx, other.Tenant, k.ID); api.ErrorCode(err) != api.CodeKeyNotFound {
			t.Errorf("another tenant's: %v; want CodeKeyNotFound", err)
		}
		if err := keys.Revoke(ctx, other.Tenant, k.ID); api.ErrorCode(err) != api.CodeKeyNotFound {
			t.Errorf("revoked by another tenant: %v; want CodeKeyNotFound", err)
		}
		if yes, err := keys.Any(ctx); err != nil || !yes {
			t.Errorf("Any: got %v and error %v, want true", yes, err)
		}

		heard := make(chan storage.Change, 1000)
		if err := s.Subscribe(ctx, func(c storage.Change) { heard <- c }); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		if err := keys.Revoke(ctx, tenant, k.ID); err != nil {
			t.Fatalf("keys.Revoke: %v", err)
		}
		storagetest.AwaitChange(t, heard, storage.Change{Kind: storage.ChangeKey, Tenant: tenant, KeyID: k.ID})
		wantNoKey(t, s, k, digest)
		if err := keys.Revoke(ctx, tenant, k.ID); api.ErrorCode(err) != api.CodeKeyNotFound {
			t.Errorf("revoked again: %v; want CodeKeyNotFound", err)
		}
	})
}

func TestKeyPages(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant := storagetest.Tenant(t)
		var want []string
		for range 11 {
			k, _ := createKey(t, s, tenant, nil)
			want = append(want, k.ID)
		}
		slices.Sort(want)
		createKey(t, s, storagetest.Tenant(t), nil) // a key of another tenant, which is not listed
		for _, limit := range []int{1, 4, 11, 500} {
			var got []string
			for after := ""; ; {
				items, next, err := access.NewAPIKeys(s).List(t.Context(), tenant, after, limit)
				if err != nil || len(items) == 0 || len(items) > limit {
					t.Fatalf("List: got %d keys on a page and error %v, want from 1 to %d", len(items), err, limit)
				}
				for _, k := range items {
					got = append(got, k.ID)
				}
				after = next
				if next == "" {
					break
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("pages of %d differ (-want +got):\n%s", limit, d)
			}
		}
	})
}

func TestKeyExpires(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		k, digest := createKey(t, s, storagetest.Tenant(t), func(k *api.Key) { k.ExpiresAtMS = s.NowMS() + 200 })
		storagetest.Eventually(t, func() bool { return s.NowMS() >= k.ExpiresAtMS })
		wantNoKey(t, s, k, digest)
	})
}

// storeClient speaks to a store's server beside the store.
func storeClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Whatever a crash leaves of Create or Revoke is no key or a whole one, and what
// was begun can be brought to its end.
func TestKeyWritesMayBeCut(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	client := storeClient(t, server.URL)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	keys, ctx := access.NewAPIKeys(s), t.Context()
	entries := func(tenant string) []string {
		t.Helper()
		all, err := client.SMembers(ctx, "cs:keys:"+tenant).Result()
		if err != nil {
			t.Fatalf("client.SMembers: %v", err)
		}
		return all
	}

	t.Run("create after the entry", func(t *testing.T) {
		tenant := storagetest.Tenant(t)
		young, digest := newKey(t, tenant, s.NowMS())
		old, oldDigest := newKey(t, tenant, s.NowMS()-2*time.Minute.Milliseconds())
		if err := client.SAdd(ctx, "cs:keys:"+tenant, young.ID+":"+digest, old.ID+":"+oldDigest).Err(); err != nil {
			t.Fatalf("client.SAdd: %v", err)
		}
		wantNoKey(t, s, young, digest)
		wantNoKey(t, s, old, oldDigest)
		if d := cmp.Diff([]string{young.ID + ":" + digest}, entries(tenant)); d != "" { // its record may be on its way
			t.Errorf("entries differ (-want +got):\n%s", d)
		}
		if err := keys.Create(ctx, young, digest); err != nil {
			t.Errorf("keys.Create: %v", err)
		}
		if got, err := keys.Get(ctx, tenant, young.ID); err != nil || got.ID != young.ID {
			t.Errorf("Get of a young key: got %+v and error %v, want id %s", got, err, young.ID)
		}
	})
	t.Run("create before the time-to-live", func(t *testing.T) {
		k, digest := createKey(t, s, storagetest.Tenant(t), func(k *api.Key) {
			k.ID = "key_01ARZ3NDEKTSV4RRFFQ69G5FAV" // an old one
			k.ExpiresAtMS = s.NowMS() + time.Hour.Milliseconds()
		})
		past := s.NowMS() - 1
		if err := client.Persist(ctx, "cs:key:"+digest).Err(); err != nil {
			t.Fatalf("client.Persist: %v", err)
		}
		if err := client.HSet(ctx, "cs:key:"+digest, "expires_at_ms", past).Err(); err != nil {
			t.Fatalf("client.HSet: %v", err)
		}
		wantNoKey(t, s, k, digest)
		if n, err := client.Exists(ctx, "cs:key:"+digest, "cs:keys:"+k.Tenant).Result(); err != nil || n != 0 {
			t.Errorf("got %d keys left in the store and error %v, want none", n, err)
		}
	})
	t.Run("revoke after the record", func(t *testing.T) {
		k, digest := createKey(t, s, storagetest.Tenant(t), nil)
		if err := client.Del(ctx, "cs:key:"+digest).Err(); err != nil {
			t.Fatalf("client.Del: %v", err)
		}
		wantNoKey(t, s, k, digest)
		heard := make(chan storage.Change, 1000)
		if err := s.Subscribe(ctx, func(c storage.Change) { heard <- c }); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		if err := keys.Revoke(ctx, k.Tenant, k.ID); err != nil {
			t.Errorf("keys.Revoke: %v", err)
		}
		storagetest.AwaitChange(t, heard, storage.Change{Kind: storage.ChangeKey, Tenant: k.Tenant, KeyID: k.ID})
		if left := entries(k.Tenant); len(left) != 0 {
			t.Errorf("got entries %v left, want none", left)
		}
	})
	// A creator whose clock is behind finds its entry pruned; the key can be revoked
	// nevertheless.
	t.Run("create of a laggard", func(t *testing.T) {
		tenant := storagetest.Tenant(t)
		slow := storagetest.Open(t, storage.Config{URL: server.URL, Clock: func() time.Time { return time.Now().Add(-time.Hour) }})
		stop := make(chan struct{})
		pruned := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				select {
				case <-stop:
					pruned <- nil
					return
				default:
					_, _, err = keys.List(context.Background(), tenant, "", 0)
				}
			}
			pruned <- err
		}()
		for range 300 {
			k, _ := createKey(t, slow, tenant, nil)
			// The pruning goroutine may be about to put the entry back.
			storagetest.Eventually(t, func() bool { _, err := keys.Get(ctx, tenant, k.ID); return err == nil })
		}
		close(stop)
		if err := <-pruned; err != nil {
			t.Errorf("unexpected error: %v", err)
		}
	})
}

// A record that was moved under another digest opens nothing.
func TestKeyOfAnotherDigest(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	client := storeClient(t, server.URL)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	_, digest := createKey(t, s, storagetest.Tenant(t), nil)
	_, other := newKey(t, "t_other0", s.NowMS())
	if err := client.Copy(t.Context(), "cs:key:"+digest, "cs:key:"+other, 0, false).Err(); err != nil {
		t.Fatalf("client.Copy: %v", err)
	}
	if got, err := access.NewAPIKeys(s).Find(t.Context(), other); api.ErrorCode(err) != api.CodeKeyNotFound {
		t.Errorf("APIKeys.Find: got %+v %v; want CodeKeyNotFound", got, err)
	}
}

func TestKeyLimit(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		keys, tenant, ctx := access.NewAPIKeys(s), storagetest.Tenant(t), t.Context()
		const free, racers = 3, 8
		var last api.Key
		var lastDigest string
		for range api.MaxKeys - free {
			last, lastDigest = createKey(t, s, tenant, nil)
		}
		var made int
		for _, err := range storagetest.Concurrently(racers, func(int) error {
			k, digest := newKey(t, tenant, s.NowMS())
			return keys.Create(ctx, k, digest)
		}) {
			switch api.ErrorCode(err) {
			case "":
				made++
			case api.CodeKeyLimit:
			default:
				t.Errorf("Create: got error %v, want success or code %s", err, api.CodeKeyLimit)
			}
		}
		if made < free {
			t.Errorf("got %d of %d keys created, want at least the %d that were free", made, racers, free)
		}
		revoke := func() {
			t.Helper()
			items, _, err := keys.List(ctx, tenant, "", 1)
			if err != nil || len(items) != 1 {
				t.Fatalf("List: got %+v and error %v, want 1 key", items, err)
			}
			if err := keys.Revoke(ctx, tenant, items[0].ID); err != nil {
				t.Fatalf("keys.Revoke: %v", err)
			}
		}
		for range made - free {
			revoke()
		}
		k, digest := newKey(t, tenant, s.NowMS())
		if err := keys.Create(ctx, k, digest); api.ErrorCode(err) != api.CodeKeyLimit {
			t.Errorf("beyond the limit: %v; want CodeKeyLimit", err)
		}
		if err := keys.Create(ctx, last, lastDigest); err != nil { // it counts once
			t.Errorf("again: %v", err)
		}
		createKey(t, s, storagetest.Tenant(t), nil) // another tenant's limit is its own
		revoke()
		if err := keys.Create(ctx, k, digest); err != nil {
			t.Errorf("after a revocation: %v", err)
		}
	})
}
