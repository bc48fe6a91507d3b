package sandbox

import (
	"fmt"
	"os"
	"sync"

	"github.com/codesous/sous/invoker/sandbox/nursery"
	"golang.org/x/sys/unix"
)

// maxThreads is far above what a child needs: Go's runtime has about six.
const maxThreads = 64

// limitThreads keeps a child from filling the host's table of processes. Linux
// counts a user's threads, and since 5.14 those in each user namespace apart:
// elsewhere all children of that user, and the server if it is its own, would share one limit.
func (p *process) limitThreads() error {
	if !p.countsThreads() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	if err := p.setLimit(unix.RLIMIT_NPROC, unix.Rlimit{Cur: maxThreads, Max: maxThreads}); err != nil {
		return fmt.Errorf("prlimit RLIMIT_NPROC: %w", err)
	}
	return nil
}

// countsThreads reports whether the kernel counts the child's threads apart from those of
// others.
func (p *process) countsThreads() bool {
	namespace := p.Isolation == nursery.IsolateOther || p.Isolation == nursery.IsolateSelf
	return p.OwnUser || namespace && threadsByNamespace()
}

// threadsByNamespace reports whether this kernel is Linux 5.14 or later.
var threadsByNamespace = sync.OnceValue(func() bool {
	var name unix.Utsname
	var major, minor int
	if err := unix.Uname(&name); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
})
