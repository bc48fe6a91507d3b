package platformtest_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/secrets"
)

// secretsKey makes a key file.
func secretsKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets.key")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("Keygen: %v", err)
	}
	return path
}

// secrets has a function read one.
func (w *work) secrets() {
	_, err := w.server.API(w.t).Namespace(platformtest.Namespace).Secret("stripe").Set(w.t.Context(), "sk_live_1", client.SecretCondition{})
	if err != nil {
		w.t.Fatalf("Set: %v", err)
	}
	w.server.Publish(w.t, "pay", `{"capabilities": {"secrets": ["stripe"]}}`, map[string]string{
		"function.js": `export default async () => (await cs.secrets.get("stripe")).length;`,
	})
	w.want(http.StatusOK, "pay")
}
