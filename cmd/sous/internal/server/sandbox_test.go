package server

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// What `make build` makes: the small child lies in the binary and runs from
// memory, confined like any other.
func TestEmbeddedSandboxChild(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatalf("os.Getwd: %v", err)
	}
	// The overlay puts the child where go:embed looks, and nothing into the source.
	child, compressed := sandboxtest.Executable(t), filepath.Join(t.TempDir(), "sandbox-child.zst")
	compress := exec.CommandContext(t.Context(), "sh", "-c", `go run github.com/codesous/sous/tools/compress <"$1" >"$2"`, "sh", child, compressed)
	if out, err := compress.CombinedOutput(); err != nil {
		t.Fatalf("compress: %v\n%s", err, out)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "sandbox-child.zst"): compressed}})
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	file, binary := filepath.Join(t.TempDir(), "overlay.json"), filepath.Join(t.TempDir(), "sous")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "sandboxchild", "-overlay", file, "-o", binary, "github.com/codesous/sous/cmd/sous")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build -tags sandboxchild: %v\n%s", err, out)
	}

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
		if err != nil || !strings.Contains(exe, "memfd:sous-sandbox-child") {
			t.Errorf("child %d runs %q, %v, want memfd:sous-sandbox-child", pid, exe, err)
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
