package server

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SandboxExecutable is the program that sandboxes run: the small one inside this
// binary, as a file in memory that nobody can change, or "" (this binary itself)
// where there is none. close lets the file go; what was started from it lives on.
func SandboxExecutable() (path string, closeFile func() error, err error) {
	if len(sandboxChild) == 0 {
		return "", func() error { return nil }, nil
	}
	file, err := memoryFile("sous-sandbox-child", sandboxChild)
	if err != nil {
		return "", nil, fmt.Errorf("sandbox child: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", file.Fd()), file.Close, nil
}

// firstFree is a descriptor that no child is given anything as. A child gets its
// descriptors before it is executed, so a path that named one of them would lead
// to something else by then.
const firstFree = 16

// memoryFile is content as a file that nobody can change.
func memoryFile(name string, content []byte) (*os.File, error) {
	low, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, firstFree)
	if err := errors.Join(err, unix.Close(low)); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(content); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
