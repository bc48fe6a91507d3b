package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
	"golang.org/x/sys/unix"
)

// Layer is one layer of a sandbox's confinement on this host.
type Layer struct {
	Name   string `json:"name"`
	Active bool   `json:"active"` // it holds in a child that this host started just now
	Detail string `json:"detail"` // for people
}

// Doctor starts a child as a Pool with cfg would, and reports which layers hold: those that
// can be seen from outside, and those that only the child can try. It ends the child, and
// its nursery with it. It fails if no child can start. cfg's Metrics are not used.
func Doctor(ctx context.Context, cfg Config) ([]Layer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	spawner, err := newSpawner(cfg)
	if err != nil {
		return nil, err
	}
	reaped := make(chan struct{})
	child, started, err := spawnProcess(ctx, spawner, func(*process) { close(reaped) })
	if err != nil {
		spawner.stop()
		if started {
			<-reaped
		}
		return nil, err
	}
	layers := child.inspect()
	spawner.stop()
	layers = append(layers, child.diesWithParent(ctx))
	child.end(endChecked)
	<-reaped
	return layers, nil
}

// inspect returns every layer but the last. It believes the child's claims (Hello) only
// together with what /proc shows, except for Landlock and the resource limits, which /proc
// does not show.
func (p *process) inspect() []Layer {
	status := procStatus(p.pid)
	claims := func(layer string) bool { return slices.Contains(p.hello.Layers, layer) }
	var limit unix.Rlimit
	limitErr := unix.Prlimit(p.pid, unix.RLIMIT_AS, nil, &limit)
	return []Layer{
		{layerUserNamespace, ownNamespace(p.pid, "user"), p.isolation.String()},
		{layerNetworkNamespace, ownNamespace(p.pid, "net"), "no network but an unused loopback"},
		{"no capabilities", status["CapEff"] != "" && strings.Trim(status["CapEff"], "0") == "", "CapEff " + status["CapEff"]},
		{"no new privileges", status["NoNewPrivs"] == "1" && claims(wire.LayerNoNewPrivs), "no_new_privs"},
		{"system call filter", status["Seccomp"] == "2" && claims(wire.LayerSeccomp), "seccomp, all threads; tried by the child"},
		{layerFiles, claims(wire.LayerLandlock), "Landlock without rules; tried by the child"},
		{"resource limits", claims(wire.LayerRlimits), "file size 0, core 0, descriptors 16, locked memory 0, threads " + p.threadLimit()},
		{"memory limit", limitErr == nil && limit.Cur == p.limit, fmt.Sprintf("address space %d MB until it is assigned", limit.Cur>>20)},
		p.descriptors(),
		p.dispensable(),
	}
}

// threadLimit returns the child's RLIMIT_NPROC as text; limitThreads sets it.
func (p *process) threadLimit() string {
	var limit unix.Rlimit
	if err := unix.Prlimit(p.pid, unix.RLIMIT_NPROC, nil, &limit); err != nil || limit.Cur != maxThreads {
		return "not limited"
	}
	return strconv.Itoa(maxThreads)
}

// descriptors reports whether the child has only its own descriptors open: its socket, its
// stderr, the empty device, those of Go's poller, and its own size (/proc/PID/statm).
// Another one would have leaked from the server.
func (p *process) descriptors() Layer {
	l := Layer{Name: "no foreign descriptors", Active: true}
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid))
	if err != nil || len(names) == 0 {
		return Layer{Name: l.Name, Detail: "cannot be read"}
	}
	for _, name := range names {
		target, err := os.Readlink(name)
		kind, _, _ := strings.Cut(target, ":")
		own := kind == "socket" || kind == "pipe" || kind == "anon_inode" || target == os.DevNull ||
			target == fmt.Sprintf("/proc/%d/statm", p.pid)
		if err != nil || !own {
			l.Active = false
			l.Detail += target + " "
		}
	}
	if l.Active {
		l.Detail = fmt.Sprintf("%d open", len(names))
	}
	return l
}

// dispensable reports whether a host that runs out of memory ends the child before the
// server: its oom_score_adj is 1000, the highest.
func (p *process) dispensable() Layer {
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.pid))
	return Layer{
		Name:   "first to go when memory runs out",
		Active: err == nil && strings.TrimSpace(string(score)) == "1000",
		Detail: "oom_score_adj " + strings.TrimSpace(string(score)),
	}
}

// diesWithParent waits for the child to die of the end of the thread that spawned it, for
// two seconds at most. The caller has stopped the spawner.
func (p *process) diesWithParent(ctx context.Context) Layer {
	l := Layer{Name: "dies with its parent", Detail: "SIGKILL by the kernel"}
	select {
	case <-p.gone:
		l.Active = true
	case <-ctx.Done():
		l.Detail = ctx.Err().Error()
	case <-time.After(2 * time.Second):
		l.Detail = "it outlives the thread that spawned it"
	}
	return l
}

// ownNamespace reports whether pid is in another namespace than this process.
func ownNamespace(pid int, kind string) bool {
	ours, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	return err == nil && theirs != ours
}

// procStatus returns the fields of /proc/PID/status, nil if it cannot be read.
func procStatus(pid int) map[string]string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}
