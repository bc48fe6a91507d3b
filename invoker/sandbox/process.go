package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/codesous/sous/invoker/sandbox/cgroup"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/spawn"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"golang.org/x/sys/unix"
)

// stderrKept is the part of a child's stderr, in bytes, that is kept for the reason of its
// death. A child that writes more than stderrRead, which is more than Go's runtime does, is
// killed: reading costs the server.
const (
	stderrKept = 4 << 10
	stderrRead = 4 << 20
)

// process is one child from its spawn to its death. It has one owner at a time, who reads
// and writes its socket: the keeper for a spare, the user of its sandbox otherwise. Its
// reaper waits for its death; kill may be called from any goroutine at any time.
type process struct {
	pid    int
	conn   *os.File // our end of the socket
	raw    syscall.RawConn
	socket *wire.Socket // of conn
	frames *wire.Reader // of socket
	hello  wire.Hello
	spawn.Child
	spawner *spawner
	mapped  uint64 // address space at Hello, before it saw any source
	limit   uint64 // RLIMIT_AS as set last

	loadTimeout time.Duration // bounds its start and the loading of its program
	compileCPU  time.Duration // bounds the processor time of loading its program

	mu     sync.Mutex // guards reaped: a pid may be used only until it is reaped
	reaped bool
	box    *cgroup.Box   // its cgroup; nil without one
	gone   chan struct{} // closed once reaped; then exit is set
	exit   exit
	// Both are an endReason: why the pool killed the child, endCrash until it does, and
	// the reason that counts if the child ends by itself now.
	why, expected atomic.Int32
	nice          atomic.Int32 // its nice value
	worn          atomic.Bool  // it is not used for another activation
}

// exit is the end of a child. It is set before process.gone is closed and not changed
// afterwards.
type exit struct {
	state  *os.ProcessState
	stderr string // its first 4 KB
	// overLimit is set if the kernel killed it because of its cgroup's memory limit.
	overLimit bool
	why       endReason
}

// spawner starts children with the pool's bounds for loading a program.
type spawner struct {
	*spawn.Spawner
	loadTimeout, compileCPU time.Duration
}

// newSpawner returns the spawner of a pool. c has its defaults.
func newSpawner(c Config, cgroups *cgroup.Tree) (*spawner, error) {
	s, err := spawn.New(c.Executable, c.LoadTimeout, cgroups, c.Logger)
	return &spawner{s, c.LoadTimeout, c.CompileCPU}, err
}

// spawnProcess starts a child and waits for its Hello, for s's loadTimeout at most. started
// reports whether there was a process: then onExit is called once it is reaped, also if
// spawnProcess fails. Errors: ctx's, or the child's state and the beginning of its stderr.
func spawnProcess(ctx context.Context, s *spawner, onExit func(*process)) (_ *process, started bool, err error) {
	p, stderr, err := startProcess(s)
	if err != nil {
		return nil, false, err
	}
	go func() {
		p.reap(stderr)
		onExit(p)
	}()
	if err := p.greet(ctx); err != nil {
		p.end(endStart)
		<-p.gone
		if ctx.Err() != nil {
			return nil, true, ctx.Err()
		}
		return nil, true, fmt.Errorf("sandbox: child's start: %w (%s; stderr %.300q)", err, p.exit.state, p.exit.stderr)
	}
	return p, true, nil
}

// startProcess has s start a child, with one end of a socket pair as its descriptor 3 and a
// pipe as its stderr. The caller reads stderr to its end (reap).
func startProcess(s *spawner) (_ *process, stderr *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: socketpair: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // for Go's poller: deadlines
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	conn, theirs := os.NewFile(uintptr(fds[0]), "sandbox"), os.NewFile(uintptr(fds[1]), "sandbox child")
	stderr, stderrChild, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close(), theirs.Close())
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close(), theirs.Close(), stderr.Close(), stderrChild.Close())
	}
	socket, err := wire.NewSocket(conn)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close(), theirs.Close(), stderr.Close(), stderrChild.Close())
	}
	started, err := s.Start(stderrChild, theirs)
	err = errors.Join(err, theirs.Close(), stderrChild.Close())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sandbox: spawn: %w", err), conn.Close(), stderr.Close())
	}
	return &process{
		pid:    started.Process.Pid,
		conn:   conn,
		raw:    raw,
		socket: socket,
		frames: wire.NewReader(socket),
		gone:   make(chan struct{}),

		Child:       started,
		spawner:     s,
		loadTimeout: s.loadTimeout,
		compileCPU:  s.compileCPU,
	}, stderr, nil
}

