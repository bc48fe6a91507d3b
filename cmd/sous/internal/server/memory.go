package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/admission"
	sandboxmemory "github.com/codesous/sous/invoker/sandbox/memory"
)

// The derivation of the memory limit.
const (
	// leastMemoryLimit is the smallest limit: with less, the collector would use the processor
	// that requests need.
	leastMemoryLimit = 128 << 20
	// memoryParts: at least a fourth of the memory is the server's, whatever the sandboxes may
	// use.
	memoryParts = 4
	// bodyParts: a fourth of the limit is for request bodies and answers. Their decoded forms
	// take up to two or three times as much.
	bodyParts = 4
)

// applyMemoryLimit sets the limit at which the Go runtime collects garbage more often than
// serverGCPercent asks for, and logs it. GOMEMLIMIT overrides the setting, and the derived
// limit. The limit is soft: it does not end the process.
func applyMemoryLimit(s settings, logger *zap.Logger) error {
	source := "GOMEMLIMIT"
	limit := debug.SetMemoryLimit(-1)
	if os.Getenv(source) == "" {
		source = "memory-limit"
		limit = s.Network.MemoryLimit << 20
		if limit == 0 {
			var err error
			source = "derived"
			limit, err = s.deriveMemoryLimit()
			if err != nil {
				return err
			}
		}
		debug.SetMemoryLimit(limit)
	}
	logger.Info("memory limit of the server, without sandboxes", zap.Int64("mib", limit>>20), zap.String("source", source), zap.Int64("body_budget_mib", s.bodyBudget()>>20))
	return nil
}

// deriveMemoryLimit returns nine tenths of the memory that the budget of the sandboxes leaves.
func (s *settings) deriveMemoryLimit() (int64, error) {
	memory, err := sandboxmemory.HostMemory()
	if err != nil {
		return 0, fmt.Errorf("memory-limit: read the memory of this machine: %w", err)
	}
	sandboxes := s.SandboxMemoryBudget << 20
	if sandboxes == 0 {
		sandboxes = memory / 2 // as the pool of sandboxes does
	}
	own, err := cgroupMemory(os.DirFS("/"))
	if err != nil {
		return 0, fmt.Errorf("memory-limit: read the limit of the cgroup: %w", err)
	}
	return serverShare(min(memory, own), sandboxes), nil
}

// serverShare returns the limit of a server that shares so much memory with sandboxes that may
// use so many bytes of it: what they leave, but at least a part of the whole, less a tenth
// for what the Go runtime does not count.
//
//	8 GiB, sandboxes 4 GiB    3.6 GiB
//	512 MiB, sandboxes 480    128 MiB, the least limit
func serverShare(memory, sandboxes int64) int64 {
	share := max(memory-sandboxes, memory/memoryParts)
	return max(share-share/10, leastMemoryLimit)
}

// bodyBudget returns the bytes of request bodies and answers that may be in memory: the
// setting, or a part of the memory limit in force.
func (s *settings) bodyBudget() int64 {
	if s.Network.BodyBudget > 0 {
		return s.Network.BodyBudget << 20
	}
	limit := debug.SetMemoryLimit(-1) // math.MaxInt64 where no server has set it, as in tests
	if limit == math.MaxInt64 {
		return admission.MinBudget
	}
	return max(limit/bodyParts, admission.MinBudget)
}

// cgroupMemory returns the smallest limit of the cgroup of this process and of those above it,
// math.MaxInt64 for none. A container sees its own cgroup as the root; a systemd unit with
// MemoryMax sees the whole tree. root is the root of the file system.
func cgroupMemory(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return math.MaxInt64, nil
	}
	if err != nil {
		return 0, err
	}
	limit := int64(math.MaxInt64)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		// 0::/system.slice/sous.service in v2, 9:memory:/docker/… in v1
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var dir, file string
		switch {
		case parts[0] == "0" && parts[1] == "":
			dir, file = "sys/fs/cgroup", "memory.max"
		case parts[1] == "memory":
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			found, err := limitIn(root, path.Join(dir, group, file))
			if err != nil {
				return 0, err
			}
			limit = min(limit, found)
			if group == "/" {
				break
			}
		}
	}
	return limit, lines.Err()
}

// limitIn returns the limit in a file of a cgroup, math.MaxInt64 for none.
func limitIn(root fs.FS, file string) (int64, error) {
	text, err := fs.ReadFile(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return math.MaxInt64, nil
	}
	if err != nil {
		return 0, err
	}
	limit, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || limit <= 0 {
		return math.MaxInt64, nil //nolint:nilerr // "max": no limit
	}
	return limit, nil
}
