package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/layers"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/priority"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// changeUsers are the capabilities that deploy/docker-compose.yml adds.
const changeUsers = "SETUID,SETGID,KILL,SETPCAP"

// inContainer returns a command that runs as in a container of Docker, as root with the named
// capabilities.
func inContainer(t *testing.T, capabilities string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(sandboxtest.Build(t, "./testdata/container"), append([]string{capabilities}, args...)...)
}

// insideVariable is set in the test process that runs in a container.
const insideVariable = "SOUS_TEST_IN_CONTAINER"

// runInside runs the calling test again in a container, and reports whether this is the process
// outside, which then has nothing more to do.
func runInside(t *testing.T, capabilities string) (outside bool) {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return false
	}
	if os.Getuid() != 0 {
		t.Skip("only root changes users")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("os.Executable: %v", err)
	}
	for _, program := range []string{"./testdata/intruder", "./testdata/probechild"} {
		sandboxtest.Build(t, program)
	}
	sandboxtest.Executable(t)
	cmd := inContainer(t, capabilities, self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("inside of the container: got error %v, want a test that passes\n%s", err, out)
	}
	return true
}

// TestUsersOfChildren: a server that may change users has each child run as one of its own
// where namespaces are refused, and still limits and ends it.
func TestUsersOfChildren(t *testing.T) {
	if runInside(t, changeUsers) {
		return
	}
	p := newPool(t, func(c *Config) { c.Spares = -1 })
	a := acquire(t, p, program(t, "a", `export default (n) => { if (n === 1) while (true); return n }`))
	b := acquire(t, p, program(t, "b", `export default () => { const all = []; while (true) all.push(new Array(100000).fill(1)) }`))
	uids := map[string]bool{}
	for _, s := range []*Sandbox{a, b} {
		c := s.child
		status := layers.ProcStatus(c.pid)
		if c.Isolation != nursery.IsolateUser || !c.OwnUser || layers.OwnNamespace(c.pid, "user") {
			t.Errorf("child: got isolation %q, want %q with users of their own", c.Isolation, nursery.IsolateUser)
		}
		id := strconv.Itoa(c.User)
		four := strings.Join([]string{id, id, id, id}, "\t")
		for field, want := range map[string]string{
			"Uid": four, "Gid": four, "Groups": "", "NoNewPrivs": "1", "Seccomp": "2",
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		} {
			if status[field] != want {
				t.Errorf("child: got %s %q, want %q", field, status[field], want)
			}
		}
		uids[id] = true
		if got := layers.SoftLimit(c.pid, layers.AddressSpace); got != c.limit || got == 0 || got == unix.RLIM_INFINITY {
			t.Errorf("child: got an address space of %d bytes, want a limit, %d", got, c.limit)
		}
		if got := layers.SoftLimit(c.pid, "Max processes"); got != maxThreads {
			t.Errorf("child: got a limit of %d threads, want %d", got, maxThreads)
		}
	}
	if len(uids) != 2 || uids["0"] {
		t.Errorf("two children: got users %v, want two that are not the server's", uids)
	}
	// The nursery is as much as needed, still after it was other users.
	status := layers.ProcStatus(nurseryOf(t, p))
	const setIDs = "00000000000000c0"
	if status["CapEff"] != setIDs || status["CapPrm"] != setIDs || status["CapBnd"] != none || !strings.HasPrefix(status["Uid"], "0\t0\t0\t") {
		t.Errorf("nursery: got capabilities %s, %s, bounded by %s, user %s, want %s, bounded by none, user 0",
			status["CapEff"], status["CapPrm"], status["CapBnd"], status["Uid"], setIDs)
	}
	if err := a.child.SetNice(19); err != nil {
		t.Errorf("SetNice(19): got error %v, want none", err)
	}
	if got, err := unix.Getpriority(unix.PRIO_PROCESS, a.child.pid); err != nil || 20-got != 19 {
		t.Errorf("child: got nice value %d (%v), want 19", 20-got, err)
	}
	if err := a.child.SetNice(0); !errors.Is(err, priority.ErrLower) {
		t.Errorf("SetNice(0): got error %v, want %v", err, priority.ErrLower)
	}
	if r := a.Run(t.Context(), call("1", 300*time.Millisecond)); r.Status != api.StatusTimeout {
		t.Errorf("an endless loop: got status %s, error %+v, want a timeout", r.Status, r.Error)
	}
	if r := b.Run(t.Context(), call("1", time.Minute)); r.Status != api.StatusError || r.Error.Type != api.ErrMemoryLimit {
		t.Errorf("memory without end: got status %s, error %+v, want %s", r.Status, r.Error, api.ErrMemoryLimit)
	}
	p.Release(a)
	p.Release(b)
}

