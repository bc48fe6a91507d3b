package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/layers"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// probe starts a child that confines itself and tries the named actions.
func probe(t *testing.T) (*Pool, *Sandbox) {
	t.Helper()
	path := sandboxtest.Build(t, "./testdata/probechild")
	p := newPool(t, func(c *Config) { c.Executable, c.Spares = path, -1 })
	s := acquire(t, p, fakeProgram("probe", ""))
	t.Cleanup(func() { p.Release(s) })
	return p, s
}

// TestForbiddenSystemCalls tries each from within a confined child.
func TestForbiddenSystemCalls(t *testing.T) {
	t.Parallel()
	_, s := probe(t)
	want := map[string]string{"nothing": "allowed", "mmap": "allowed", "tgkill itself": "allowed", "x32 getpid": "ENOSYS"}
	for _, name := range []string{
		"nothing", "mmap", "tgkill itself", "x32 getpid",
		"openat", "openat create", "openat2", "stat", "readlinkat", "getdents",
		"socket inet", "socket unix", "socket netlink", "socketpair", "sendmsg", "recvmsg",
		"fork", "vfork", "clone3", "new namespace", "unshare", "setns", "execve", "execveat",
		"ptrace", "process_vm_readv", "kill parent", "tgkill parent", "pidfd_open",
		"mmap executable", "mprotect", "memfd_create", "prlimit", "prctl", "dup", "pipe",
		"io_uring", "bpf", "userfaultfd", "perf_event_open", "keyctl", "mount", "setuid", "sched_setaffinity",
	} {
		expected := want[name]
		if expected == "" {
			expected = "EPERM"
		}
		r := s.Run(t.Context(), do(name))
		var got string
		if err := json.Unmarshal(r.Value, &got); err != nil {
			t.Fatalf("json.Unmarshal for %s: %v\nrun ended with %+v", name, err, r.Error)
		}
		if got != expected {
			t.Errorf("%s: %s, want %s", name, got, expected)
		}
	}
}

func TestHardMemoryLimit(t *testing.T) {
	t.Parallel()
	_, s := probe(t)
	r := s.Run(t.Context(), do("big allocation"))
	if r.Status != api.StatusError || r.Error.Type != api.ErrMemoryLimit {
		t.Errorf("got %+v with error %+v, want error %s", r, r.Error, api.ErrMemoryLimit)
	}
	if r.MemoryPeakBytes > 200<<20 {
		t.Errorf("got a peak of %d MB, want at most 200", r.MemoryPeakBytes>>20)
	}
}

// TestThreadsAreBounded: a child cannot fill the host's table of processes.
func TestThreadsAreBounded(t *testing.T) {
	t.Parallel()
	_, s := probe(t)
	if !s.child.countsThreads() {
		t.Skip("this host counts threads by user")
	}
	if r := s.Run(t.Context(), do("200 threads")); r.Status != api.StatusError {
		t.Errorf("got %s with %s, want an error", r.Status, r.Value)
	}
}

