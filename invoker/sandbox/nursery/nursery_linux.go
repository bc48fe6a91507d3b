// Package nursery is the small process that starts sandbox children.
//
// A child with a user namespace of its own cannot be started with vfork, and a fork copies
// the page tables of the forking process: 260 ms for a server of 1 GB. So the server starts
// a nursery once, by vfork, and the nursery, which stays small, forks. With CLONE_PARENT
// each child is the server's own: it reaps it, and the kernel kills the child when the
// server's thread ends.
//
// Server and nursery talk over a SOCK_SEQPACKET socket, one message at a time:
//
//	nursery → server   Greeting: the isolation that this host allows
//	server → nursery   one byte, with the descriptors of a child's stderr and socket
//	nursery → server   Birth: the child's pid, or why it could not be started
//
// The nursery and its children run the same executable; their arguments decide what they
// become (Dispatch, and child.Main behind it). sandbox/spawn_linux.go is the server's half.
package nursery

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Arg makes the executable a nursery, behind the child's own argument.
const Arg = "nursery"

// socketFD is where the server leaves the nursery's socket (SOCK_SEQPACKET).
const socketFD = 3

// MaxMessage bounds a message in bytes.
const MaxMessage = 4 << 10

// SandboxID is the user and group that a child sees itself as in its own user
// namespace. It is not 0, so that exec takes all capabilities away.
const SandboxID = 1000

// nobodyID is the id of user nobody and its group, which children run as on the host if
// their parent is root.
const nobodyID = 65534

// Isolation is how far a host lets a child's namespaces go.
type Isolation int

// The isolations, best first.
const (
	IsolateNobody Isolation = iota // own user and network namespace, user nobody outside (parent is root)
	IsolateSelf                    // own user and network namespace, the parent's user outside
	IsolateNone                    // the host refuses namespaces
)

func (i Isolation) String() string {
	return [...]string{"user and network namespace, as user nobody", "user and network namespace", "no namespaces"}[i]
}

// Greeting is the nursery's first message: what the host allows, and why no more.
type Greeting struct {
	Isolation Isolation `json:"isolation"`
	Refused   []string  `json:"refused,omitempty"`
}

// Birth answers a request, which is one byte and two descriptors: the child's
// stderr and its socket.
type Birth struct {
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
}

// Dispatch runs the nursery, and does not return, where this process was started
// as one: as `executable ANY nursery [weakest isolation to use]`.
func Dispatch() {
	if len(os.Args) < 3 || os.Args[2] != Arg {
		return
	}
	first := IsolateNobody
	if len(os.Args) > 3 {
		if _, err := fmt.Sscan(os.Args[3], &first); err != nil {
			fail(err)
		}
	}
	if err := serve(first); err != nil {
		fail(err)
	}
	os.Exit(0)
}

// yieldToServer makes the children processes that compute (SCHED_BATCH, which they
// inherit from the thread that forks them): waking one does not push the server
// off a processor in the middle of its own work. Where a processor is free they
// run as soon as otherwise.
func yieldToServer() {
	runtime.LockOSThread() // until the nursery ends
	// A host that refuses this schedules children like everything else.
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "sandbox nursery:", err)
	os.Exit(1)
}

// serve answers requests until the server's end of the socket is closed.
func serve(first Isolation) error {
	unix.CloseOnExec(socketFD)
	// A host out of memory takes a child, not the server. Inherited.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	yieldToServer()
	greeting, err := settle(first)
	if err != nil {
		return err
	}
	if err := send(greeting); err != nil {
		return err
	}
	for {
		files, err := receive()
		if err != nil || files == nil {
			return err
		}
		birth := Birth{}
		if child, err := start(greeting.Isolation, files, syscall.CLONE_PARENT); err != nil {
			birth.Error = err.Error()
		} else {
			birth.PID = child.Pid
			// The server waits for it; only the handle is ours.
			err = child.Release()
			if err != nil {
				birth.Error = err.Error()
			}
		}
		for _, f := range files {
			if err := f.Close(); err != nil {
				return err
			}
		}
		if err := send(birth); err != nil {
			return err
		}
	}
}

// settle finds the best isolation that this host allows by starting children
// that end at once for want of a socket.
func settle(first Isolation) (Greeting, error) {
	g := Greeting{Isolation: first}
	if g.Isolation == IsolateNobody && os.Geteuid() != 0 {
		g.Isolation = IsolateSelf
	}
	for ; ; g.Isolation++ {
		child, err := start(g.Isolation, []*os.File{nil, nil}, 0)
		if err == nil {
			_, err = child.Wait()
			return g, err
		}
		if g.Isolation == IsolateNone {
			return g, err
		}
		g.Refused = append(g.Refused, fmt.Sprintf("%s: %v", g.Isolation, err))
	}
}

// start runs this executable as a child, with stderr and a socket alone.
func start(i Isolation, files []*os.File, flags uintptr) (*os.Process, error) {
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	if i != IsolateNone {
		uid, gid := os.Geteuid(), os.Getegid()
		if i == IsolateNobody {
			uid, gid = nobodyID, nobodyID
			attr.Credential = &syscall.Credential{Uid: SandboxID, Gid: SandboxID}
			attr.GidMappingsEnableSetgroups = true
		}
		attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: SandboxID, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: SandboxID, HostID: gid, Size: 1}}
	}
	// The link leads to the file that this process runs, wherever its path has gone.
	return os.StartProcess("/proc/self/exe", os.Args[:2], &os.ProcAttr{
		Dir:   "/",
		Env:   Environment(),
		Files: append([]*os.File{nil, nil}, files...),
		Sys:   attr,
	})
}

// Environment is all that the nursery and a child get. Without
// containermaxprocs=0 Go's runtime reads cgroup files again and again, which a
// child's filter refuses.
func Environment() []string { return []string{"GODEBUG=containermaxprocs=0"} }

func send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return unix.Sendmsg(socketFD, text[:min(len(text), MaxMessage)], nil, nil, unix.MSG_NOSIGNAL)
}

// receive returns the two files of a request, nil when the server has closed the socket.
func receive() ([]*os.File, error) {
	var one [1]byte
	oob := make([]byte, unix.CmsgSpace(2*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(socketFD, one[:], oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return nil, err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(messages) != 1 {
			return nil, errors.Join(err, errors.New("a request without descriptors"))
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 2 {
			return nil, errors.Join(err, fmt.Errorf("a request with %d descriptors", len(fds)))
		}
		return []*os.File{os.NewFile(uintptr(fds[0]), "stderr"), os.NewFile(uintptr(fds[1]), "socket")}, nil
	}
}

// DieWithServer has the kernel kill this child when the thread that started the
// nursery ends. A server that has ended already is seen by the socket's end. The
// setting is the calling thread's; Go's threads stay.
func DieWithServer() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
