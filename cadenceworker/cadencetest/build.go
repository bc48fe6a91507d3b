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

// The cache folder code-sous holds cadenceserver-DIGEST, a binary for each version of the sources,
// cadenceserver.lock, and the folder building-… of a build in progress.
const (
	// programFolder holds the server's module, from this repository's root.
	programFolder = "tools/cadenceserver"
	// unusedFor is how long a binary of other sources is kept: they have 90 MB each.
	unusedFor = 7 * 24 * time.Hour
)

// program returns the path of the server's binary, which it builds if necessary, and the folder of
// its sources.
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

// build builds the server of folder into cache, unless it is there, and returns its path. The
// name contains the digest of its sources. Only one process builds at a time, the others wait for
// its binary, which they find when they have the lock.
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

// use reports whether binary exists, and sets its time of modification, by which sweep finds
// binaries that are not used any more.
func use(binary string) bool {
	now := time.Now()
	return os.Chtimes(binary, now, now) == nil
}

// digest returns a hash of everything that the binary depends on: the Go version, the platform,
// and the module's sources and dependencies.
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

// lock waits for the exclusive lock of the file path, which ends with this process at the latest.
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
// used for unusedFor. The caller must hold the lock: the files of a build in progress look like
// those of a killed one.
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

// compile builds the binary of the module in folder, without cgo. It builds into a folder of its
// own and renames the result, so that other processes never see half a file.
func compile(cache, folder, binary string) error {
	dir, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return fmt.Errorf("build the Cadence server: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next build removes it otherwise
	fresh := filepath.Join(dir, "cadenceserver")
	// -trimpath as in `make build`, so that both share go's build cache.
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", fresh, ".")
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
