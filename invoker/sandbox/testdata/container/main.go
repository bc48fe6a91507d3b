// Command container runs a command as Docker does for root with `cap_drop: [ALL]`, `cap_add` of
// the capabilities that its first argument lists, no-new-privileges and the default seccomp
// profile, as far as these matter to sandboxes: the profile refuses new user namespaces.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

var capabilities = map[string]uintptr{
	"SETUID": unix.CAP_SETUID, "SETGID": unix.CAP_SETGID, "KILL": unix.CAP_KILL, "SETPCAP": unix.CAP_SETPCAP,
}

func main() {
	runtime.LockOSThread()
	keep := map[uintptr]bool{}
	for name := range strings.SplitSeq(os.Args[1], ",") {
		keep[capabilities[name]] = true
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if keep[c] {
			continue
		}
		// EINVAL: this kernel does not know the capability.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); !errors.Is(err, unix.EINVAL) {
			must(err)
		}
	}
	refuse := func(name string, flag uint64) seccomp.SyscallGroup {
		return seccomp.SyscallGroup{
			Action: seccomp.ActionErrno,
			NamesWithCondtions: []seccomp.NameWithConditions{{Name: name, Conditions: seccomp.ArgumentConditions{
				{Argument: 0, Operation: seccomp.BitsSet, Value: flag},
			}}},
		}
	}
	must(seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
			refuse("clone", unix.CLONE_NEWUSER), refuse("unshare", unix.CLONE_NEWUSER),
		}},
	}))
	// root gets the capabilities that are left in the bounding set.
	must(syscall.Exec(os.Args[2], os.Args[2:], os.Environ()))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}
