package wire

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket reads and writes a socket by raw system calls, which the Go scheduler does not see.
// The descriptor is non-blocking, so there is nothing for the scheduler to do. An ordinary
// system call after an idle time wakes sysmon, which costs more than the call itself; in a
// busy process sysmon takes the P of a thread that the kernel preempted during a call.
//
// The deadlines of the connection apply. Read must not be called concurrently. Write may be;
// the bytes of two calls do not mix.
type Socket struct {
	raw  syscall.RawConn
	in   transfer
	mu   sync.Mutex // guards out
	out  transfer
	fill func(fd uintptr) bool // in.read; a new method value would be allocated for each call
	send func(fd uintptr) bool // out.write
}

// NewSocket returns a Socket over conn. The caller closes conn.
func NewSocket(conn syscall.Conn) (*Socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &Socket{raw: raw}
	s.fill, s.send = s.in.read, s.out.write
	return s, nil
}

// Read implements io.Reader.
func (s *Socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.in = transfer{p: p}
	polled := s.raw.Read(s.fill)
	done := s.in
	s.in = transfer{}
	switch {
	case polled != nil:
		return 0, polled
	case done.err != nil:
		return 0, done.err
	case done.n == 0:
		return 0, io.EOF
	}
	return done.n, nil
}

// Write implements io.Writer.
func (s *Socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = transfer{p: p}
	polled := s.raw.Write(s.send)
	done := s.out
	s.out = transfer{}
	if polled != nil {
		return done.n, polled
	}
	return done.n, done.err
}

// transfer is one Read or Write under way.
type transfer struct {
	p   []byte
	n   int // bytes transferred
	err error
}

// read reads once. It returns false, which makes RawConn.Read wait and call it again, if the
// socket is not readable.
func (t *transfer) read(fd uintptr) bool {
	t.n, t.err = call(unix.SYS_READ, fd, t.p)
	return !errors.Is(t.err, unix.EAGAIN)
}

// write writes the rest of p. It returns false, which makes RawConn.Write wait and call it
// again, if the socket accepts no more.
func (t *transfer) write(fd uintptr) bool {
	for t.err = nil; t.n < len(t.p) && t.err == nil; {
		var n int
		n, t.err = call(unix.SYS_WRITE, fd, t.p[t.n:])
		t.n += n
	}
	return !errors.Is(t.err, unix.EAGAIN)
}

// call makes the system call trap, read or write, on the non-blocking descriptor fd. It repeats
// a call that a signal interrupted. p must not be empty.
func call(trap, fd uintptr, p []byte) (int, error) {
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
