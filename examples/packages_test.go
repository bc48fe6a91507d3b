package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// installed copies the example and installs the packages that its lock file pins. It returns
// the folder of the copy, which has the example's name.
func installed(t *testing.T, name string) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed: run tools/need-npm.sh, as make test does")
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(name)); err != nil {
		t.Fatalf("os.CopyFS: %v", err)
	}
	// The folder may have packages that a person installed.
	if err := os.RemoveAll(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("os.RemoveAll: %v", err)
	}
	install := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in the example %s: %v\n%s", name, err, out)
	}
	return dir
}

// deployPackages installs the packages of the example, publishes it and returns its URL.
func deployPackages(t *testing.T, server *soustest.Server, name string, args ...string) string {
	t.Helper()
	return deploy(t, server, append([]string{installed(t, name)}, args...)...)
}

// file writes the text to a file of its own and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	return path
}

// function writes a function with the source to a folder of its own, and returns the folder.
func function(t *testing.T, name, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "function.js"), []byte(source), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	return dir
}
