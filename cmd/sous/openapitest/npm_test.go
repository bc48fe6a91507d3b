// Package openapitest tests the OpenAPI document of a running server with the programs of
// others: the linter of Redocly, and clients that are generated from the document.
//
// tools/openapi pins the packages of npm.
package openapitest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// project is the folder of the packages' lock file and of the client's program.
const project = "../../../tools/openapi"

// installing allows one npm at a time in the cache folder of this test process.
var installing sync.Mutex

// packages installs the packages that the lock file pins, in the user's cache folder, and
// returns their node_modules. A lock file that was installed before is not installed again.
func packages(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed: run tools/need-npm.sh, as make test does")
	}
	lock, err := os.ReadFile(filepath.Join(project, "package-lock.json"))
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("UserCacheDir: %v", err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "code-sous", "openapi-"+hex.EncodeToString(sum[:8]))
	installing.Lock()
	defer installing.Unlock()
	installed := filepath.Join(dir, "installed")
	if _, err := os.Stat(installed); err != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatalf("MkdirAll: %v", err)
		}
		for _, name := range []string{"package.json", "package-lock.json"} {
			copyFile(t, filepath.Join(project, name), filepath.Join(dir, name))
		}
		run(t, dir, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		if err := os.WriteFile(installed, nil, 0o600); err != nil {
			t.Fatalf("WriteFile: %v", err)
		}
	}
	return filepath.Join(dir, "node_modules")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
}

// run runs a program in a folder. A program that fails ends the test.
func run(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("run %s %v: got %v, want success\n%s", program, args, err, out)
	}
}

// document writes the OpenAPI document of the server to openapi.json in dir.
func document(t *testing.T, server *soustest.Server, dir string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/openapi.json", http.NoBody)
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET /openapi.json: got %d, error %v, want 200", response.StatusCode, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), text, 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
}
