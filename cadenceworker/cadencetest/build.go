package cadencetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// programFolder holds the server's module, from this repository's root.
	programFolder = "tools/cadenceserver"
	// unusedFor is how long a binary of other sources is kept: they have 90 MB each.
	unusedFor = 7 * 24 * time.Hour
)

// program is the path of the server's binary, and of the folder of its sources.
func program() (binary, folder string, err error) {
	folder, err = sources()
	if err != nil {
		return "", "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("find the cache folder: %w", err)
	}
	binary, err = build(filepath.Join(cache, "code-sous"), folder)
	return binary, folder, err
}

// sources looks for the server's module from the working directory upwards: a
// test runs in its package's folder, and a path in the binary may be trimmed.
func sources() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", programFolder, err)
	}
	for {
		folder := filepath.Join(dir, programFolder)
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("find %s: no folder above the working directory has it", programFolder)
		}
		dir = parent
	}
}

// build builds the server of folder into cache, unless it is there. Only one
// process builds at a time, the others wait for its binary.
func build(cache, folder string) (string, error) {
	sum, err := digest(folder)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(cache, "cadenceserver-"+sum)
	if use(binary) {
		return binary, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("build the Cadence server: %w", err)
	}
	unlock, err := lock(filepath.Join(cache, "cadenceserver.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if use(binary) {
		return binary, nil
	}
	if err := sweep(cache, time.Now()); err != nil {
		return "", err
	}
	return binary, compile(cache, folder, binary)
}

// use reports whether binary is there, and notes that it is in use.
func use(binary string) bool {
	now := time.Now()
	return os.Chtimes(binary, now, now) == nil
}

// digest is a hash of all that decides what the binary is.
func digest(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", fmt.Errorf("hash the Cadence server's sources: %w", err)
	}
	h := sha256.New()
	h.Write(fmt.Appendln(nil, runtime.Version(), runtime.GOOS, runtime.GOARCH))
	for _, file := range append(files, filepath.Join(folder, "go.mod"), filepath.Join(folder, "go.sum")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("hash the Cadence server's sources: %w", err)
		}
		h.Write(fmt.Appendln(nil, filepath.Base(file), len(text)))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// lock waits for the lock of path, which ends with this process at the latest.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("wait for another build: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("wait for another build: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// sweep removes the files of builds that were killed, and binaries that have not been
// used for a long time. The caller must hold the lock.
func sweep(cache string, now time.Time) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("clean the cache of Cadence servers: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // another process removed it
		}
		stale := strings.HasPrefix(e.Name(), "cadenceserver-") && now.Sub(info.ModTime()) > unusedFor
		if stale || strings.HasPrefix(e.Name(), "building-") {
			if err := os.RemoveAll(filepath.Join(cache, e.Name())); err != nil {
				return fmt.Errorf("clean the cache of Cadence servers: %w", err)
			}
		}
	}
	return nil
}

// compile returns way to the tests that run meanwhile, and renames, so that a
// process that does not wait never sees half a file.
func compile(cache, folder, binary string) error {
	dir, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return fmt.Errorf("build the Cadence server: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next build removes it otherwise
	fresh := filepath.Join(dir, "cadenceserver")
	// -trimpath as in `make build`, so that both share go's build cache.
	cmd := exec.CommandContext(context.Background(), "nice", "-n", "10", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", fresh, ".")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false", "PWD="+folder)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the Cadence server: %w\n%s", err, text)
	}
	if err := os.Rename(fresh, binary); err != nil {
		return fmt.Errorf("build the Cadence server: %w", err)
	}
	return nil
}
