// Package layers examines which layers of its confinement hold in a sandbox child on this host.
package layers

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/codesous/sous/invoker/sandbox/cgroup"
	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Layer is one layer of a sandbox's confinement on this host.
type Layer struct {
	Name   string `json:"name"`
	Active bool   `json:"active"` // it holds in a child that this host started just now
	Detail string `json:"detail"` // for people
}

// Child is a child that has confined itself.
type Child struct {
	PID          int
	Claims       []string // the layers that it reports (wire.Hello)
	Isolation    string   // for people
	MaxThreads   uint64   // that it may have
	AddressSpace uint64   // its limit, in bytes
	Limited      bool     // the limit is the one that was set
	SharedUser   bool     // other children may run as its user
	Files        []string // its open files, nil to read them from /proc
}

// Inspect returns the layers that hold in a child, as far as they can be seen while it lives.
// It believes the child's claims only together with what /proc shows, except for Landlock and
// the resource limits, which /proc does not show.
func Inspect(p Child) []Layer {
	status := ProcStatus(p.PID)
	claims := func(layer string) bool { return slices.Contains(p.Claims, layer) }
	return []Layer{
		{layerUserNamespace, OwnNamespace(p.PID, "user"), p.Isolation},
		otherUser(status["Uid"], p.SharedUser),
		{layerNetworkNamespace, OwnNamespace(p.PID, "net"), "no network but an unused loopback"},
		{"no capabilities", status["CapEff"] != "" && strings.Trim(status["CapEff"], "0") == "", "CapEff " + status["CapEff"]},
		{"no new privileges", status["NoNewPrivs"] == "1" && claims(wire.LayerNoNewPrivs), "no_new_privs"},
		{"system call filter", status["Seccomp"] == "2" && claims(wire.LayerSeccomp), "seccomp, all threads; tried by the child"},
		{layerFiles, claims(wire.LayerLandlock), "Landlock without rules; tried by the child"},
		{"resource limits", claims(wire.LayerRlimits), "file size 0, core 0, descriptors 16, locked memory 0, threads " + p.threadLimit()},
		{"memory limit", p.Limited, fmt.Sprintf("address space %d MB until it is assigned", p.AddressSpace>>20)},
		p.Descriptors(),
		p.dispensable(),
		ownCGroup(),
	}
}

// ownCGroup reports whether a server that is started as this process was could give each child
// a cgroup. Those of a running server are its own matter: it has moved into a subgroup.
func ownCGroup() Layer {
	place, err := cgroup.Find()
	if err != nil {
		return Layer{Name: layerCGroup, Detail: err.Error()}
	}
	return Layer{Name: layerCGroup, Active: true, Detail: strings.Join(place.Controllers, ", ") + " below " + place.Dir}
}

// otherUser reports whether the child runs as another user than this process, as seen outside of
// its user namespace. ids are the four of the field Uid.
func otherUser(ids string, shared bool) Layer {
	own := strconv.Itoa(os.Geteuid())
	all := strings.Fields(ids)
	l := Layer{Name: layerUser, Active: len(all) == 4 && !slices.Contains(all, own), Detail: "the server's"}
	if l.Active {
		l.Detail = "uid " + all[0]
		if shared {
			l.Detail += ", that of all sandboxes"
		}
	}
	return l
}

// The names of limits in /proc/PID/limits.
const (
	AddressSpace = "Max address space"
	processes    = "Max processes"
)

// SoftLimit returns a resource limit of a process, 0 if it cannot be read, the largest number if
// there is none. Any process may read the file, unlike prlimit.
func SoftLimit(pid int, name string) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) > 0 && fields[0] == "unlimited" {
			return unix.RLIM_INFINITY
		}
		if len(fields) > 0 {
			limit, err := strconv.ParseUint(fields[0], 10, 64)
			if err == nil {
				return limit
			}
		}
	}
	return 0
}

// threadLimit returns the child's RLIMIT_NPROC as text; limitThreads sets it.
func (p Child) threadLimit() string {
	if SoftLimit(p.PID, processes) != p.MaxThreads {
		return "not limited"
	}
	return strconv.FormatUint(p.MaxThreads, 10)
}

// Descriptors reports whether the child has only its own descriptors open: its socket, its
// stderr, the empty device, those of Go's poller, and its own size (/proc/PID/statm).
// Another one would have leaked from the server.
func (p Child) Descriptors() Layer {
	l := Layer{Name: "no foreign descriptors", Active: true}
	files := p.Files
	if files == nil {
		var err error
		files, err = nursery.OpenFiles(p.PID)
		if err != nil {
			return Layer{Name: l.Name, Detail: "cannot be read"}
		}
	}
	for _, target := range files {
		kind, _, _ := strings.Cut(target, ":")
		own := kind == "socket" || kind == "pipe" || kind == "anon_inode" || target == os.DevNull ||
			target == fmt.Sprintf("/proc/%d/statm", p.PID)
		if !own {
			l.Active = false
			l.Detail += target + " "
		}
	}
	if l.Active {
		l.Detail = fmt.Sprintf("%d open", len(files))
	}
	return l
}

// dispensable reports whether a host that runs out of memory ends the child before the
// server: its oom_score_adj is 1000, the highest.
func (p Child) dispensable() Layer {
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID))
	return Layer{
		Name:   "first to go when memory runs out",
		Active: err == nil && strings.TrimSpace(string(score)) == "1000",
		Detail: "oom_score_adj " + strings.TrimSpace(string(score)),
	}
}

// OwnNamespace reports whether pid is in another namespace than this process.
func OwnNamespace(pid int, kind string) bool {
	ours, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	return err == nil && theirs != ours
}

// ProcStatus returns the fields of /proc/PID/status, nil if it cannot be read.
func ProcStatus(pid int) map[string]string {
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
