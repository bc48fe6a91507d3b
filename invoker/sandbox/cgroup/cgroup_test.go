package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// group makes a folder with the files of a control group, which a kernel would make.
func group(t *testing.T, dir, controllers, procs string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("os.MkdirAll: %v", err)
	}
	for name, text := range map[string]string{
		"cgroup.type": "domain\n", "cgroup.controllers": controllers, "cgroup.procs": procs, "cgroup.subtree_control": "", "cgroup.kill": "",
		"cpu.weight": "100", "memory.max": "max", "memory.swap.max": "max", "memory.current": "1000", "memory.events": "oom 0\noom_kill 0\n", "pids.max": "max",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
}

// content returns the content of a file.
func content(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

func TestOwnDir(t *testing.T) {
	t.Parallel()
	const hybrid = `25 21 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro
26 25 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
27 25 0:24 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
`
	for name, test := range map[string]struct{ mounts, own, dir string }{
		"unit":        {"30 21 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", "0::/system.slice/sous.service\n", "/sys/fs/cgroup/system.slice/sous.service"},
		"hybrid":      {hybrid, "4:cpu:/\n0::/a\n", "/sys/fs/cgroup/unified/a"},
		"container":   {"30 21 0:26 /docker/12 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/12\n", "/sys/fs/cgroup"},
		"own root":    {"30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/\n", "/sys/fs/cgroup"},
		"version 1":   {hybrid, "4:cpu:/\n", ""},
		"not mounted": {"27 25 0:24 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "0::/a\n", ""},
	} {
		if got, err := ownDir(test.mounts, test.own); got != test.dir || (err == nil) != (test.dir != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.dir)
		}
	}
}

// TestFind: only a group that the server has for itself, and that it may divide, is a place.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "sous.service")
	group(t, own, "cpuset cpu io memory pids", "42\n")
	place, err := find(own, 42)
	if err != nil || place.Dir != own || !slices.Equal(place.Controllers, []string{"cpu", "memory", "pids"}) {
		t.Errorf("find of a delegated group = %+v, %v, want %s with cpu, memory and pids", place, err, own)
	}
	group(t, filepath.Join(own, "server"), "cpu", "42\n")
	group(t, own, "memory pids", "")
	place, err = find(filepath.Join(own, "server"), 42)
	if err != nil || place.Dir != own {
		t.Errorf("a subgroup for the server: got %+v, %v, want its parent", place, err)
	}
	for name, files := range map[string][2]string{"others": {"cpu", "42\n43\n"}, "no controllers": {"hugetlb", "42\n"}} {
		other := filepath.Join(dir, name)
		group(t, other, files[0], files[1])
		if place, err := find(other, 42); err == nil {
			t.Errorf("%s: got %+v, want an error", name, place)
		}
	}
	if place, err := find(dir, 42); err == nil {
		t.Errorf("a root: got %+v, want an error", place)
	}
}

