package server

import (
	"context"
	"errors"
	"testing"
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
