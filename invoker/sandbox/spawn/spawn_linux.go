// Package spawn is the server's half of the nursery: it starts sandbox children through one, and
// has it limit those that run as other users.
package spawn

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codesous/sous/invoker/sandbox/cgroup"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// childArg is the argument by which the executable knows that it is to be a
// child; it is child.Arg, which is not imported to keep the interpreter out of
// what links this package.
const childArg = "sandbox-child"

// Spawner starts children through a nursery that it starts, from one thread that lives as
// long as they do: the kernel sends the death signal when the *thread* that is their parent
// ends, and Go ends threads as it likes.
//
//	Start      any goroutine; hands its request to the thread and waits
//	Attend     any goroutine, likewise, for what only the nursery may do with a child
//	serve      the thread: one request after another
//	request    has the nursery fork, or starts a new nursery first
//	Stop       the thread ends, and the kernel kills the nursery and all children
//
// The descriptors of a child's stderr and socket travel to the nursery as ancillary data
// (SCM_RIGHTS) of a nursery.Request; the nursery answers with a nursery.Reply.
type Spawner struct {
	// First is the isolation to be tried first; tests set it before the first child starts.
	First nursery.Isolation
	// CGroups is nil without cgroups. It is set before the first child starts.
	CGroups *cgroup.Tree

	executable  string
	loadTimeout time.Duration
	log         *zap.Logger
	requests    chan spawnRequest // unbuffered
	stopped     chan struct{}     // closed by Stop
	nurseries   atomic.Uint64     // that were started

	mu   sync.Mutex
	used map[int]bool // the users of living children

	// Only the thread's:
	nursery *os.Process // nil before the first request and after its death
	socket  int         // its SOCK_SEQPACKET socket
	found   nursery.Greeting
}

// spawnRequest asks for a child with these two descriptors, which stay the requester's to
// close, or for what the nursery.Request says.
type spawnRequest struct {
	nursery.Request
	stderr, socket *os.File
	reply          chan spawnReply
}

type spawnReply struct {
	nursery.Reply
	child Child
	err   error
}

// Child is a new child.
type Child struct {
	Process   *os.Process
	Isolation nursery.Isolation
	User      int  // the one that it runs as, 0 for the server's
	OwnUser   bool // no other child runs as User
}

// New starts the thread and marks every descriptor that this process was started with
// close-on-exec: Go marks only those that it opens itself. executable is the children's
// program; a nursery that does not answer within loadTimeout is replaced.
func New(executable string, loadTimeout time.Duration, cgroups *cgroup.Tree, log *zap.Logger) (*Spawner, error) {
	if err := unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, fmt.Errorf("sandbox: close_range: %w", err)
	}
	s := &Spawner{
		CGroups:     cgroups,
		executable:  executable,
		loadTimeout: loadTimeout,
		log:         log,
		requests:    make(chan spawnRequest),
		stopped:     make(chan struct{}),
		used:        make(map[int]bool),
	}
	go s.serve()
	return s, nil
}

// Stop ends the nursery and the thread, and with it every child that still lives. It is called
// once.
func (s *Spawner) Stop() { close(s.stopped) }

// Start runs the executable with stderr and the socket (descriptor 3) alone. The process is
// a child of this one: the caller waits for it, and then calls Release with its user.
func (s *Spawner) Start(stderr, socket *os.File) (Child, error) {
	r := s.hand(spawnRequest{stderr: stderr, socket: socket})
	return r.child, r.err
}

// Attend has the nursery do something with a living child that it may and this process may
// not. Errors: that of the system; os.ErrProcessDone after Stop.
func (s *Spawner) Attend(r nursery.Request) (nursery.Reply, error) {
	reply := s.hand(spawnRequest{Request: r})
	switch {
	case reply.err != nil:
		return reply.Reply, reply.err
	case reply.Errno != 0:
		return reply.Reply, fmt.Errorf("sandbox nursery: %s: %w", reply.Error, syscall.Errno(reply.Errno))
	}
	return reply.Reply, nil
}

// hand hands a request to the thread and waits.
func (s *Spawner) hand(r spawnRequest) spawnReply {
	r.reply = make(chan spawnReply, 1)
	select {
	case s.requests <- r:
		return <-r.reply
	case <-s.stopped:
		return spawnReply{err: os.ErrProcessDone}
	}
}

