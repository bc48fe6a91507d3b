// Package consoletest plays the console in Chromium, against the program that embeds it.
//
// With SOUS_TEST_SCREENSHOTS=FOLDER the tests keep pictures of all views there.
package consoletest

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

const root = "../../.."

var archived = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sous-consoletest-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	cmd := exec.Command("tools/build-console.sh", dir)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CONSOLE=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tools/build-console.sh: %w\n%s", err, out)
	}
	return filepath.Join(dir, "console.zip"), nil
})

// archive returns the path of the built console. The test is skipped where npm is missing.
func archive(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed: run tools/need-npm.sh, as make test does")
	}
	path, err := archived()
	if err != nil {
		t.Fatalf("build: got %v, want a console", err)
	}
	return path
}

// executable returns the path of sous with its console.
func executable(t *testing.T) string {
	t.Helper()
	return sandboxtest.SousWithConsole(t, archive(t))
}

// The first view must arrive quickly on a slow network.
func TestConsoleIsSmall(t *testing.T) {
	t.Parallel()
	const limit = 250 << 10
	reader, err := zip.OpenReader(archive(t))
	if err != nil {
		t.Fatalf("OpenReader: %v", err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	var size uint64
	for _, f := range reader.File {
		if strings.HasSuffix(f.Name, ".gz") {
			size += f.UncompressedSize64
		}
	}
	if size == 0 || size > limit {
		t.Errorf("scripts and styles: got %d bytes with gzip, want at most %d", size, limit)
	}
}

// licences are those that may be in the program; those of tools that only build or test it may also
// be the others.
var (
	licences     = map[string]bool{"MIT": true, "ISC": true, "BSD-3-Clause": true, "Apache-2.0": true}
	toolLicences = map[string]bool{"MPL-2.0": true, "BSD-2-Clause": true, "(MIT OR CC0-1.0)": true, "Python-2.0": true}
)

func TestLicencesOfPackages(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "console/package-lock.json"))
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	var lock struct {
		Packages map[string]struct {
			Version, License, Integrity string
			Dev, Optional               bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	if len(lock.Packages) < 5 {
		t.Errorf("got %d packages in the lock file, want at least 5", len(lock.Packages))
	}
	for name, p := range lock.Packages {
		if name == "" {
			continue
		}
		if !licences[p.License] && !(p.Dev && toolLicences[p.License]) {
			t.Errorf("%s %s: got licence %q, want one that docs/dependencies.md permits", name, p.Version, p.License)
		}
		if p.Integrity == "" {
			t.Errorf("%s %s: the lock file has no digest, want one", name, p.Version)
		}
	}
}
