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
//	server → nursery   Request, for a start with the descriptors of a child's stderr and socket
//	nursery → server   Reply: the child's pid, or why it could not be started
//
// Where children run as users of their own, the server may lack the capabilities to limit
// them. The nursery, which may become any user, then does it (users_linux.go).
//
// The nursery and its children run the same executable; their arguments decide what they
// become (Dispatch, and child.Main behind it). Package spawn is the server's half.
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

// Isolation is how far a host lets a child be separated from the server.
type Isolation int

// The isolations, best first. IsolateOther and IsolateUser need a nursery that may change users.
const (
	IsolateOther Isolation = iota // own user and network namespace, another user than the server outside
	IsolateSelf                   // own user and network namespace, the server's user outside
	IsolateUser                   // no namespaces, another user than the server
	IsolateNone                   // no namespaces, the server's user
)

func (i Isolation) String() string {
	return [...]string{
		"user and network namespace, as another user", "user and network namespace", "no namespaces, as another user", "no namespaces",
	}[i]
}

// changesUser reports whether a child runs as another user than the server.
func (i Isolation) changesUser() bool { return i == IsolateOther || i == IsolateUser }

// namespaces reports whether a child has a user and a network namespace of its own.
func (i Isolation) namespaces() bool { return i == IsolateOther || i == IsolateSelf }

// Greeting is the nursery's first message: what the host allows, and why no more.
type Greeting struct {
	Isolation Isolation `json:"isolation"`
	// Users are those that children can run as. It is empty where they run as the server's.
	Users   Users    `json:"users"`
	Refused []string `json:"refused,omitempty"`
}

// Request asks for a child, with two descriptors: its stderr and its socket. If PID is set, it
// asks for one of the other things about that living child.
type Request struct {
	// User is the user, and the group, that the child gets or has. It is one of Greeting.Users.
	User int `json:"user,omitempty"`

	PID         int          `json:"pid,omitempty"`
	Limit       *unix.Rlimit `json:"limit,omitempty"` // of Resource
	Resource    int          `json:"resource,omitempty"`
	Nice        *int         `json:"nice,omitempty"`
	Descriptors bool         `json:"descriptors,omitempty"`
}

// Reply answers a request.
type Reply struct {
	PID         int      `json:"pid,omitempty"`         // of the new child
	Descriptors []string `json:"descriptors,omitempty"` // the names of the child's open files
	Error       string   `json:"error,omitempty"`
	Errno       int      `json:"errno,omitempty"` // of Error, if it is one of the system
}

// Dispatch runs the nursery, and does not return, where this process was started
// as one: as `executable ANY nursery [weakest isolation to use]`.
func Dispatch() {
	if len(os.Args) < 3 || os.Args[2] != Arg {
		return
	}
	first := IsolateOther
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
		request, files, err := receive()
		if err != nil || request == nil {
			return err
		}
		var reply Reply
		if request.PID != 0 {
			reply, err = attend(*request)
			if err != nil {
				return err
			}
		} else {
			reply = bear(greeting.Isolation, request.User, files)
		}
		for _, f := range files {
			if err := f.Close(); err != nil {
				return err
			}
		}
		if err := send(reply); err != nil {
			return err
		}
	}
}

// bear starts a child for the server.
func bear(i Isolation, user int, files []*os.File) Reply {
	if len(files) != 2 {
		return Reply{Error: fmt.Sprintf("a start with %d descriptors", len(files))}
	}
	child, err := start(i, user, files, syscall.CLONE_PARENT)
	if err != nil {
		return Reply{Error: err.Error()}
	}
	reply := Reply{PID: child.Pid}
	// The server waits for it; only the handle is ours.
	if err := child.Release(); err != nil {
		reply.Error = err.Error()
	}
	return reply
}

// settle finds the best isolation that this host allows by starting children
// that end at once for want of a socket.
func settle(first Isolation) (Greeting, error) {
	g := Greeting{Isolation: first}
	privileged, err := mayChangeUsers()
	if err != nil {
		return g, err
	}
	for ; ; g.Isolation++ {
		users := []Users{{}}
		if g.Isolation.changesUser() {
			if !privileged {
				continue
			}
			users = []Users{ownUsers, sharedUser}
		}
		for _, g.Users = range users {
			err = tryUsers(g.Isolation, g.Users)
			if err == nil && g.Isolation.changesUser() {
				return g, shed()
			}
			if err == nil || g.Isolation == IsolateNone {
				return g, err
			}
			g.Refused = append(g.Refused, fmt.Sprintf("%s%s: %v", g.Isolation, g.Users, err))
		}
	}
}

// tryUsers starts a child as the first of the users and one as the last.
func tryUsers(i Isolation, users Users) error {
	ids := []int{users.First}
	if users.Count > 1 {
		ids = append(ids, users.First+users.Count-1)
	}
	for _, id := range ids {
		child, err := start(i, id, []*os.File{nil, nil}, 0)
		if err != nil {
			return err
		}
		if _, err := child.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// start runs this executable as a child, with stderr and a socket alone. user is not used
// where children run as the server's.
func start(i Isolation, user int, files []*os.File, flags uintptr) (*os.Process, error) {
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	uid, gid := os.Geteuid(), os.Getegid()
	if i.changesUser() {
		uid, gid = user, user
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} // and no other group
	}
	if i.namespaces() {
		if i.changesUser() {
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

// receive returns a request and its files, nil when the server has closed the socket.
func receive() (*Request, []*os.File, error) {
	text := make([]byte, MaxMessage)
	oob := make([]byte, unix.CmsgSpace(2*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(socketFD, text, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return nil, nil, err
		}
		var request Request
		if err := json.Unmarshal(text[:n], &request); err != nil {
			return nil, nil, err
		}
		files, err := received(oob[:oobn])
		return &request, files, err
	}
}

// received returns the two files of a start, none of another request.
func received(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("a request without descriptors"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 2 {
		return nil, errors.Join(err, fmt.Errorf("a request with %d descriptors", len(fds)))
	}
	return []*os.File{os.NewFile(uintptr(fds[0]), "stderr"), os.NewFile(uintptr(fds[1]), "socket")}, nil
}

// DieWithServer has the kernel kill this child when the thread that started the
// nursery ends. A server that has ended already is seen by the socket's end. The
// setting is the calling thread's; Go's threads stay.
func DieWithServer() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
