package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sandboxExecutable is the program that sandboxes run: the small one inside this
// binary, as a file in memory that nobody can change, or "" (this binary itself)
// where there is none. close lets the file go; what was started from it lives on.
func sandboxExecutable() (path string, closeFile func() error, err error) {
	if len(sandboxChild) == 0 {
		return "", func() error { return nil }, nil
	}
	fd, err := unix.MemfdCreate("sous-sandbox-child", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return "", nil, fmt.Errorf("sandbox child: %w", err)
	}
	file := os.NewFile(uintptr(fd), "sous-sandbox-child")
	if _, err := file.Write(sandboxChild); err != nil {
		_ = file.Close() // the write's error says it all
		return "", nil, fmt.Errorf("sandbox child: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		_ = file.Close() // likewise
		return "", nil, fmt.Errorf("sandbox child: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), file.Close, nil
}
