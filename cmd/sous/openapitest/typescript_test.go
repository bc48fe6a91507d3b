package openapitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// openapi-typescript makes types of the document, and openapi-fetch sends requests by them.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	modules, dir := packages(t), t.TempDir()
	server := soustest.Start(t)
	document(t, server, dir)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("Symlink: %v", err)
	}
	for _, name := range []string{"client.ts", "tsconfig.json"} {
		copyFile(t, filepath.Join(project, name), filepath.Join(dir, name))
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	bin := filepath.Join(modules, ".bin")
	run(t, dir, filepath.Join(bin, "openapi-typescript"), "openapi.json", "--output", "api.d.ts")
	run(t, dir, filepath.Join(bin, "tsc"), "--project", ".")
	run(t, dir, "node", "client.js", server.URL)
}
