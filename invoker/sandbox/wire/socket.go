package wire

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket reads and writes a socket without telling the Go scheduler of each system
// call. Its calls never block (the poller waits for readiness), so there is nothing
// that the scheduler would have to do meanwhile. Told of a call after a pause, it wakes
// its monitor thread, which in a process of one small request after another costs more
// than the call; in a busy process the monitor takes the processor from a caller that
// the kernel suspended within one.
//
// Deadlines are those of the connection. Reads are made one at a time; writes may be
// concurrent, and do not mix.
type Socket struct {
	raw  syscall.RawConn
	in   transfer
	mu   sync.Mutex // of out
	out  transfer
	fill func(fd uintptr) bool // in.read, made once
	send func(fd uintptr) bool // out.write, made once
}

// NewSocket returns a Socket over conn, which stays the caller's to close.
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

// read reports whether the socket need not become readable first.
func (t *transfer) read(fd uintptr) bool {
	t.n, t.err = call(unix.SYS_READ, fd, t.p)
	return !errors.Is(t.err, unix.EAGAIN)
}

// write reports whether the socket need not become writable first.
func (t *transfer) write(fd uintptr) bool {
	for t.err = nil; t.n < len(t.p) && t.err == nil; {
		var n int
		n, t.err = call(unix.SYS_WRITE, fd, t.p[t.n:])
		t.n += n
	}
	return !errors.Is(t.err, unix.EAGAIN)
}

// call is read or write of a descriptor that does not block.
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
