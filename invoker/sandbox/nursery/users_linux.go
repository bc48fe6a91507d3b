package nursery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/codesous/sous/invoker/sandbox/priority"
)

// Users are ids of users, and of groups with the same ids. The zero value has none.
type Users struct {
	First int `json:"first,omitempty"`
	Count int `json:"count,omitempty"`
}

func (u Users) String() string {
	switch u.Count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" %d", u.First)
	}
	return fmt.Sprintf(" of %d to %d", u.First, u.First+u.Count-1)
}

// Shared reports whether all children run as one user.
func (u Users) Shared() bool { return u.Count <= 1 }

// The users of children. ownUsers has one for each living child. The ids are below 65,536,
// because that many are mapped in the user namespaces of containers, and outside of those that
// Debian and systemd assign without being asked. Where they are not mapped, all children run as
// user nobody.
var (
	ownUsers   = Users{First: 40000, Count: 20000}
	sharedUser = Users{First: 65534, Count: 1}
)

// changingUsers are the capabilities to change users and groups.
const changingUsers = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID

// mayChangeUsers reports whether this process may change users, and the server, whose
// capabilities are the same, may end the children that it then starts.
func mayChangeUsers() (bool, error) {
	const needed = changingUsers | 1<<unix.CAP_KILL
	have, err := effective()
	return have&needed == needed, err
}

// effective returns the first 32 of this thread's capabilities.
func effective() (uint32, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return 0, fmt.Errorf("capget: %w", err)
	}
	return have[0].Effective, nil
}

// shed drops all capabilities but those to change users, which stay with this process:
// children start with none and, where CAP_SETPCAP allows that, can get none.
func shed() error {
	have, err := effective()
	if err != nil {
		return err
	}
	if have&(1<<unix.CAP_SETPCAP) != 0 {
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			// EINVAL: the kernel does not know it. Children are forked from this thread.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("drop capability %d: %w", c, err)
			}
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3} // each thread's own
	kept := [2]unix.CapUserData{{Effective: changingUsers, Permitted: changingUsers}}
	// No inheritable capability stays, and so none is ambient.
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&kept[0])), 0)
	if errno != 0 {
		return fmt.Errorf("capset: %w", errno)
	}
	return nil
}

// attend does what a request asks about a child. The error is that of a nursery that cannot
// become itself again.
func attend(r Request) (Reply, error) {
	var reply Reply
	err, fatal := as(r.User, func() error {
		switch {
		case r.Limit != nil:
			return unix.Prlimit(r.PID, r.Resource, r.Limit, nil)
		case r.Nice != nil:
			return priority.Set(r.PID, *r.Nice)
		case r.Descriptors:
			var err error
			reply.Descriptors, err = OpenFiles(r.PID)
			return err
		}
		return errors.New("nothing is asked")
	})
	var errno syscall.Errno
	switch {
	case errors.Is(err, priority.ErrLower):
		errno = unix.EACCES
	case err != nil && !errors.As(err, &errno):
		errno = unix.EIO
	}
	if err != nil {
		reply = Reply{Error: err.Error(), Errno: int(errno)}
	}
	return reply, fatal
}

// OpenFiles returns the names of the open files of a process.
func OpenFiles(pid int) ([]string, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// as does something as another user, on this thread, which the caller has locked. The kernel
// lets a process limit those whose user and group are its own.
//
// The saved user stays. It lets the thread return, and keeps the child from tracing it. While
// it has the child's user, the child could end the nursery with a signal, should its system
// call filter have a hole: the server then starts another. It could not reach the server.
func as(user int, do func() error) (err, fatal error) {
	const keep = ^uintptr(0)
	set := func(call uintptr, id int) error {
		if _, _, errno := unix.RawSyscall(call, uintptr(id), uintptr(id), keep); errno != 0 {
			return fmt.Errorf("become user %d: %w", id, errno)
		}
		return nil
	}
	uid, gid := os.Getuid(), os.Getgid()
	if err := set(unix.SYS_SETRESGID, user); err != nil {
		return err, nil
	}
	err = set(unix.SYS_SETRESUID, user)
	if err == nil {
		err = do()
		fatal = set(unix.SYS_SETRESUID, uid)
	}
	return err, errors.Join(fatal, set(unix.SYS_SETRESGID, gid))
}
