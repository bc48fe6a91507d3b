package child

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawIO is read or write of a descriptor that does not block.
func rawIO(trap, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}

// cpuTime is what the process has used of the processor.
func cpuTime() time.Duration {
	var t unix.Timespec
	const clock = uintptr(unix.CLOCK_PROCESS_CPUTIME_ID)
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
