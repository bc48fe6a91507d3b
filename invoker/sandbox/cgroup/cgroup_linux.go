// Package cgroup puts each sandbox into a control group of its own, where the host lets the server
// divide its control group (cgroup v2).
//
// The tree below the server's own group:
//
//	server/              the server: a group that is divided must not have processes itself
//	spares/              the nursery, and children without a program
//	sandboxes/TENANT/    cpu.weight by the tenant's weight, which divides the processors
//	                     between tenants, however many children each has
//	sandboxes/TENANT/N/  one child: memory.max, pids.max
package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// controllers are those that the tree uses, as far as the host offers them.
var controllers = []string{"cpu", "memory", "pids"}

// The names below the server's group.
const (
	serverName    = "server"
	sparesName    = "spares"
	sandboxesName = "sandboxes"
)

// Place is where a server can have its tree.
type Place struct {
	// Dir is the group that is divided.
	Dir string
	// Controllers are those of cpu, memory and pids that it has.
	Controllers []string

	// Those of tests whose folders the kernel does not fill and empty: it makes the files of a
	// new group, and removes them with it. nil in a server.
	made, removed func(dir string)
}

// mkdir makes a group, or uses one that exists.
func (p *Place) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if p.made != nil {
		p.made(dir)
	}
	return nil
}

// remove removes a group.
func (p *Place) remove(dir string) error {
	if p.removed != nil {
		p.removed(dir)
	}
	return os.Remove(dir)
}

// Find returns the place of a tree of this process, and changes nothing. The error says why
// there is none.
func Find() (*Place, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	dir, err := ownDir(string(mounts), string(own))
	if err != nil {
		return nil, err
	}
	return find(dir, os.Getpid())
}

// ownDir returns the folder of this process's group, from the contents of mountinfo and of
// cgroup in /proc/self.
func ownDir(mounts, own string) (string, error) {
	group, found := "", false
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group, found = path, true
		}
	}
	if !found {
		return "", errors.New("this process is in no cgroup of version 2")
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line) // 36 35 0:31 ROOT POINT options - cgroup2 source options
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+2 || fields[dash+1] != "cgroup2" {
			continue
		}
		if below, ok := strings.CutPrefix(group, strings.TrimSuffix(fields[3], "/")); ok {
			return filepath.Join(fields[4], below), nil
		}
	}
	return "", errors.New("no cgroup file system of version 2 is mounted")
}

// find examines the group of process pid: it, or its parent if an earlier server or systemd's
// DelegateSubgroup has put the process into the subgroup for servers.
func find(dir string, pid int) (*Place, error) {
	if filepath.Base(dir) == serverName {
		parent, err := examine(filepath.Dir(dir), nil)
		if err == nil {
			return parent, nil
		}
	}
	return examine(dir, []int{pid})
}

// examine returns the place that dir is, if the only processes in it are those of pids.
func examine(dir string, pids []int) (*Place, error) {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is the root of all cgroups: the server needs one of its own", dir)
	}
	offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	place := &Place{Dir: dir}
	for _, name := range strings.Fields(string(offered)) {
		if slices.Contains(controllers, name) {
			place.Controllers = append(place.Controllers, name)
		}
	}
	if len(place.Controllers) == 0 {
		return nil, fmt.Errorf("%s has none of the controllers cpu, memory and pids", dir)
	}
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := unix.Access(filepath.Join(dir, file), unix.W_OK); err != nil {
			return nil, fmt.Errorf("%s is not delegated to this user: %w", filepath.Join(dir, file), err)
		}
	}
	others, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	for _, text := range strings.Fields(string(others)) {
		if pid, err := strconv.Atoi(text); err != nil || !slices.Contains(pids, pid) {
			return nil, fmt.Errorf("%s has other processes than this one", dir)
		}
	}
	return place, nil
}

// Tree is the divided group of a server. It is safe for concurrent use.
type Tree struct {
	place *Place

	mu      sync.Mutex
	next    int
	tenants map[string]*tenant // by folder
}

// tenant is the group of a tenant. It exists while it has boxes.
type tenant struct {
	dir    string
	weight int
	boxes  int
}

// Open divides the group of place: it moves this process, which is all that the group has, into
// a subgroup, and removes what an earlier server left.
func Open(place *Place) (*Tree, error) {
	t := &Tree{place: place, tenants: map[string]*tenant{}}
	for _, name := range []string{serverName, sparesName, sandboxesName} {
		if err := place.mkdir(filepath.Join(place.Dir, name)); err != nil {
			return nil, err
		}
	}
	if err := write(filepath.Join(place.Dir, serverName), "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return nil, err
	}
	sandboxes := filepath.Join(place.Dir, sandboxesName)
	for _, dir := range []string{place.Dir, sandboxes} {
		if err := t.enable(dir); err != nil {
			// Back to where it was: the group must not be divided by halves.
			return nil, errors.Join(err, write(place.Dir, "cgroup.procs", strconv.Itoa(os.Getpid())))
		}
	}
	return t, t.removeStale(sandboxes)
}

// enable passes the controllers on to the groups below dir.
func (t *Tree) enable(dir string) error {
	if len(t.place.Controllers) == 0 {
		return nil
	}
	return write(dir, "cgroup.subtree_control", "+"+strings.Join(t.place.Controllers, " +"))
}

