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
		t.Fatalf("Reveal: got %+v, %v; want no error and len(found) == 1", found, err)
	}
	return found[0]
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	storagetest.All(t, func(t *testing.T, store *storage.Store) {
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
			t.Fatalf("Put: got %+v %v %v; want no error and created true and made.Version == 1 and made.CreatedAtMS != 0 and made.UpdatedBy == \"key_1\" and made.Name == \"stripe\"", made, created, err)
		}
		want := storage.Change{Kind: storage.ChangeSecret, Tenant: p.Tenant, Namespace: "payments", Secret: "stripe"}
		if got := <-heard; got != want {
			t.Errorf("heard %+v; want got == want", got)
		}
		if _, _, err := s.Put(ctx, p, "stripe", "x", "key_1", secrets.Condition{IfNew: true}); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("again: %v; want CodePreconditionFailed", err)
		}
		if _, _, err := s.Put(ctx, p, "stripe", "x", "key_1", secrets.Condition{IfMatch: new(int64(2))}); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("another version: %v; want CodePreconditionFailed", err)
		}
		changed, created, err := s.Put(ctx, p, "stripe", "sk_live_2", "key_2", secrets.Condition{IfMatch: new(int64(1))})
		if err != nil || created || changed.Version != 2 || changed.CreatedAtMS != made.CreatedAtMS || changed.UpdatedBy != "key_2" {
			t.Errorf("Put: got %+v %v %v; want no error and created false and changed.Version == 2 and changed.CreatedAtMS == made.CreatedAtMS and changed.UpdatedBy == \"key_2\"", changed, created, err)
		}
		if got, err := s.Get(ctx, p, "stripe"); err != nil || got != changed {
			t.Errorf("Get: got %+v %v; want no error and got == changed", got, err)
		}
		if v := reveal(t, s, p, "stripe"); string(v.Text) != "sk_live_2" || v.Version != 2 || v.Err != nil || !v.Opened {
			t.Errorf("reveal: got %+v; want string(v.Text) == \"sk_live_2\" and v.Version == 2 and v.Err == nil and v.Opened", v)
		}
		if v := reveal(t, s, other, "stripe"); api.ErrorCode(v.Err) != api.CodeSecretNotFound || v.Text != nil {
			t.Errorf("of another namespace: %+v; want CodeSecretNotFound and v.Text == nil", v)
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
			t.Errorf("difference (-[]string{\"A\", \"_b\", \"stripe\"} +listed):\n%s", diff)
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
			t.Errorf("version %d again; want again.Version > 2", again.Version)
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
				t.Errorf("%q is stored; want an error", name)
			}
		}
		if _, _, err := keyless.Put(ctx, p, "a", "x", "", secrets.Condition{}); api.ErrorCode(err) != api.CodeSecretKeyMissing || !strings.Contains(err.Error(), "--secrets-key-file") {
			t.Errorf("without a key: %v; want CodeSecretKeyMissing and strings.Contains(err.Error(), \"--secrets-key-file\")", err)
		}
		if _, _, err := keyless.Rewrap(ctx, p.Tenant, ""); api.ErrorCode(err) != api.CodeSecretKeyMissing {
			t.Errorf("without a key: %v; want CodeSecretKeyMissing", err)
		}
		put(t, s, p, "a", "x")
		if v := reveal(t, keyless, p, "a"); api.ErrorCode(v.Err) != api.CodeSecretKeyMissing || v.Text != nil {
			t.Errorf("without a key: %+v; want CodeSecretKeyMissing and v.Text == nil", v)
		}
		if items, _, err := keyless.List(ctx, p, "", 10); err != nil || len(items) != 1 {
			t.Errorf("listed %v %v; want no error and len(items) == 1", items, err)
		}
		long := strings.Repeat("s", api.MaxSecretBytes)
		put(t, s, p, "a", long)
		if v := reveal(t, s, p, "a"); string(v.Text) != long {
			t.Errorf("%d bytes, %v; want string(v.Text) == long", len(v.Text), v.Err)
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
						t.Errorf("version %d twice; want values[out.Version] == \"\"", out.Version)
					}
					values[out.Version] = value
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if v := reveal(t, s, p, "stripe"); v.Version != 40 || string(v.Text) != values[40] {
			t.Errorf("reveal: got %+v; want v.Version == 40 and string(v.Text) == values[40]", v)
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
		t.Errorf("the server's files of %d bytes hold the value, or not the tenant", len(saved))
	}
}
