// Package sandboxtest builds the sandbox child, and programs that start it, for tests.
//
// A test binary cannot be its own child: built with -race it crashes under the
// child's system call filter, and built with cgo Landlock needs more of it.
package sandboxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
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
	return once(t, pkg, func() (string, error) { return build(pkg, filepath.Base(pkg)) })
}

// Sous is the path of sous, which embeds the program of Executable as that of `make build` does.
// Build makes one that is its own sandbox child.
func Sous(t testing.TB) string {
	t.Helper()
	child := Executable(t)
	return once(t, "sous with its child", func() (string, error) { return buildSous(child, "") })
}

// SousWithConsole is the path of sous as Sous has it, which also embeds the console in the file
// archive.
func SousWithConsole(t testing.TB, archive string) string {
	t.Helper()
	child := Executable(t)
	return once(t, "sous with its console", func() (string, error) { return buildSous(child, archive) })
}

func once(t testing.TB, what string, build func() (string, error)) string {
	t.Helper()
	of, _ := built.LoadOrStore(what, sync.OnceValues(build))
	path, err := of.(func() (string, error))()
	if err != nil {
		t.Fatalf("build %s: got error %v, want a program", what, err)
	}
	return path
}

// sousPackage is the program of the server and the command line.
const sousPackage = "github.com/codesous/sous/cmd/sous"

// buildSous presents the compressed child, and the archive of the console unless it is "", to the
// compiler as the Makefile does.
func buildSous(child, console string) (string, error) {
	here, err := root()
	if err != nil {
		return "", err
	}
	compressed, err := generate("sandbox-child.zst", func(path, _ string) error { return compress(child, path) })
	if err != nil {
		return "", err
	}
	replaced := map[string]string{filepath.Join(here, "cmd/sous/internal/server/sandbox-child.zst"): compressed}
	name, tags := "sous-embedding", "sandboxchild"
	if console != "" {
		replaced[filepath.Join(here, "controlplane/console/console.zip")] = console
		name, tags = "sous-console", "sandboxchild,console"
	}
	overlay, err := generate(name+".json", func(path, _ string) error {
		text, err := json.Marshal(map[string]any{"Replace": replaced})
		return errors.Join(err, os.WriteFile(path, text, 0o600))
	})
	if err != nil {
		return "", err
	}
	return build(sousPackage, name, "-tags", tags, "-overlay", overlay)
}

func compress(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	return os.WriteFile(to, encoder.EncodeAll(content, nil), 0o600)
}

// build leaves the work of finding out what changed to go. It does not link a program again whose
// file is up to date, so it starts with a copy of the last one.
func build(pkg, name string, flags ...string) (string, error) {
	return generate(name, func(path, last string) error {
		program, err := os.ReadFile(last)
		if err == nil {
			err = os.WriteFile(path, program, 0o755)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// -trimpath as in `make build`, so that both share go's build cache.
		cmd := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-o", path}, flags, []string{pkg})...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
		}
		return os.Chmod(path, 0o755)
	})
}

// generate calls write for the file path, and renames it, so that test processes beside this one
// never see half a file. last is the file that it replaces, if there is one. Each checkout has a
// folder of its own: they test different programs.
func generate(name string, write func(path, last string) error) (string, error) {
	here, err := root()
	if err != nil {
		return "", err
	}
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
	fresh, last := filepath.Join(temporary, "fresh"), filepath.Join(dir, name)
	if err := write(fresh, last); err != nil {
		return "", err
	}
	return settle(fresh, last)
}

// root returns the folder of go.mod above the working directory, which go test sets to the
// folder of the package. The paths of a binary that was built with -trimpath do not tell it.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory: %w", err)
		}
		dir = parent
	}
}

// settle moves the fresh file to its cached path unless an equal one is there.
func settle(fresh, cached string) (string, error) {
	a, err := os.ReadFile(fresh)
	if err != nil {
		return "", err
	}
	if b, err := os.ReadFile(cached); err == nil && bytes.Equal(a, b) {
		return cached, nil
	}
	return cached, os.Rename(fresh, cached)
}
