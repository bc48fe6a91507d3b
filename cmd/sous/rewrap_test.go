package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

// The secrets of webhooks are resealed in the store, also those of a tenant that has no namespace and
// is in no registry of those.
func TestRewrapInTheStoreReachesWebhooks(t *testing.T) {
	t.Parallel()
	url, path := storagetest.Redis(t).URL, filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("Keygen: %v", err)
	}
	keys, err := secrets.OpenKeyFile(path, zaptest.NewLogger(t))
	if err != nil {
		t.Fatalf("OpenKeyFile: %v", err)
	}
	s := storagetest.Open(t, storage.Config{URL: url})
	hooks, known, alone := webhooks.New(s, secrets.New(s, keys)), storagetest.Tenant(t), storagetest.Tenant(t)
	if err := storage.NewTenants(s).RegisterNamespace(t.Context(), known, "shop"); err != nil {
		t.Fatalf("RegisterNamespace: %v", err)
	}
	for _, tenant := range []string{known, alone} {
		c := webhook.Config{URL: "https://example.com/hooks", Events: []string{"*"}, Enabled: true}
		if _, _, err := hooks.Put(t.Context(), tenant, "one", c, webhooks.Condition{}); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	if _, err := secrets.Rotate(path, time.Now()); err != nil {
		t.Fatalf("Rotate: %v", err)
	}
	for _, want := range []string{"2 secrets, 2 resealed, 0 unreadable", "2 secrets, 0 resealed, 0 unreadable"} {
		out, err := exec.CommandContext(t.Context(), soustest.Executable(t), "secret", "rewrap", "--store", url, "--secrets-key-file", path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("secret rewrap: got error %v and\n%s\nwant %s", err, out, want)
		}
	}
}
