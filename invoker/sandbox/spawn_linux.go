package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codesous/sous/invoker/sandbox/nursery"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// childArg is the argument by which the executable knows that it is to be a
// child; it is child.Arg, which is not imported to keep the interpreter out of
// what links this package.
const childArg = "sandbox-child"

// spawner starts children through a nursery that it starts, from one thread that lives as
// long as they do: the kernel sends the death signal when the *thread* that is their parent
// ends, and Go ends threads as it likes.
//
//	start      any goroutine; hands its request to the thread and waits
//	serve      the thread: one request after another
//	request    has the nursery fork, or starts a new nursery first
//	stop       the thread ends, and the kernel kills the nursery and all children
//
// The descriptors of a child's stderr and socket travel to the nursery as ancillary data
// (SCM_RIGHTS) of a message of one byte; the nursery answers with a nursery.Birth.
type spawner struct {
	executable  string
	loadTimeout time.Duration // of its children
	log         *zap.Logger
	requests    chan spawnRequest // unbuffered; closed by stop
	first       nursery.Isolation // to be tried first; the best, except in tests
	nurseries   atomic.Uint64     // that were started

	// Only the thread's:
	nursery   *os.Process // nil before the first request and after its death
	socket    int         // its SOCK_SEQPACKET socket
	isolation nursery.Isolation
}

// spawnRequest asks for a child with these two descriptors. They stay the requester's to
// close.
type spawnRequest struct {
	stderr, socket *os.File
	reply          chan spawnReply
}

type spawnReply struct {
	process   *os.Process
	isolation nursery.Isolation
	err       error
}

// newSpawner starts the thread and marks every descriptor that this process was
// started with close-on-exec: Go marks only those that it opens itself.
func newSpawner(cfg Config) (*spawner, error) {
	if err := unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("sandbox: close_range: %w", err)
	}
	s := &spawner{
		executable:  cfg.Executable,
		loadTimeout: cfg.LoadTimeout,
		log:         cfg.Logger,
		requests:    make(chan spawnRequest),
	}
	go s.serve()
	return s, nil
}

// stop ends the nursery and the thread, and with it every child that still lives. start
// must not be called any more.
func (s *spawner) stop() { close(s.requests) }

// start runs the executable with stderr and the socket (descriptor 3) alone. The process is
// a child of this one: the caller waits for it. The isolation is the one that its nursery
// found.
func (s *spawner) start(stderr, socket *os.File) (*os.Process, nursery.Isolation, error) {
	reply := make(chan spawnReply, 1)
	s.requests <- spawnRequest{stderr, socket, reply}
	r := <-reply
	return r.process, r.isolation, r.err
}

// serve is the spawner's thread: it handles requests until stop.
func (s *spawner) serve() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if unix.Gettid() == os.Getpid() {
		// Go does not end the main thread. It stays locked here, so this is another.
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serve()
		}()
		<-done
		return
	}
	for r := range s.requests {
		process, err := s.request(r)
		r.reply <- spawnReply{process, s.isolation, err}
	}
	s.endNursery()
}

// request asks the nursery for a child. If there is no nursery, or it died, a new one is
// started and asked once.
func (s *spawner) request(r spawnRequest) (*os.Process, error) {
	if s.nursery != nil {
		process, err := s.ask(r)
		if s.nursery != nil {
			return process, err
		}
		s.log.Warn("the sandbox nursery died", zap.Error(err))
	}
	if err := s.startNursery(); err != nil {
		return nil, fmt.Errorf("sandbox nursery: %w", err)
	}
	return s.ask(r)
}

// ask has the nursery fork one child. It ends a nursery that does not answer within
// loadTimeout, or at all; s.nursery is nil then. A fork that failed is an error with the
// nursery intact.
func (s *spawner) ask(r spawnRequest) (*os.Process, error) {
	rights := unix.UnixRights(int(r.stderr.Fd()), int(r.socket.Fd()))
	if err := unix.Sendmsg(s.socket, []byte{0}, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		s.endNursery()
		return nil, err
	}
	var birth nursery.Birth
	if err := s.receive(&birth); err != nil {
		s.endNursery()
		return nil, err
	}
	if birth.Error != "" {
		return nil, errors.New(birth.Error)
	}
	return os.FindProcess(birth.PID)
}

// startNursery starts a nursery and waits for its greeting. What the host refuses is
// logged, once for each nursery.
func (s *spawner) startNursery() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(fds[1]), "sandbox nursery")
	process, err := os.StartProcess(s.executable,
		[]string{"sous", childArg, nursery.Arg, fmt.Sprint(int(s.first))},
		&os.ProcAttr{
			Dir:   "/",
			Env:   nursery.Environment(),
			Files: []*os.File{nil, nil, os.Stderr, theirs},
			// One session for all children: a Ctrl-C at the terminal does not reach
			// them, and where the kernel shares processors between sessions, all of
			// them together get no more than the server.
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		})
	err = errors.Join(err, theirs.Close())
	if err != nil {
		return errors.Join(err, unix.Close(fds[0]))
	}
	s.nursery, s.socket = process, fds[0]
	s.nurseries.Add(1)
	// A nursery that hangs is as good as dead.
	loadTimeout := unix.NsecToTimeval(s.loadTimeout.Nanoseconds())
	var greeting nursery.Greeting
	err = unix.SetsockoptTimeval(s.socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &loadTimeout)
	err = errors.Join(err, s.receive(&greeting))
	if err != nil {
		s.endNursery()
		return err
	}
	s.isolation = greeting.Isolation
	if len(greeting.Refused) > 0 {
		s.log.Warn("this host refuses layers of the sandbox", zap.Stringer("left", s.isolation),
			zap.String("refused", strings.Join(greeting.Refused, "; ")))
	}
	return nil
}

// receive reads one message of the nursery, as JSON of at most nursery.MaxMessage bytes.
func (s *spawner) receive(message any) error {
	buf := make([]byte, nursery.MaxMessage)
	for {
		n, _, err := unix.Recvfrom(s.socket, buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return errors.New("it has ended")
		}
		return json.Unmarshal(buf[:n], message)
	}
}

// endNursery kills the nursery, if there is one. Children that it forked live on: they are
// this process's own.
func (s *spawner) endNursery() {
	if s.nursery == nil {
		return
	}
	_ = s.nursery.Kill() // fails only where it has ended
	_, err := s.nursery.Wait()
	err = errors.Join(err, unix.Close(s.socket))
	if err != nil {
		s.log.Warn("ending the sandbox nursery", zap.Error(err))
	}
	s.nursery = nil
}
