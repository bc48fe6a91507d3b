package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/codesous/sous/storage/embedded"
)

// A mirror whose disk hangs keeps no other part from closing, and close does not wait beyond its time.
func TestHangingMirrorLetsTheOthersClose(t *testing.T) {
	t.Parallel()
	closed := false
	p := &platform{stop: func() {}, fed: make(chan struct{})}
	p.onClose(func(context.Context) error { closed = true; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.close(ctx); !errors.Is(err, context.Canceled) || !closed {
		t.Errorf("close: got error %v, others closed %t, want %v and true", err, closed, context.Canceled)
	}
}

// A reset removes the mirror in the folder that mirror-dir names, and no file of others there.
func TestResetRemovesTheNamedMirror(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), t.TempDir()
	server, err := embedded.Open(data, zap.NewNop())
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for _, name := range []string{"mirror.db", "mirror.db-wal", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatalf("WriteFile: %v", err)
		}
	}
	s := settings{DataDir: data, Mirror: mirrorSettings{Dir: dir}}
	if err := s.reset(); err != nil {
		t.Fatalf("reset: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "notes.txt" {
		t.Errorf("files: got %v, error %v, want notes.txt only", left, err)
	}
}
