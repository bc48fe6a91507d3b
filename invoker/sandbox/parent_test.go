package sandbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"github.com/codesous/sous/invoker/sandbox/layers"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// TestParentKilled tests that no child survives a parent that is killed, for every user
// that the child runs as and every isolation that the host allows.
func TestParentKilled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		args       []string
		container  bool // of Docker, with the capabilities to change users
		attr       *syscall.SysProcAttr
		namespaces bool
		otherUser  bool
	}{
		{name: "as this user", namespaces: true, otherUser: os.Getuid() == 0},
		{name: "as root of a container", container: true, otherUser: true},
		{name: "as another user", attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}, namespaces: true},
		{
			name: "where namespaces are refused", args: []string{"no-namespaces"},
			attr: &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if (tc.attr != nil || tc.container) && os.Getuid() != 0 {
				t.Skip("only root may become another user")
			}
			cmd := exec.Command(sandboxtest.Build(t, "./testdata/parent"), append([]string{sandboxtest.Executable(t)}, tc.args...)...)
			if tc.container {
				cmd = inContainer(t, changeUsers, cmd.Args...)
			}
			cmd.SysProcAttr = tc.attr
			cmd.Dir = "/"
			checkParent(t, cmd, tc.namespaces, tc.otherUser)
		})
	}
}

func checkParent(t *testing.T, cmd *exec.Cmd, namespaces, otherUser bool) {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("cmd.StdoutPipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("cmd.Start: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	var found []Layer
	var result Result
	for _, into := range []any{&found, &result} {
		if !lines.Scan() {
			t.Fatalf("the parent: got no further line, error %v, want the layers and a result", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), into); err != nil {
			t.Fatalf("json.Unmarshal of %s: %v", lines.Bytes(), err)
		}
	}
	for _, l := range found {
		if l.Name == "no files" || l.Name == "cgroup for each child" {
			continue // as this host has them
		}
		want := true
		switch {
		case strings.HasSuffix(l.Name, "namespace"):
			want = namespaces
		case l.Name == "user of its own":
			want = otherUser
		}
		if l.Active != want {
			t.Errorf("layer %s: got active %v (%s), want %v", l.Name, l.Active, l.Detail, want)
		}
	}
	if result.Status != api.StatusSuccess || !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("got the parent's activation %+v, then %q, want a success, then ready", result, lines.Text())
	}
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) != 6 {
		t.Errorf("%d children, want the nursery and 5", len(children))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the parent ended well")
	}
	eventually(t, func() bool {
		for _, pid := range children {
			if state := layers.ProcStatus(pid)["State"]; state != "" && !strings.HasPrefix(state, "Z") {
				return false
			}
		}
		return true
	})
}

// childrenOf are the processes whose parent is pid.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	var children []int
	for _, dir := range all {
		var child int
		if _, err := fmt.Sscan(filepath.Base(dir), &child); err != nil {
			t.Fatalf("fmt.Sscan: %v", err)
		}
		if layers.ProcStatus(child)["PPid"] == fmt.Sprint(pid) {
			children = append(children, child)
		}
	}
	return children
}
