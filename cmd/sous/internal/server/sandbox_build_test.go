package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// TestSandboxBuild: every executable of Go has a build ID of its own, and a file that is no
// executable has none.
func TestSandboxBuild(t *testing.T) {
	t.Parallel()
	self, child := sandboxBuild(""), sandboxBuild(sandboxtest.Executable(t))
	if self == "" || child == "" || self == child {
		t.Errorf("got the builds %q and %q, want two that differ", self, child)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no executable"), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if got := sandboxBuild(text); got != "" {
		t.Errorf("got the build %q of a text, want none", got)
	}
}
