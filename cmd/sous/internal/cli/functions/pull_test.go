package functions

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPullRefusesTraps: nothing of a bundle with a path that would do harm is written.
func TestPullRefusesTraps(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../out.js", "/etc/out.js", ".git/hooks/post-checkout", "lib/.git/config", "node_modules/a/index.js", ".env"} {
		folder := t.TempDir()
		if err := writeFolder(folder, map[string][]byte{name: []byte("x"), "function.js": []byte("y")}, true); err == nil {
			t.Errorf("writeFolder with %s: got no error, want one", name)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("writeFolder with %s: got %d files and %v, want none", name, len(left), err)
		}
	}
}

// TestPullStaysInItsFolder, also where the folder has a link that leads out of it.
func TestPullStaysInItsFolder(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "lib")); err != nil {
		t.Fatalf("os.Symlink: %v", err)
	}
	if err := writeFolder(folder, map[string][]byte{"lib/a.js": []byte("x")}, true); err == nil {
		t.Error("writeFolder through a link: got no error, want one")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("behind the link: got %d files and %v, want none", len(left), err)
	}
}
