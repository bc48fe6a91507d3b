package child

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// rawConn reads and writes a socket without telling the Go scheduler of each
// system call. Its calls never block (the poller waits for readiness), so there
// is nothing that the scheduler would have to do meanwhile; but told of a call
// after a pause, it wakes its monitor thread, which in a process of one small
// request after another costs more than the call.
type rawConn struct {
	net.Conn
	raw syscall.RawConn
}

// unannounced gives conn as a rawConn, or as it is where it has no descriptor.
func unannounced(conn net.Conn) net.Conn {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return conn
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return conn
	}
	return &rawConn{Conn: conn, raw: raw}
}

func (c *rawConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	polled := c.raw.Read(func(fd uintptr) bool {
		n, err = rawIO(unix.SYS_READ, fd, p)
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case polled != nil:
		return 0, polled
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *rawConn) Write(p []byte) (written int, err error) {
	for written < len(p) {
		var n int
		polled := c.raw.Write(func(fd uintptr) bool {
			n, err = rawIO(unix.SYS_WRITE, fd, p[written:])
			return !errors.Is(err, unix.EAGAIN)
		})
		written += n
		if polled != nil {
			return written, polled
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
