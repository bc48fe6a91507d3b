// Package sandboxtest builds the sandbox child for tests.
//
// A test binary cannot be its own child: built with -race it crashes under the
// child's system call filter, and built with cgo Landlock needs more of it.
package sandboxtest

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// childPackage is the program that dispatches to child.Main.
const childPackage = "github.com/codesous/sous/invoker/sandbox/childmain"

// built holds the path by package, once for each test process.
var built sync.Map // string → func() (string, error)

// Executable is the path of a sandbox child for sandbox.Config, built without
// -race and cgo. It is built once for each test process.
func Executable(t testing.TB) string {
	t.Helper()
	return Build(t, childPackage)
}

// Build is the path of the program of package pkg (an import path, or a path
// relative to the test's folder), built as Executable builds.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	once, _ := built.LoadOrStore(pkg, sync.OnceValues(func() (string, error) { return build(pkg) }))
	path, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("build %s: got error %v, want a sandbox child", pkg, err)
	}
	return path
}

// build leaves the work of finding out what changed to go's build cache, and
// renames, so that test processes beside this one never see half a file. Each
// checkout has a folder of its own: they test different children.
func build(pkg string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	checkout := fnv.New32a()
	checkout.Write([]byte(here))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sous-sandboxtest-%d-%08x", os.Getuid(), checkout.Sum32()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	temporary, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	out := filepath.Join(temporary, "child")
	// -trimpath as in `make build`, so that both share go's build cache.
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
	}
	return settle(out, filepath.Join(dir, filepath.Base(pkg)))
}

// settle moves the fresh binary to its cached path unless an equal one is there.
func settle(fresh, cached string) (string, error) {
	a, err := os.ReadFile(fresh)
	if err != nil {
		return "", err
	}
	if b, err := os.ReadFile(cached); err == nil && bytes.Equal(a, b) {
		return cached, nil
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	return cached, os.Rename(fresh, cached)
}
