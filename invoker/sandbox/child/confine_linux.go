package child

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Confine takes from the process, for ever, what no activation needs, and names the layers
// that hold (wire.Layer…). Each is tried out before it is named. Landlock may be missing on
// a host; without the others Confine fails and nothing must run.
//
// The order is fixed: operations that need a descriptor, a file or another thread's system
// calls come before the layer that forbids them, and the system call filter is last,
// because it forbids the calls that set up the others.
func Confine() ([]string, error) {
	if err := nursery.DieWithServer(); err != nil {
		return nil, fmt.Errorf("death signal: %w", err)
	}
	if err := limitResources(); err != nil {
		return nil, err
	}
	if err := dropCapabilities(); err != nil {
		return nil, err
	}
	layers := []string{wire.LayerRlimits}
	files, err := forbidFiles()
	if err != nil {
		return nil, err
	}
	if files {
		layers = append(layers, wire.LayerLandlock)
	}
	if err := filterSystemCalls(); err != nil {
		return nil, err
	}
	return append(layers, wire.LayerNoNewPrivs, wire.LayerSeccomp), nil
}

// maxDescriptors are those that the process has, the socket, stderr and Go's poller among
// them, with a little room.
const maxDescriptors = 16

// limitResources sets limits that the process cannot raise again: no file may grow, no
// core, few descriptors, no locked memory. RLIMIT_NPROC is left to the parent: it counts
// all threads of a user. RLIMIT_AS is the parent's to set, once it is known how much the
// process has mapped.
func limitResources() error {
	for _, l := range []struct {
		name     string
		resource int
		max      uint64
	}{
		{"FSIZE", unix.RLIMIT_FSIZE, 0},
		{"CORE", unix.RLIMIT_CORE, 0},
		{"NOFILE", unix.RLIMIT_NOFILE, maxDescriptors},
		{"MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			return fmt.Errorf("RLIMIT_%s: %w", l.name, err)
		}
	}
	return nil
}

// dropCapabilities drops the capabilities of a child without a user namespace of its own
// whose parent is root; in other cases exec has taken them. psx makes the system call on
// every thread.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, none [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if have == none {
		return nil
	}
	header.Pid = 0 // each thread's own
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno != 0 {
		return fmt.Errorf("capset: %w", errno)
	}
	return nil
}

// forbidFiles has Landlock refuse every path, port, abstract socket and signal
// that the kernel's version of it knows. It reports whether the kernel has Landlock.
//
// A Landlock ruleset without rules forbids everything that it handles; descriptors that are
// open stay usable.
func forbidFiles() (bool, error) {
	if version, err := ll.LandlockGetABIVersion(); err != nil || version < 1 {
		return false, nil //nolint:nilerr // not built in, or not enabled at boot: that is the answer
	}
	if err := landlock.V11.BestEffort().Restrict(); err != nil {
		return false, fmt.Errorf("landlock: %w", err)
	}
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		return false, errors.Join(errors.New("landlock holds nothing"), unix.Close(fd))
	}
	return true, nil
}

// filterSystemCalls leaves what Go's runtime and one socket need: any other call fails with
// EPERM. The filter goes to all threads, and those to come inherit it. A socket that is
// refused afterwards shows that it holds.
func filterSystemCalls() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno, // EPERM
			Syscalls:      []seccomp.SyscallGroup{allowedCalls(os.Getpid())},
		},
	})
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	// A thread that could not take the filter is no error of the system call.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		return errors.Join(errors.New("seccomp holds nothing"), unix.Close(fd))
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("seccomp holds something else: %w", err)
	}
	return nil
}

// allowedCalls are the system calls of process pid. It can open no file, connect to no
// address, start no process, signal no process but itself, and map no executable memory.
//
// The conditions look at arguments by value: tgkill at its thread group, clone at
// CLONE_THREAD, so that only threads can be made, and mmap at PROT_EXEC. mprotect is
// missing: memory stays as it was mapped.
func allowedCalls(pid int) seccomp.SyscallGroup {
	only := func(name string, c seccomp.Condition) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{c}}
	}
	return seccomp.SyscallGroup{
		Action: seccomp.ActionAllow,
		Names: append(architectureCalls(),
			"read", "write", "close",
			"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "sched_yield", "restart_syscall",
			"epoll_pwait", "epoll_ctl",
			"getpid", "gettid", "sched_getaffinity", "getrandom",
			"rt_sigreturn", "rt_sigprocmask", "rt_sigaction", "sigaltstack",
			"madvise", "munmap",
			"exit", "exit_group",
		),
		NamesWithCondtions: []seccomp.NameWithConditions{
			only("tgkill", seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: uint64(pid)}),
			only("clone", seccomp.Condition{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}),
			only("mmap", seccomp.Condition{Argument: 2, Operation: seccomp.BitsNotSet, Value: unix.PROT_EXEC}),
		},
	}
}