// removeStale removes the groups of an earlier server, whose children have died with it or die
// now.
func (t *Tree) removeStale(sandboxes string) error {
	tenants, err := os.ReadDir(sandboxes)
	if err != nil {
		return err
	}
	for _, entry := range tenants {
		dir := filepath.Join(sandboxes, entry.Name())
		if !entry.IsDir() {
			continue
		}
		boxes, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, box := range boxes {
			if box.IsDir() {
				err = errors.Join(err, t.kill(filepath.Join(dir, box.Name())))
			}
		}
		err = errors.Join(err, t.removeDir(dir))
		if err != nil {
			return err
		}
	}
	return nil
}

// kill ends all processes of a group and removes it.
func (t *Tree) kill(dir string) error {
	if err := write(dir, "cgroup.kill", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) { // Linux 5.14
		return err
	}
	return t.removeDir(dir)
}

// removeDir removes a group whose processes have ended or end now: it is busy until the kernel
// has freed them.
func (t *Tree) removeDir(dir string) error {
	var err error
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		err = t.place.remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(wait) // until the kernel has freed the processes
	}
	return err
}

// Controls reports whether the tree has a controller.
func (t *Tree) Controls(controller string) bool {
	return slices.Contains(t.place.Controllers, controller)
}

// Spare moves the nursery, and with it the children that it will start, out of the server's
// group.
func (t *Tree) Spare(pid int) error {
	return write(filepath.Join(t.place.Dir, sparesName), "cgroup.procs", strconv.Itoa(pid))
}

// Limits are those of a child. Weight is its tenant's, 100 is usual.
type Limits struct {
	Weight int
	Memory int64 // bytes
	Pids   int   // processes and threads
}

// Box is the group of one child.
type Box struct {
	tree   *Tree
	tenant string
	dir    string
}

// safeName matches the names of tenants that can be names of groups.
var safeName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// Enter moves a child into a new group of its tenant. Close removes the group.
func (t *Tree) Enter(pid int, name string, limits Limits) (*Box, error) {
	folder := name
	if !safeName.MatchString(name) {
		folder = fmt.Sprintf("T%x", name) // no name of a tenant begins with a capital
	}
	b, err := t.open(folder, limits.Weight)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		t.limit("memory", b.dir, "memory.max", strconv.FormatInt(limits.Memory, 10)),
		t.limit("pids", b.dir, "pids.max", strconv.Itoa(limits.Pids)),
	)
	if err == nil {
		// A host without swap does not have this file.
		if swap := t.limit("memory", b.dir, "memory.swap.max", "0"); swap != nil && !errors.Is(swap, fs.ErrNotExist) {
			err = swap
		}
	}
	if err == nil {
		err = write(b.dir, "cgroup.procs", strconv.Itoa(pid))
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// open makes the group of a child, and that of its tenant if it is the first.
func (t *Tree) open(folder string, weight int) (*Box, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.tenants[folder]
	if of == nil {
		of = &tenant{dir: filepath.Join(t.place.Dir, sandboxesName, folder)}
		if err := t.place.mkdir(of.dir); err != nil {
			return nil, err
		}
		if err := t.enable(of.dir); err != nil {
			return nil, errors.Join(err, t.place.remove(of.dir))
		}
		t.tenants[folder] = of
	}
	t.next++
	b := &Box{tree: t, tenant: folder, dir: filepath.Join(of.dir, strconv.Itoa(t.next))}
	of.boxes++
	err := t.place.mkdir(b.dir)
	if err == nil && of.weight != weight {
		of.weight = weight
		err = t.limit("cpu", of.dir, "cpu.weight", strconv.Itoa(min(max(weight, 1), 10_000)))
	}
	if err != nil {
		return nil, errors.Join(err, t.leave(b))
	}
	return b, nil
}

// limit writes a limit, if the tree has its controller.
func (t *Tree) limit(controller, dir, file, value string) error {
	if !t.Controls(controller) {
		return nil
	}
	return write(dir, file, value)
}

// Tighten sets the child's memory limit to so many bytes above those that it uses.
func (b *Box) Tighten(bytes int64) error {
	if !b.tree.Controls("memory") {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "memory.current"))
	if err != nil {
		return err
	}
	used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return err
	}
	return write(b.dir, "memory.max", strconv.FormatInt(used+bytes, 10))
}

// OutOfMemory reports whether the kernel killed the child because of its limit.
func (b *Box) OutOfMemory() bool {
	text, err := os.ReadFile(filepath.Join(b.dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if count, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			return string(bytes.TrimSpace(count)) != "0"
		}
	}
	return false
}

// Close removes the group of a child that has ended, and that of its tenant with the last one.
func (b *Box) Close() error {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.tree.leave(b)
}

// leave is Close; the caller holds t.mu.
func (t *Tree) leave(b *Box) error {
	err := t.removeDir(b.dir)
	of := t.tenants[b.tenant]
	of.boxes--
	if of.boxes == 0 {
		delete(t.tenants, b.tenant)
		err = errors.Join(err, t.removeDir(of.dir))
	}
	return err
}

// write writes a control file.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