// reap waits for the child's end, which closes its stderr, and for its status. It runs in a
// goroutine of its own from the start of the child. The socket stays open: frames that the
// child wrote before it died can still be read.
func (p *process) reap(stderr *os.File) {
	first := make([]byte, stderrKept)
	n, err := io.ReadFull(stderr, first)
	if err == nil {
		_, err = io.CopyN(io.Discard, stderr, stderrRead) // a full pipe would keep it from dying
	}
	p.kill() // no-op unless it closed its stderr or floods it, and lives on
	p.mu.Lock()
	state, waitErr := p.Process.Wait()
	p.reaped = true
	p.spawner.Release(p.User)
	box := p.box
	p.mu.Unlock()
	p.exit = exit{state: state, stderr: string(first[:n])}
	if box != nil {
		p.exit.overLimit = box.OutOfMemory()
		waitErr = errors.Join(waitErr, box.Close())
	}
	closeErr := stderr.Close() // but not the socket: its owner may still have a last frame to read
	if waitErr != nil || closeErr != nil || (err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)) {
		p.exit.stderr += fmt.Sprint("\nsandbox: reaping: ", errors.Join(waitErr, closeErr, err))
	}
	p.exit.why = p.reason() // set before gone is closed
	close(p.gone)
}

// kill ends the child now. It may be called at any time and more than once.
func (p *process) kill() {
	// The only failure is that it has ended already: it is our own child.
	_ = p.Process.Kill()
}

// killFor is kill for a reason. The first reason counts.
func (p *process) killFor(why endReason) {
	p.why.CompareAndSwap(int32(endCrash), int32(why))
	p.kill()
}

// reason returns the reason why the child ended. p.exit's state and stderr are set. A kill
// by the pool comes first, then the reason that the pool expected, then what the child's
// stderr shows; a child that died for no known reason is a crash.
func (p *process) reason() endReason {
	why, expected := endReason(p.why.Load()), endReason(p.expected.Load())
	switch {
	case why != endCrash:
		return why
	case expected != endCrash:
		return expected
	case p.exit.outOfMemory():
		return endMemory
	case p.exit.stackOverflow():
		return endStack
	}
	return endCrash
}

// retirement returns the reason why the child of a spent sandbox is ended.
func (p *process) retirement() endReason {
	if expected := endReason(p.expected.Load()); expected != endCrash {
		return expected
	}
	return endRetired
}

// end kills the child for a reason and closes our end of its socket. Unread frames are lost,
// so only the owner of the process calls it, when it needs the process no more.
func (p *process) end(why endReason) {
	p.killFor(why)
	// Closing a socket fails only where it has been closed before.
	_ = p.conn.Close()
}

// alive reports whether the child of an idle process still holds its end of the
// socket and has sent nothing, which it must not while idle. One system call.
func (p *process) alive() bool {
	if p.frames.Buffered() > 0 {
		return false
	}
	silent := false
	err := p.raw.Control(func(fd uintptr) { silent = nothingToRead(fd) })
	return err == nil && silent
}