// none is a set of no capabilities in /proc/PID/status.
const none = "0000000000000000"

// TestChildrenReachNoOtherUser: a process of a child's user that no filter confines reaches
// neither the server nor the nursery nor another child; it reaches a child of its own user,
// which shows that the attempts work.
func TestChildrenReachNoOtherUser(t *testing.T) {
	if runInside(t, changeUsers) {
		return
	}
	p := newPool(t, func(c *Config) { c.Spares = -1 })
	a := acquire(t, p, program(t, "a", `export default () => 1`))
	defer p.Release(a)
	b := acquire(t, p, program(t, "b", `export default () => 1`))
	defer p.Release(b)
	attack := func(user int, pids ...int) []string {
		t.Helper()
		args := make([]string, 0, len(pids))
		for _, pid := range pids {
			args = append(args, strconv.Itoa(pid))
		}
		intruder := exec.Command(sandboxtest.Build(t, "./testdata/intruder"), args...)
		intruder.Dir = "/"
		intruder.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
		out, err := intruder.CombinedOutput()
		if err != nil {
			t.Fatalf("intruder: %v\n%s", err, out)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	if got := attack(a.child.User, os.Getpid(), nurseryOf(t, p), b.child.pid); !slices.Equal(got, []string{""}) {
		t.Errorf("user %d reached %q, want nothing of server %d, the nursery and child %d", a.child.User, got, os.Getpid(), b.child.pid)
	}
	if got := attack(b.child.User, b.child.pid); len(got) < 7 {
		t.Errorf("user %d reached %q of its own process, want nearly everything", b.child.User, got)
	}
}

// TestDoctorWithUsers: every layer but the namespaces and those of the host is active, also
// those that only the nursery can see.
func TestDoctorWithUsers(t *testing.T) {
	if runInside(t, changeUsers) {
		return
	}
	found, err := Doctor(t.Context(), Config{Executable: sandboxtest.Executable(t)})
	if err != nil {
		t.Fatalf("Doctor: %v", err)
	}
	off := []string{"user namespace", "network namespace", "cgroup for each child"}
	for _, l := range found {
		if l.Name == "no files" || l.Name == "cgroup for each child" {
			continue // as this host has them
		}
		if want := !slices.Contains(off, l.Name); l.Active != want {
			t.Errorf("layer %s: got active %v (%s), want %v", l.Name, l.Active, l.Detail, want)
		}
	}
}

// TestUsersNeedAllCapabilities: without the capability to end its children, or to change
// groups, a server does not give them other users, and they work as before.
func TestUsersNeedAllCapabilities(t *testing.T) {
	for _, capabilities := range []string{"SETUID,SETGID,SETPCAP", "SETUID,KILL", "SETGID,KILL", "SETPCAP"} {
		t.Run(capabilities, func(t *testing.T) {
			if runInside(t, capabilities) {
				return
			}
			p := newPool(t, func(c *Config) { c.Spares = -1 })
			s := acquire(t, p, program(t, "plain", `export default () => 1`))
			defer p.Release(s)
			if r := s.Run(t.Context(), call("1", 5*time.Second)); r.Status != api.StatusSuccess || s.child.Isolation != nursery.IsolateNone {
				t.Errorf("run: got status %s with %s, want success with %s", r.Status, s.child.Isolation, nursery.IsolateNone)
			}
			if status := layers.ProcStatus(s.child.pid); status["CapEff"] != none || status["CapPrm"] != none {
				t.Errorf("child: got capabilities %s of %s, want none", status["CapEff"], status["CapPrm"])
			}
		})
	}
}

// TestUsersOutliveTheNursery: users of living children are not assigned again by a new nursery,
// which also limits children that an earlier one started.
func TestUsersOutliveTheNursery(t *testing.T) {
	if runInside(t, changeUsers) {
		return
	}
	p := newPool(t, fakeChild(t), places(2), func(c *Config) { c.Spares = -1 })
	first := acquire(t, p, fakeProgram("a", ""))
	old := nurseryOf(t, p)
	if err := unix.Kill(old, unix.SIGKILL); err != nil {
		t.Fatalf("kill the nursery: %v", err)
	}
	eventually(t, func() bool { return strings.HasPrefix(layers.ProcStatus(old)["State"], "Z") })
	if err := first.child.SetNice(7); err != nil {
		t.Errorf("SetNice with a new nursery: got error %v, want none", err)
	}
	second := acquire(t, p, fakeProgram("b", ""))
	if a, b := first.child.User, second.child.User; a == b || a == 0 || b == 0 {
		t.Errorf("children: got users %d and %d, want two", a, b)
	}
	p.Release(first)
	p.Release(second)
}
