package child

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Arg is the first argument that makes the binary a sandbox child. sandbox.childArg is the
// same text.
const Arg = "sandbox-child"

// socketFD is where the parent leaves the socket.
const socketFD = 3

// maxStackBytes bounds the Go stack, for native recursion that goja's own call-stack limit
// does not see: the process ends instead of eating memory. The parent recognizes that end
// by its text on stderr (exit.stackOverflow in sandbox/program.go).
const maxStackBytes = 16 << 20

// Main serves the socket at descriptor 3, as a child or as the nursery that
// starts children, and never returns: the process ends
// when the socket does, with status 0, or when the child cannot continue, with
// status 1 and the reason on stderr.
func Main() {
	nursery.Dispatch()
	runtime.GOMAXPROCS(1)
	debug.SetMaxStack(maxStackBytes)
	time.Local = time.UTC
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run opens what needs a descriptor, confines the process, and serves the socket until the
// parent closes it.
func run() error {
	// What needs a descriptor or a file is opened before confinement takes both.
	sizes := openSizes()
	conn, err := inherited(socketFD)
	if err != nil {
		return err
	}
	layers, err := Confine()
	if err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	socket, err := wire.NewSocket(conn)
	if err != nil {
		return err
	}
	return Serve(context.Background(), unannounced{conn, socket}, Options{
		Layers:      layers,
		MappedBytes: sizes.mapped,
		WatchMemory: true,
		// A script may keep the main goroutine for ever, so the reader ends the
		// process when the parent has gone.
		OnHangup: func() { os.Exit(0) },
	})
}

// unannounced is a connection that is read and written as a wire.Socket, which does not
// announce its system calls to Go's scheduler.
type unannounced struct {
	net.Conn
	socket *wire.Socket
}

func (c unannounced) Read(p []byte) (int, error)  { return c.socket.Read(p) }
func (c unannounced) Write(p []byte) (int, error) { return c.socket.Write(p) }

// connection is a connection made of a descriptor.
type connection interface {
	net.Conn
	syscall.Conn
}

// inherited makes a connection of a descriptor that the parent left open, and closes the
// descriptor: the connection has a duplicate.
func inherited(fd uintptr) (connection, error) {
	f := os.NewFile(fd, "sandbox-socket")
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is not open", fd)
	}
	file, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := file.(connection)
	if !ok {
		return nil, fmt.Errorf("descriptor %d is a %T, want a socket", fd, file)
	}
	return conn, f.Close()
}