// TestTree puts children of two tenants into groups over a folder that stands for the kernel's,
// with what an earlier server left.
func TestTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"", "server", "spares", "sandboxes", "sandboxes/t_gone", "sandboxes/t_gone/7"} {
		group(t, filepath.Join(dir, name), "cpu memory pids", "")
	}
	place := &Place{Dir: dir, Controllers: []string{"cpu", "memory", "pids"}, removed: func(dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "*.*"))
		if err != nil {
			t.Errorf("filepath.Glob: %v", err)
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				t.Errorf("os.Remove: %v", err)
			}
		}
	}}
	tree, err := Open(place)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if got := content(t, dir, "server/cgroup.procs"); got != strconv.Itoa(os.Getpid()) {
		t.Errorf("processes of the server's group: got %q, want this one", got)
	}
	if got := content(t, dir, "sandboxes/cgroup.subtree_control"); got != "+cpu +memory +pids" {
		t.Errorf(`controllers below: got %q, want "+cpu +memory +pids"`, got)
	}
	if _, err := os.Stat(filepath.Join(dir, "sandboxes/t_gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stale group: got %v, want none", err)
	}
	box := openBox(t, tree, "t_acme")
	if got := content(t, dir, "sandboxes/t_acme/cpu.weight"); got != "250" {
		t.Errorf("weight of the tenant: got %q, want 250", got)
	}
	for file, want := range map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "64", "cgroup.procs": "4711"} {
		if got := content(t, box.dir, file); got != want {
			t.Errorf("%s of the child: got %q, want %q", file, got, want)
		}
	}
	if err := box.Tighten(5000); err != nil || content(t, box.dir, "memory.max") != "6000" {
		t.Errorf("Tighten: got %v, limit %q, want 6000: 5000 above those in use", err, content(t, box.dir, "memory.max"))
	}
	if err := os.WriteFile(filepath.Join(box.dir, "memory.events"), []byte("oom 1\noom_kill 1\n"), 0o644); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if !box.OutOfMemory() {
		t.Error("after the kernel killed the child: got not out of memory")
	}
	second := openBox(t, tree, "t_acme")
	for _, b := range []*Box{box, second} {
		if _, err := os.Stat(filepath.Join(dir, "sandboxes/t_acme")); err != nil {
			t.Errorf("the tenant's group while it has a child: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "sandboxes/t_acme")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tenant's group without children: got %v, want none", err)
	}
}

// openBox puts process 4711 into a group of a tenant. The files of new groups, which the
// kernel would make, are made beside the folders as soon as these appear.
func openBox(t *testing.T, tree *Tree, tenant string) *Box {
	t.Helper()
	tree.place.made = func(dir string) { group(t, dir, "cpu memory pids", "") }
	box, err := tree.Enter(4711, tenant, Limits{Weight: 250, Memory: 1 << 20, Pids: 64})
	if err != nil {
		t.Fatalf("Enter: %v", err)
	}
	return box
}

// TestKernel moves a process into a group of the kernel of this host, and removes the group
// with its end. It needs a writable control group file system; the controllers are not needed.
func TestKernel(t *testing.T) {
	t.Parallel()
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
			root = dir
		}
	}
	base := filepath.Join(root, fmt.Sprintf("sous-test-%d", os.Getpid()))
	if root == "" || os.Mkdir(base, 0o755) != nil {
		t.Skip("no writable control group file system")
	}
	place := &Place{Dir: base}
	tree, err := Open(place)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer func() {
		if err := write(root, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
			t.Errorf("back to the root: %v", err)
		}
		for _, name := range []string{"server", "spares", "sandboxes", ""} {
			if err := tree.removeDir(filepath.Join(base, name)); err != nil {
				t.Errorf("removeDir: %v", err)
			}
		}
	}()
	child := func() *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatalf("cmd.Start: %v", err)
		}
		return cmd
	}
	cmd := child()
	began := time.Now()
	box, err := tree.Enter(cmd.Process.Pid, "t_acme", Limits{Weight: 100, Memory: 1 << 30, Pids: 64})
	if err != nil {
		t.Fatalf("Enter: %v", err)
	}
	t.Logf("entered in %s", time.Since(began))
	if got := content(t, fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)); !strings.Contains(got, "/sandboxes/t_acme/1") {
		t.Errorf("groups of the child: got %q, want t_acme/1", got)
	}
	if box.OutOfMemory() {
		t.Error("a child that lives: got out of memory, want not")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := box.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(base, "sandboxes")); err != nil || slices.ContainsFunc(left, fs.DirEntry.IsDir) {
		t.Errorf("groups after the end: got %v, %v, want none", left, err)
	}

	// A child that a server left behind is ended when the next one starts.
	stale := child()
	if _, err := tree.Enter(stale.Process.Pid, "Strange/Name", Limits{Weight: 100, Memory: 1 << 30, Pids: 64}); err != nil {
		t.Fatalf("Enter: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stale.Wait() }()
	if _, err := Open(place); err != nil {
		t.Errorf("Open again: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the stale child: got a regular end, want a kill")
	}
}