// greet reads the child's Hello and bounds its threads and its address space for what
// follows. It notes the address space that the child has mapped so far, before it has seen
// any source: the base of its later limit, should the child not report one.
func (p *process) greet(ctx context.Context) error {
	defer p.boundBy(ctx)()
	kind, payload, err := p.frames.Next()
	if err != nil {
		return err
	}
	if kind != wire.KindHello {
		return fmt.Errorf("%w: kind %d for Hello", wire.ErrFrame, kind)
	}
	if _, err := wire.ParseMessage(payload, &p.hello); err != nil {
		return err
	}
	p.mapped, err = memory.MappedBytes(p.pid)
	if err != nil {
		return err
	}
	if err := p.limitThreads(); err != nil {
		return err
	}
	// Only the soft limit: a parent without privileges could not raise a hard one
	// again, and the child's filter refuses setrlimit.
	return p.limitAddressSpace(p.mapped+memory.CompileRoom, unix.RLIM_INFINITY)
}

// boundBy kills the child when ctx ends, and fails reads and writes when loading takes
// longer than loadTimeout. release ends both bounds; it must be called.
func (p *process) boundBy(ctx context.Context) (release func()) {
	// Errors are those of a closed connection, which the reads report too.
	_ = p.conn.SetDeadline(time.Now().Add(p.loadTimeout))
	stop := context.AfterFunc(ctx, func() { p.killFor(interruptedFor(ctx)) })
	return func() {
		stop()
		_ = p.conn.SetDeadline(time.Time{})
	}
}

// boundCPU kills the child when it has used more than limit of processor time from now on.
// release ends the bound; it must be called.
//
// The kernel's own limit, RLIMIT_CPU, counts whole seconds of the child's life and could not be
// lifted afterwards. A child may work on cpuThreads processors at once, and its time is
// read again before it can have used the rest on all of them.
func (p *process) boundCPU(limit time.Duration) (release func()) {
	const shortest = 20 * time.Millisecond
	base, done := p.cpuTime(), make(chan struct{})
	go func() {
		left := limit
		for {
			select {
			case <-done:
				return
			case <-p.gone:
				return
			case <-time.After(max(left/cpuThreads, shortest)):
			}
			left = limit - (p.cpuTime() - base)
			if left <= 0 {
				p.killFor(endCompile)
				return
			}
		}
	}()
	return func() { close(done) }
}

// limitAddressSpace sets RLIMIT_AS of the child, in bytes. The mutex keeps the reaper from
// freeing the pid, which another process could get.
func (p *process) limitAddressSpace(soft, hard uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	if err := p.setLimit(unix.RLIMIT_AS, unix.Rlimit{Cur: soft, Max: hard}); err != nil {
		return fmt.Errorf("prlimit RLIMIT_AS: %w", err)
	}
	p.limit = soft
	return nil
}

// setLimit sets a resource limit of the child. The caller holds p.mu and has checked that the
// child is not reaped. The kernel refuses to set limits of another user's process without
// CAP_SYS_RESOURCE; the nursery can become that user.
func (p *process) setLimit(resource int, limit unix.Rlimit) error {
	err := unix.Prlimit(p.pid, resource, &limit, nil)
	if errors.Is(err, unix.EPERM) && p.User != 0 {
		_, err = p.spawner.Attend(nursery.Request{PID: p.pid, User: p.User, Resource: resource, Limit: &limit})
	}
	return err
}

// cpuTime returns the processor time that a living child has used so far, 0 where the
// kernel does not report it.
func (p *process) cpuTime() time.Duration {
	var ts unix.Timespec
	// MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED), see clock_getcpuclockid(3).
	clock := int32(^p.pid<<3 | 2)
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// usage returns the processor time and the largest resident size, in bytes, of an ended
// child. The size includes the Go runtime and the program, unlike the one that a child
// reports.
func (e exit) usage() (cpu time.Duration, peak int64) {
	if e.state == nil {
		return 0, 0
	}
	if r, ok := e.state.SysUsage().(*syscall.Rusage); ok {
		peak = r.Maxrss << 10
	}
	return e.state.UserTime() + e.state.SystemTime(), peak
}

// reason returns how the child ended, for people: "exit status 2", "signal: killed".
func (e exit) reason() string {
	if e.state == nil {
		return "unknown exit status"
	}
	return e.state.String()
}
