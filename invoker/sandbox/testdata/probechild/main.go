// Command probechild confines itself as a sandbox child does and then tries what
// it must not do: the event names the attempt, and the answer is its error.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/codesous/sous/invoker/sandbox/child"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"golang.org/x/sys/unix"
)

func main() {
	nursery.Dispatch()
	conn, err := net.FileConn(os.NewFile(3, "socket"))
	must(err)
	frames := wire.NewReader(conn)
	layers, err := child.Confine()
	must(err)
	send(conn, wire.KindHello, wire.Hello{Layers: layers})
	_, _, err = frames.Next()
	must(err)
	send(conn, wire.KindReady, wire.Ready{})
	for {
		_, payload, err := frames.Next()
		if err != nil {
			os.Exit(0)
		}
		_, event, err := wire.ParseInvoke(payload)
		must(err)
		var name string
		must(json.Unmarshal(event, &name))
		body, err := json.Marshal(try(name))
		must(err)
		frame, err := wire.AppendDone(nil, wire.Done{Body: body})
		must(err)
		_, err = conn.Write(frame)
		must(err)
	}
}

func send(conn net.Conn, kind wire.Kind, head any) {
	frame, err := wire.AppendMessage(nil, kind, head, nil)
	must(err)
	_, err = conn.Write(frame)
	must(err)
}

// try makes the attempt of that name and returns "allowed", or the name of its error.
func try(name string) string {
	attempt, ok := attempts()[name]
	if !ok {
		return "no such attempt"
	}
	// On a thread of its own: the filter is on all of them.
	answer := make(chan error)
	go func() {
		runtime.LockOSThread()
		answer <- attempt()
	}()
	switch err := (<-answer).(type) {
	case nil:
		return "allowed"
	case syscall.Errno:
		return unix.ErrnoName(err)
	default:
		return err.Error()
	}
}

// raw is an attempt to make a system call whose success alone would be a hole. Its
// arguments need not be useful: a filter refuses the call before the kernel reads them.
func raw(number uintptr, args ...uintptr) func() error {
	var a [6]uintptr
	copy(a[:], args)
	return func() error {
		_, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// attempts are the operations that a confined child must be refused, and a few that it may
// do: nothing, mmap, and a signal to itself.
func attempts() map[string]func() error {
	path, err := syscall.BytePtrFromString("/etc/passwd")
	must(err)
	file := uintptr(unsafe.Pointer(path))
	page := uintptr(os.Getpagesize())
	var buffer [256]byte
	memory := uintptr(unsafe.Pointer(&buffer))
	return map[string]func() error{
		"nothing":           func() error { return nil },
		"openat":            raw(unix.SYS_OPENAT, ^uintptr(99), file, unix.O_RDONLY),
		"openat create":     raw(unix.SYS_OPENAT, ^uintptr(99), file, unix.O_CREAT|unix.O_WRONLY, 0o600),
		"openat2":           raw(unix.SYS_OPENAT2, ^uintptr(99), file, memory, 24),
		"stat":              raw(unix.SYS_STATX, ^uintptr(99), file, 0, 0, memory),
		"readlinkat":        raw(unix.SYS_READLINKAT, ^uintptr(99), file, memory, 200),
		"getdents":          raw(unix.SYS_GETDENTS64, 0, memory, 200),
		"socket inet":       raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		"socket unix":       raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0),
		"socket netlink":    raw(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0),
		"socketpair":        raw(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, memory),
		"sendmsg":           raw(unix.SYS_SENDMSG, 7, memory, 0),
		"recvmsg":           raw(unix.SYS_RECVMSG, 7, memory, 0),
		"fork":              raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		"vfork":             raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD|unix.CLONE_VM|unix.CLONE_VFORK)),
		"clone3":            raw(unix.SYS_CLONE3, memory, 88),
		"new namespace":     raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD|unix.CLONE_NEWUSER)),
		"unshare":           raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		"setns":             raw(unix.SYS_SETNS, 0, 0),
		"execve":            raw(unix.SYS_EXECVE, file, 0, 0),
		"execveat":          raw(unix.SYS_EXECVEAT, 0, file, 0, 0, 0x1000),
		"ptrace":            raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid())),
		"process_vm_readv":  raw(unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()), memory, 1, memory, 1, 0),
		"kill parent":       raw(unix.SYS_KILL, uintptr(os.Getppid()), 0),
		"tgkill parent":     raw(unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(os.Getppid()), 0),
		"tgkill itself":     raw(unix.SYS_TGKILL, uintptr(os.Getpid()), uintptr(os.Getpid()), 0),
		"pidfd_open":        raw(unix.SYS_PIDFD_OPEN, uintptr(os.Getppid()), 0),
		"mmap":              raw(unix.SYS_MMAP, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE, ^uintptr(0)),
		"mmap executable":   raw(unix.SYS_MMAP, 0, page, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE, ^uintptr(0)),
		"mprotect":          raw(unix.SYS_MPROTECT, memory&^(page-1), page, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC),
		"memfd_create":      raw(unix.SYS_MEMFD_CREATE, file, 0),
		"prlimit":           raw(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 0, memory),
		"prctl":             raw(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0),
		"dup":               raw(unix.SYS_DUP, 0),
		"pipe":              raw(unix.SYS_PIPE2, memory, 0),
		"io_uring":          raw(unix.SYS_IO_URING_SETUP, 8, memory),
		"bpf":               raw(unix.SYS_BPF, 0, memory, 8),
		"userfaultfd":       raw(unix.SYS_USERFAULTFD, 0),
		"perf_event_open":   raw(unix.SYS_PERF_EVENT_OPEN, memory, 0, ^uintptr(0), ^uintptr(0), 0),
		"keyctl":            raw(unix.SYS_KEYCTL, 0, 0),
		"mount":             raw(unix.SYS_MOUNT, file, file, file, 0, 0),
		"setuid":            raw(unix.SYS_SETUID, 0),
		"sched_setaffinity": raw(unix.SYS_SCHED_SETAFFINITY, 0, 8, memory),
		"x32 getpid":        raw(0x40000000 | unix.SYS_GETPID),
		"200 threads":       threads,
		"big allocation":    func() error { return touch(make([]byte, 1<<30)) },
	}
}

// threads starts 200 that stay.
func threads() error {
	started := make(chan struct{})
	for range 200 {
		go func() {
			runtime.LockOSThread()
			started <- struct{}{}
			select {}
		}()
	}
	for range 200 {
		<-started
	}
	return nil
}

// touch writes to every page.
func touch(b []byte) error {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
	return nil
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
