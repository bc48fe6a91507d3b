package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// SandboxExecutable returns the path of the program that sandboxes run: the sandbox child
// embedded in this binary, as a sealed file in memory. It returns "", which means this
// binary itself, if the build embeds no child. closeFile releases the file; processes that
// were started from it continue.
func SandboxExecutable() (path string, closeFile func() error, err error) {
	if !embedsSandboxChild {
		return "", func() error { return nil }, nil
	}
	return childExecutable(sandboxChild)
}

// childExecutable is SandboxExecutable for a compressed child.
func childExecutable(child []byte) (path string, closeFile func() error, err error) {
	program, err := zstd.NewReader(bytes.NewReader(child))
	if err != nil {
		return "", nil, fmt.Errorf("sandbox child: %w", err)
	}
	defer program.Close()
	file, err := memoryFile("sous-sandbox-child", program)
	if err != nil {
		return "", nil, fmt.Errorf("sandbox child: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", file.Fd()), file.Close, nil
}

// firstFree is the lowest descriptor of the file. The process that is started from the path
// gets descriptors 0 to 3 (stderr and a socket among them) before it executes the path, so
// /proc/self/fd/3 would name its socket by then. 16 leaves room for more of them.
const firstFree = 16

// memoryFile returns an anonymous file in memory that holds all of content and is sealed against
// every change: no process, not even this one, can replace the program that the next sandbox
// runs. name is shown in /proc only. The file is closed on exec.
func memoryFile(name string, content io.Reader) (*os.File, error) {
	low, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, firstFree)
	if err := errors.Join(err, unix.Close(low)); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	size, err := io.Copy(file, content)
	if err == nil && size == 0 {
		err = errors.New("the program is empty; build sous with make build")
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
