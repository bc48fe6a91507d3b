package secrets_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
)

// newKeys makes a key file.
func newKeys(t testing.TB) (*secrets.KeyFile, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("secrets.Keygen: %v", err)
	}
	return openKeys(t, path), path
}

func openKeys(t testing.TB, path string) *secrets.KeyFile {
	t.Helper()
	keys, err := secrets.OpenKeyFile(path, zaptest.NewLogger(t))
	if err != nil {
		t.Fatalf("secrets.OpenKeyFile: %v", err)
	}
	return keys
}

func put(t *testing.T, s *secrets.Secrets, p secrets.Place, name, value string) api.Secret {
	t.Helper()
	out, _, err := s.Put(t.Context(), p, name, value, "key_1", secrets.Condition{})
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return out
}

// reveal opens one secret.
func reveal(t *testing.T, s *secrets.Secrets, p secrets.Place, name string) secrets.Value {
	t.Helper()
	found, err := s.Reveal(t.Context(), p, []string{name}, nil)
	if err != nil || len(found) != 1 {
		t.Fatalf("Reveal: got %+v and error %v, want 1 value", found, err)
	}
	return found[0]
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		ctx, s, p := t.Context(), secrets.New(store, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		other := secrets.Place{Tenant: p.Tenant, Namespace: "refunds"}
		heard := make(chan storage.Change, 100)
		err := store.Subscribe(ctx, func(c storage.Change) {
			if c.Tenant == p.Tenant { // others are on the server, too
				heard <- c
			}
		})
		if err != nil {
			t.Fatalf("store.Subscribe: %v", err)
		}
		made, created, err := s.Put(ctx, p, "stripe", "sk_live_1", "key_1", secrets.Condition{IfNew: true})
		if err != nil || !created || made.Version != 1 || made.CreatedAtMS == 0 || made.UpdatedBy != "key_1" || made.Name != "stripe" {
			t.Fatalf("Put: got %+v, created %v and error %v, want a new stripe at version 1, with its time, by key_1", made, created, err)
		}
		want := storage.Change{Kind: storage.ChangeSecret, Tenant: p.Tenant, Namespace: "payments", Secret: "stripe"}
		if got := <-heard; got != want {
			t.Errorf("got notice %+v, want %+v", got, want)
		}
		if _, _, err := s.Put(ctx, p, "stripe", "x", "key_1", secrets.Condition{IfNew: true}); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("again: %v; want CodePreconditionFailed", err)
		}
		if _, _, err := s.Put(ctx, p, "stripe", "x", "key_1", secrets.Condition{IfMatch: new(int64(2))}); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("another version: %v; want CodePreconditionFailed", err)
		}
		changed, created, err := s.Put(ctx, p, "stripe", "sk_live_2", "key_2", secrets.Condition{IfMatch: new(int64(1))})
		if err != nil || created || changed.Version != 2 || changed.CreatedAtMS != made.CreatedAtMS || changed.UpdatedBy != "key_2" {
			t.Errorf("second Put: got %+v, created %v and error %v, want version 2, by key_2, with the first creation time", changed, created, err)
		}
		if got, err := s.Get(ctx, p, "stripe"); err != nil || got != changed {
			t.Errorf("Get: got %+v and error %v, want %+v", got, err, changed)
		}
		if v := reveal(t, s, p, "stripe"); string(v.Text) != "sk_live_2" || v.Version != 2 || v.Err != nil || !v.Opened {
			t.Errorf("Reveal: got %+v, want %q at version 2, opened", v, "sk_live_2")
		}
		if v := reveal(t, s, other, "stripe"); api.ErrorCode(v.Err) != api.CodeSecretNotFound || v.Text != nil {
			t.Errorf("Reveal in another namespace: got %+v, want code %s and no value", v, api.CodeSecretNotFound)
		}
		put(t, s, p, "A", "a")
		put(t, s, p, "_b", "b")
		var listed []string
		for after, more := "", true; more; more = after != "" {
			var items []api.Secret
			items, after, err = s.List(ctx, p, after, 2)
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			for _, item := range items {
				listed = append(listed, item.Name)
			}
		}
		if diff := cmp.Diff([]string{"A", "_b", "stripe"}, listed); diff != "" {
			t.Errorf("names differ (-want +got):\n%s", diff)
		}
		if err := s.Delete(ctx, p, "stripe", new(int64(1))); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("another version: %v; want CodePreconditionFailed", err)
		}
		if err := s.Delete(ctx, p, "stripe", new(int64(2))); err != nil {
			t.Errorf("Delete: %v", err)
		}
		for what, err := range map[string]error{
			"get":    func() error { _, err := s.Get(ctx, p, "stripe"); return err }(),
			"delete": s.Delete(ctx, p, "stripe", nil),
			"matched": func() error {
				_, _, err := s.Put(ctx, p, "stripe", "x", "", secrets.Condition{IfMatch: new(int64(2))})
				return err
			}(),
			"reveal": reveal(t, s, p, "stripe").Err,
		} {
			if api.ErrorCode(err) != api.CodeSecretNotFound {
				t.Errorf("%s of a deleted secret: got error %v, want CodeSecretNotFound", what, err)
			}
		}
		// No cache and no If-Match takes the new one for the old.
		if again := put(t, s, p, "stripe", "sk_live_3"); again.Version <= 2 {
			t.Errorf("Put after a deletion: got version %d, want above 2", again.Version)
		}
	})
}

