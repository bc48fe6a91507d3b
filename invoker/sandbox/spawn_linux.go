package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// childArg is the argument by which the executable knows that it is to be a
// child; it is child.Arg, which is not imported to keep the interpreter out of
// what links this package.
const childArg = "sandbox-child"

// sandboxID is the user and group that a child sees itself as in its own user
// namespace. It is not 0, so that exec takes all capabilities away.
const sandboxID = 1000

// nobody is the host's user and group of children whose parent is root.
const nobody = 65534

// isolation is how far a host lets a child's namespaces go.
type isolation int

const (
	isolateNobody isolation = iota // own user and network namespace, user nobody outside (parent is root)
	isolateSelf                    // own user and network namespace, the parent's user outside
	isolateNone                    // the host refuses namespaces
)

func (i isolation) String() string {
	return [...]string{"user and network namespace, as nobody", "user and network namespace", "no namespaces"}[i]
}

// spawner starts children from one thread that lives as long as they do: the
// kernel sends Pdeathsig when the *thread* that spawned a child ends, and Go ends
// threads as it likes.
type spawner struct {
	executable string
	patience   time.Duration // of its children
	log        *zap.Logger
	requests   chan spawnRequest

	// Only the thread's:
	isolation isolation
	proven    bool // a child started with it
}

type spawnRequest struct {
	files []*os.File
	reply chan spawnReply
}

type spawnReply struct {
	process   *os.Process
	isolation isolation
	err       error
}

// newSpawner starts the thread and marks every descriptor that this process was
// started with close-on-exec: Go marks only those that it opens itself.
func newSpawner(cfg Config) (*spawner, error) {
	if err := unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("sandbox: close_range: %w", err)
	}
	s := &spawner{
		executable: cfg.Executable,
		patience:   cfg.LoadTimeout,
		log:        cfg.Logger,
		requests:   make(chan spawnRequest),
	}
	if os.Geteuid() != 0 {
		s.isolation = isolateSelf
	}
	go s.serve()
	return s, nil
}

// stop ends the thread, and with it every child that still lives.
func (s *spawner) stop() { close(s.requests) }

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
		process, err := s.startWithFallback(r.files)
		r.reply <- spawnReply{process, s.isolation, err}
	}
}

// start runs the executable with stderr and the socket (descriptor 3) alone.
func (s *spawner) start(stderr, socket *os.File) (*os.Process, isolation, error) {
	reply := make(chan spawnReply, 1)
	s.requests <- spawnRequest{files: []*os.File{nil, nil, stderr, socket}, reply: reply}
	r := <-reply
	return r.process, r.isolation, r.err
}

// startWithFallback goes one step down where the host refuses a namespace. A
// refusal is a property of the host: what once worked is never given up.
func (s *spawner) startWithFallback(files []*os.File) (*os.Process, error) {
	for {
		process, err := s.startAs(s.isolation, files)
		if err == nil {
			s.proven = true
			return process, nil
		}
		if s.proven || s.isolation == isolateNone || !refused(err) {
			return nil, err
		}
		s.log.Warn("this host refuses a layer of the sandbox",
			zap.Stringer("refused", s.isolation), zap.Stringer("next", s.isolation+1), zap.Error(err))
		s.isolation++
	}
}

// refused tells a host's refusal of namespaces (or, for nobody, of the
// executable) from a passing shortage.
func refused(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSYS, unix.ENOSPC, unix.EUSERS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *spawner) startAs(i isolation, files []*os.File) (*os.Process, error) {
	attr := &syscall.SysProcAttr{
		Setsid:    true, // a Ctrl-C at the terminal is the parent's to handle
		Pdeathsig: syscall.SIGKILL,
	}
	if i != isolateNone {
		uid, gid := os.Geteuid(), os.Getegid()
		if i == isolateNobody {
			uid, gid = nobody, nobody
			attr.Credential = &syscall.Credential{Uid: sandboxID, Gid: sandboxID}
			attr.GidMappingsEnableSetgroups = true
		}
		attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: sandboxID, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: sandboxID, HostID: gid, Size: 1}}
	}
	return os.StartProcess(s.executable, []string{"sous", childArg}, &os.ProcAttr{
		Dir: "/",
		// Without containermaxprocs=0 the child's runtime reads cgroup files
		// again and again, which its filter refuses.
		Env:   []string{"GODEBUG=containermaxprocs=0"},
		Files: files,
		Sys:   attr,
	})
}
