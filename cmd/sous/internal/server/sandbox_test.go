package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// What `make build` makes: the small child lies in the binary and runs from memory, confined
// like any other. What a plain `go build` makes is its own child.
func TestSandboxChild(t *testing.T) {
	t.Parallel()
	plain := sandboxtest.Build(t, "github.com/codesous/sous/cmd/sous")
	for binary, want := range map[string]string{soustest.Executable(t): "memfd:sous-sandbox-child", plain: plain} {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			t.Parallel()
			testSandboxChild(t, binary, want)
		})
	}
}

// testSandboxChild requires that the children of a server run a program whose name contains want.
func testSandboxChild(t *testing.T, binary, want string) {
	server, err := soustest.Command{Args: []string{"dev", "--data-dir", t.TempDir()}}.Start(binary)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	function := filepath.Join(t.TempDir(), "hello")
	for _, args := range [][]string{{"fn", "init", function}, {"fn", "deploy", function}, {"fn", "invoke", "hello"}} {
		server.Sous(t, args...)
	}
	children, err := soustest.Children(server.Pid())
	if err != nil || len(children) == 0 {
		t.Fatalf("children of the server = %v, %v, want at least one", children, err)
	}
	for _, pid := range children {
		exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
		if err != nil || !strings.Contains(exe, want) {
			t.Errorf("child %d runs %q, %v, want %s", pid, exe, err, want)
		}
	}
}

// A build with the tag sandboxchild whose child is empty must not run as its own child, which the
// tag leaves out.
func TestEmptySandboxChildIsRefused(t *testing.T) {
	t.Parallel()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatalf("zstd.NewWriter: %v", err)
	}
	for name, child := range map[string][]byte{"no file": nil, "a compressed empty file": encoder.EncodeAll(nil, nil)} {
		if path, _, err := childExecutable(child); err == nil || !strings.Contains(err.Error(), "make build") {
			t.Errorf("%s: got path %q and error %v, want an error that names make build", name, path, err)
		}
	}
}

// A process with few files open, as in a container without /sys and /dev, would
// otherwise name its child by a descriptor that the child gets for its socket.
func TestMemoryFileIsNoDescriptorOfAChild(t *testing.T) {
	t.Parallel()
	file, err := memoryFile("test", strings.NewReader("content"))
	if err != nil {
		t.Fatalf("memoryFile: %v", err)
	}
	defer file.Close()
	if file.Fd() < firstFree {
		t.Errorf("descriptor %d, want %d or more", file.Fd(), firstFree)
	}
	content, err := os.ReadFile("/proc/self/fd/" + strconv.Itoa(int(file.Fd())))
	if err != nil || string(content) != "content" {
		t.Errorf("memory file holds %q, %v, want \"content\"", content, err)
	}
	if _, err := file.Write([]byte("more")); err == nil {
		t.Error("Write to the memory file succeeded, want an error")
	}
}