func TestSecretsRefused(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		ctx, p := t.Context(), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		s, keyless := secrets.New(store, keys), secrets.New(store, nil)
		for name, value := range map[string]string{"a:b": "x", "": "x", "ok": "", "long": strings.Repeat("x", api.MaxSecretBytes+1)} {
			if _, _, err := s.Put(ctx, p, name, value, "", secrets.Condition{}); err == nil {
				t.Errorf("Put of %q: got success, want an error", name)
			}
		}
		if _, _, err := keyless.Put(ctx, p, "a", "x", "", secrets.Condition{}); api.ErrorCode(err) != api.CodeSecretKeyMissing || !strings.Contains(err.Error(), "--secrets-key-file") {
			t.Errorf("Put without a key file: got error %v, want code %s with %q", err, api.CodeSecretKeyMissing, "--secrets-key-file")
		}
		if _, _, err := keyless.Rewrap(ctx, p.Tenant, ""); api.ErrorCode(err) != api.CodeSecretKeyMissing {
			t.Errorf("without a key: %v; want CodeSecretKeyMissing", err)
		}
		put(t, s, p, "a", "x")
		if v := reveal(t, keyless, p, "a"); api.ErrorCode(v.Err) != api.CodeSecretKeyMissing || v.Text != nil {
			t.Errorf("Reveal without a key file: got %+v, want code %s and no value", v, api.CodeSecretKeyMissing)
		}
		if items, _, err := keyless.List(ctx, p, "", 10); err != nil || len(items) != 1 {
			t.Errorf("List without a key file: got %v and error %v, want 1 secret", items, err)
		}
		long := strings.Repeat("s", api.MaxSecretBytes)
		put(t, s, p, "a", long)
		if v := reveal(t, s, p, "a"); string(v.Text) != long {
			t.Errorf("Reveal: got %d bytes and error %v, want the %d bytes that were put", len(v.Text), v.Err, len(long))
		}
	})
}

// A namespace that is full takes changes and no new secret.
func TestSecretsAreCounted(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		s, p := secrets.New(store, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		put(t, s, p, "mine", "x")
		index := store.SecretKeys(p.Tenant, p.Namespace).Index()
		for i := range api.MaxSecrets - 1 {
			if err := store.Client().ZAdd(t.Context(), index, member(fmt.Sprint("s", i))).Err(); err != nil {
				t.Fatalf("ZAdd: %v", err)
			}
		}
		if _, _, err := s.Put(t.Context(), p, "more", "x", "", secrets.Condition{}); api.ErrorCode(err) != api.CodeSecretLimit {
			t.Errorf("one more: %v; want CodeSecretLimit", err)
		}
		put(t, s, p, "mine", "y")
		put(t, s, p, "s7", "what a cut left of it")
		if err := s.Delete(t.Context(), p, "mine", nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		put(t, s, p, "more", "x")
	})
}

// Each of many writers has a version of its own, and the last one's value stands.
func TestSecretsAreChangedOneByOne(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		s, p := secrets.New(store, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		var mu sync.Mutex
		values := map[int64]string{}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 5 {
					value := fmt.Sprint("value ", i, " ", j)
					out, _, err := s.Put(context.Background(), p, "stripe", value, "", secrets.Condition{})
					if err != nil {
						t.Errorf("Put: %v", err)
						return
					}
					mu.Lock()
					if values[out.Version] != "" {
						t.Errorf("Put: got version %d twice, want each version once", out.Version)
					}
					values[out.Version] = value
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if v := reveal(t, s, p, "stripe"); v.Version != 40 || string(v.Text) != values[40] {
			t.Errorf("Reveal: got %+v, want version 40 with the value %q", v, values[40])
		}
	})
}

// The value stands nowhere in the store, in no form in which it could be read.
func TestValuesAreNotInTheStore(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	store := storagetest.Open(t, storage.Config{URL: server.URL})
	keys, _ := newKeys(t)
	s, p := secrets.New(store, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
	const value = "plaintext of the secret"
	put(t, s, p, "stripe", value)
	put(t, s, p, "stripe", value+value)
	keysHeld := storagetest.Keys(t, store.Client(), "*")
	for _, key := range keysHeld {
		held := storagetest.Contents(t, store.Client(), key)
		if strings.Contains(held, "plaintext of") || strings.Contains(held, "cGxhaW50ZXh0IG9mIHRoZSBzZWNy") {
			t.Errorf("key %s: got %q, want no plaintext of the value, also not in base64", key, held)
		}
	}
	if len(keysHeld) < 3 {
		t.Errorf("got the keys %v, want more", keysHeld)
	}
	saved := server.Files(t)
	if strings.Contains(saved, "plaintext of") || !strings.Contains(saved, p.Tenant) {
		t.Errorf("got %d bytes of the server's files with the value, or without the tenant, want only the tenant", len(saved))
	}
}
