package server

import (
	"encoding/binary"
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

// TestBuildOf: a text that a linker was told to write names no build, nor does half a note.
func TestBuildOf(t *testing.T) {
	t.Parallel()
	note := func(size int, text string) []byte {
		b := binary.LittleEndian.AppendUint32(nil, 4)
		b = binary.LittleEndian.AppendUint32(b, uint32(size))
		b = binary.LittleEndian.AppendUint32(b, 4)
		return append(append(b, "Go\x00\x00"...), text...)
	}
	for name, tt := range map[string]struct {
		note []byte
		want string
	}{
		"build ID":  {note(7, "a/b/c/d"), "a/b/c/d"},
		"redacted":  {note(8, "redacted"), ""},
		"too short": {note(7, "a/b/c"), ""},
		"no text":   {note(7, "")[:14], ""},
	} {
		if got := buildOf(tt.note, binary.LittleEndian); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
