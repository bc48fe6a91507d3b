// Package memory computes how much memory a child may use, and reads how much a host has.
package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const megabyte = 1 << 20

// BudgetBytes returns the share of the pool's budget of one child with a limit of memoryMB:
// 2.2 times the limit, for garbage that is not collected yet and the process itself.
func BudgetBytes(memoryMB int) int64 { return int64(memoryMB) * megabyte * 22 / 10 }

// CompileRoom is the address space that a child may add while it reads and compiles source,
// before it has a limit of its own.
const CompileRoom = 512 * megabyte

// AddressSpaceLimit returns the RLIMIT_AS, in bytes, of a child that has mapped so many
// bytes before its first activation. Go maps its heap in arenas of 64 MB; 1.5 times the
// limit lets the collector do its work before the hard end, and 48 MB is the runtime's own
// metadata. For limits of 64 and 128 MB:
//
//	 64 MB:  1.5 * 64  + 16 = 112, rounded up to 128; + 48 = 176 MB
//	128 MB:  1.5 * 128 + 16 = 208, rounded up to 256; + 48 = 304 MB
func AddressSpaceLimit(mapped uint64, memoryMB int) uint64 {
	const arena = 64 * megabyte
	heap := uint64(memoryMB)*megabyte*3/2 + 16*megabyte
	heap = (heap + arena - 1) / arena * arena
	return mapped + heap + 48*megabyte
}

// HostMemory returns the memory that this process may count on, in bytes: the host's, or
// its container's limit if that is less. Of the cgroup file system only the root is read,
// which shows a container its own limit.
func HostMemory() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, err
	}
	total := int64(info.Totalram) * int64(info.Unit)
	for _, file := range []string{
		"/sys/fs/cgroup/memory.max",                   // v2, as a container sees itself
		"/sys/fs/cgroup/memory/memory.limit_in_bytes", // v1
	} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if limit, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && limit > 0 {
			total = min(total, limit) // "max" is no number: no limit
		}
	}
	return total, nil
}

// MappedBytes returns the address space (VmSize) of process pid in bytes, the first number
// of /proc/PID/statm.
func MappedBytes(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	pages, err := strconv.ParseUint(string(first), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", pid, err)
	}
	return pages * uint64(os.Getpagesize()), nil
}
