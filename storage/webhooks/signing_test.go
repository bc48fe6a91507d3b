package webhooks_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

// Rewrap seals the secrets of webhooks, also the one before a rotation, with the newest key: the older
// key can then be removed from the file.
func TestRewrap(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		path := filepath.Join(t.TempDir(), "keys")
		if _, err := secrets.Keygen(path, time.Now()); err != nil {
			t.Fatalf("Keygen: %v", err)
		}
		f := newFixture(t, s, openKeys(t, path))
		first := f.create(t, "one").Secret
		rotated, err := f.hooks.Rotate(t.Context(), f.tenant, "one", nil)
		if err != nil {
			t.Fatalf("Rotate: %v", err)
		}
		if _, err := secrets.Rotate(path, time.Now()); err != nil {
			t.Fatalf("Rotate: %v", err)
		}
		f.hooks = webhooks.New(s, secrets.New(s, openKeys(t, path)))
		for _, want := range []int{2, 0} {
			var got api.RewrapReport
			if err := f.hooks.Rewrap(t.Context(), f.tenant, &got); err != nil || got.Examined != 2 || got.Rewrapped != want || got.Unreadable != 0 {
				t.Errorf("Rewrap: got %+v and error %v, want 2 examined and %d resealed", got, err, want)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("ReadFile: %v", err)
		}
		newest := bytes.Join(bytes.SplitAfterN(text, []byte("\n"), 3)[:2], nil)
		if err := os.WriteFile(path, newest, 0o600); err != nil {
			t.Fatalf("WriteFile: %v", err)
		}
		f.hooks = webhooks.New(s, secrets.New(s, openKeys(t, path)))
		rec := f.record(t, "one")
		if keys, err := f.hooks.Keys(f.tenant, &rec); err != nil || !slices.Equal(keys, []string{rotated.Secret, first}) {
			t.Errorf("Keys with the newest key only: got %d and error %v, want both secrets", len(keys), err)
		}
		f.hooks = webhooks.New(s, secrets.New(s, newKeys(t)))
		var got api.RewrapReport
		if err := f.hooks.Rewrap(t.Context(), f.tenant, &got); err != nil || got.Unreadable != 2 || got.Rewrapped != 0 {
			t.Errorf("Rewrap with a key that opens none: got %+v and error %v, want 2 unreadable", got, err)
		}
	})
}