// Nurseries returns the number of nurseries that were started.
func (s *Spawner) Nurseries() uint64 { return s.nurseries.Load() }

// take returns the user of a new child. Users are taken at random: servers in other containers
// of this host take them from the same range, and the kernel counts the threads of a user.
func (s *Spawner) take(users nursery.Users) (user int, err error) {
	if users.Shared() {
		return users.First, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.used) >= users.Count {
		return 0, fmt.Errorf("all %d users of sandboxes are in use", users.Count)
	}
	for {
		user = users.First + rand.IntN(users.Count)
		if !s.used[user] {
			s.used[user] = true
			return user, nil
		}
	}
}

// Release makes the user of a child that has ended available again.
func (s *Spawner) Release(user int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, user)
}

// serve is the spawner's thread: it handles requests until Stop.
func (s *Spawner) serve() {
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
	for {
		select {
		case <-s.stopped:
			s.endNursery()
			return
		case r := <-s.requests:
			r.reply <- s.request(r)
		}
	}
}

// request passes a request to the nursery. If there is no nursery, or it died, a new one is
// started and asked once.
func (s *Spawner) request(r spawnRequest) spawnReply {
	if s.nursery != nil {
		reply := s.ask(r)
		if s.nursery != nil {
			return reply
		}
		s.log.Warn("the sandbox nursery died", zap.Error(reply.err))
	}
	if err := s.startNursery(); err != nil {
		return spawnReply{err: fmt.Errorf("sandbox nursery: %w", err)}
	}
	return s.ask(r)
}

// ask passes a request to a nursery that lives. For a start it takes a user first.
func (s *Spawner) ask(r spawnRequest) spawnReply {
	if r.stderr == nil {
		return s.exchange(r)
	}
	var err error
	r.User, err = s.take(s.found.Users)
	if err != nil {
		return spawnReply{err: err}
	}
	reply := s.exchange(r)
	if reply.err == nil && reply.Error != "" {
		reply.err = errors.New(reply.Error)
	}
	if reply.err == nil {
		reply.child = Child{Isolation: s.found.Isolation, User: r.User, OwnUser: !s.found.Users.Shared()}
		reply.child.Process, reply.err = os.FindProcess(reply.PID)
	}
	if reply.err != nil {
		s.Release(r.User)
	}
	return reply
}

// exchange sends a request and receives the reply. It ends a nursery that does not answer
// within loadTimeout, or at all; s.nursery is nil then. What the nursery could not do is an
// error in the reply, with the nursery intact.
func (s *Spawner) exchange(r spawnRequest) (reply spawnReply) {
	text, err := json.Marshal(r.Request)
	if err == nil {
		var rights []byte
		if r.stderr != nil {
			rights = unix.UnixRights(int(r.stderr.Fd()), int(r.socket.Fd()))
		}
		err = unix.Sendmsg(s.socket, text, rights, nil, unix.MSG_NOSIGNAL)
	}
	if err == nil {
		err = s.receive(&reply.Reply)
	}
	if err != nil {
		s.endNursery()
		reply.err = err
	}
	return reply
}

// startNursery starts a nursery and waits for its greeting. What the host refuses is
// logged, once for each nursery.
func (s *Spawner) startNursery() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(fds[1]), "sandbox nursery")
	process, err := os.StartProcess(s.executable,
		[]string{"sous", childArg, nursery.Arg, fmt.Sprint(int(s.First))},
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
	s.found = greeting
	if s.CGroups != nil {
		if err := s.CGroups.Spare(process.Pid); err != nil {
			s.log.Warn("the sandbox nursery is in the server's cgroup", zap.Error(err))
		}
	}
	if len(greeting.Refused) > 0 {
		s.log.Warn("this host refuses layers of the sandbox", zap.Stringer("left", s.found.Isolation),
			zap.String("refused", strings.Join(greeting.Refused, "; ")))
	}
	return nil
}

// receive reads one message of the nursery, as JSON of at most nursery.MaxMessage bytes.
func (s *Spawner) receive(message any) error {
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
func (s *Spawner) endNursery() {
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