// TestChildSeenFromOutside reads the /proc entries of a real child.
func TestChildSeenFromOutside(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Spares = -1 })
	prog := program(t, "outside", `export default () => 1`)
	s := acquire(t, p, prog)
	defer p.Release(s)
	pid := s.child.pid
	status := layers.ProcStatus(pid)
	for field, want := range map[string]string{
		"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0000000000000000", "CapPrm": "0000000000000000",
	} {
		if status[field] != want {
			t.Errorf("%s: %q, want %q", field, status[field], want)
		}
	}
	if strings.HasPrefix(status["Uid"], "0\t") {
		t.Error("it is root")
	}
	if policy, err := unix.SchedGetAttr(pid, 0); err != nil || policy.Policy != unix.SCHED_BATCH {
		t.Errorf("scheduling %+v, %v, want SCHED_BATCH", policy, err)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || string(environment) != "GODEBUG=containermaxprocs=0\x00" {
		t.Errorf("environment: got %q and error %v, want only GODEBUG=containermaxprocs=0", environment, err)
	}
	for _, l := range []struct {
		name     string
		resource int
		max      uint64
	}{
		{"FSIZE", unix.RLIMIT_FSIZE, 0},
		{"CORE", unix.RLIMIT_CORE, 0},
		{"NOFILE", unix.RLIMIT_NOFILE, 16},
		{"MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"AS", unix.RLIMIT_AS, s.child.limit},
		{"NPROC", unix.RLIMIT_NPROC, maxThreads},
	} {
		if l.name == "NPROC" && !s.child.countsThreads() {
			continue
		}
		var got unix.Rlimit
		if err := unix.Prlimit(pid, l.resource, nil, &got); err != nil || got != (unix.Rlimit{Cur: l.max, Max: l.max}) {
			t.Errorf("RLIMIT_%s: %+v, want %d, %v", l.name, got, l.max, err)
		}
	}
	mapped, err := memory.MappedBytes(pid)
	if room := s.child.limit - mapped; err != nil || room > 320<<20 {
		t.Errorf("got room to map %d MB more, error %v, want at most 320", room>>20, err)
	}
}

// TestForeignDescriptorsStayOutside: what the parent was started with, or made
// without close-on-exec, reaches no child.
func TestForeignDescriptorsStayOutside(t *testing.T) {
	t.Parallel()
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0) // no O_CLOEXEC: as if inherited
	if err != nil {
		t.Fatalf("unix.Open: %v", err)
	}
	secret, err := os.Open("/proc/version")
	if err != nil {
		t.Fatalf("os.Open: %v", err)
	}
	defer secret.Close()
	if err := unix.Dup3(int(secret.Fd()), fd, 0); err != nil {
		t.Fatalf("unix.Dup3: %v", err)
	}
	defer unix.Close(fd)
	p := newPool(t, func(c *Config) { c.Spares = -1 })
	s := acquire(t, p, program(t, "fds", `export default () => 1`))
	defer p.Release(s)
	if l := (layers.Child{PID: s.child.pid}).Descriptors(); !l.Active {
		t.Errorf("got descriptors %s, want only those of the child", l.Detail)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	found, err := Doctor(t.Context(), Config{Executable: sandboxtest.Executable(t)})
	if err != nil {
		t.Fatalf("Doctor: %v", err)
	}
	// A host may lack these; the others hold everywhere.
	host := []string{"user namespace", "user of its own", "network namespace", "no files", "cgroup for each child"}
	for _, l := range found {
		t.Logf("%v %s: %s", l.Active, l.Name, l.Detail)
		if !l.Active && !slices.Contains(host, l.Name) {
			t.Errorf("layer %s: got inactive (%s), want active", l.Name, l.Detail)
		}
	}
	if len(found) != 13 {
		t.Errorf("got %d layers, want 13", len(found))
	}
}

func TestDoctorWithoutAChild(t *testing.T) {
	t.Parallel()
	for _, executable := range []string{"/nowhere", "/bin/true"} {
		if _, err := Doctor(t.Context(), Config{Executable: executable}); err == nil {
			t.Errorf("Doctor with %s: got no error, want one", executable)
		}
	}
}

// TestDoctorSeesMissingLayers: a child that does not confine itself is found out.
func TestDoctorSeesMissingLayers(t *testing.T) {
	t.Parallel()
	cfg := Config{Logger: zap.NewNop()}
	fakeChild(t)(&cfg)
	found, err := Doctor(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Doctor: %v", err)
	}
	for _, l := range found {
		switch l.Name {
		case "no new privileges", "system call filter", "no files", "resource limits":
			if l.Active {
				t.Errorf("layer %s: got active, want inactive", l.Name)
			}
		}
	}
}

// TestWithoutNamespaces: where a host refuses them, the rest still works.
func TestWithoutNamespaces(t *testing.T) {
	t.Parallel()
	for _, i := range []nursery.Isolation{nursery.IsolateSelf, nursery.IsolateUser, nursery.IsolateNone} {
		if i == nursery.IsolateUser && os.Getuid() != 0 {
			continue // only root changes users
		}
		p := newPool(t, func(c *Config) { c.Spares = -1 })
		p.spawner.First = i // no child has been asked for yet
		s := acquire(t, p, program(t, "plain", `export default () => 1`))
		if r := s.Run(t.Context(), call("1", time.Second)); r.Status != api.StatusSuccess {
			t.Errorf("run with %s: got status %s, error %+v, want success", i, r.Status, r.Error)
		}
		if got := layers.OwnNamespace(s.child.pid, "net"); got != (i == nursery.IsolateSelf) || s.child.Isolation != i {
			t.Errorf("isolation %s: got %s and own network %v, want own network %v", i, s.child.Isolation, got, i == nursery.IsolateSelf)
		}
		if e := s.child.limitAddressSpace(s.child.limit, s.child.limit); e != nil {
			t.Errorf("limitAddressSpace: got %v, want no error", e)
		}
		p.Release(s)
	}
}
