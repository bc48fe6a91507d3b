package sandbox

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"go.uber.org/zap"
)

// TestHostileStreams: a child that breaks the rules of streamed answers is ended, and what its
// client got never looks complete, unless it was. The letters are frames, see
// testdata/fakechild.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		frames   string
		streamed bool // Run returns an answer
		complete bool // and its body has an end
		crash    bool
	}{
		"by the rules":            {frames: "HCED", streamed: true, complete: true},
		"a chunk before the head": {frames: "CD", crash: true},
		"an end before the head":  {frames: "ED", crash: true},
		"a status that is none":   {frames: "B", crash: true},
		"a second head":           {frames: "HCH", streamed: true, crash: true},
		"a chunk without bytes":   {frames: "HZ", streamed: true, crash: true},
		"a chunk after the end":   {frames: "HCEC", streamed: true, complete: true, crash: true},
		"more than the window":    {frames: "HCCCCC", streamed: true, crash: true},
		"Done before the end":     {frames: "HCD", streamed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
			s := acquire(t, p, fakeProgram("stream", ""))
			defer p.Release(s)
			run := do("stream " + c.frames)
			run.Early, run.Stream = true, true
			answer := s.Run(t.Context(), run)
			if got := answer.Stream != nil; got != c.streamed {
				t.Fatalf("got an answer that is streamed %t, want %t: %+v", got, c.streamed, answer)
			}
			end := answer
			if c.streamed {
				end = answer.Rest() // nothing is read before: the window must hold without a reader
				if err := readStream(t.Context(), answer.Stream); errors.Is(err, io.EOF) != c.complete || errors.Is(err, io.ErrUnexpectedEOF) == c.complete {
					t.Errorf("the body ended with %v, want it complete %t", err, c.complete)
				}
			}
			if got := end.Error != nil && end.Error.Type == api.ErrSandboxCrash; got != c.crash {
				t.Errorf("got the end %s, %+v, want a crash %t", end.Status, end.Error, c.crash)
			}
			if !c.crash && end.Status != api.StatusSuccess {
				t.Errorf("got the status %s, want success", end.Status)
			}
		})
	}
}

// TestLimitOfStreams: a child sends api.MaxStreamBytes at most, whatever its client reads.
// The byte beyond breaks the protocol.
func TestLimitOfStreams(t *testing.T) {
	t.Parallel()
	granted := 0
	s := &Stream{begun: time.Now(), grant: func(n uint32) { granted += int(n) }, wake: make(chan struct{}, 1)}
	chunk := make([]byte, wire.MaxChunk)
	for sent := 0; sent < api.MaxStreamBytes; sent += len(chunk) {
		if err := s.push(chunk); err != nil {
			t.Fatalf("push after %d bytes: %v, want no error up to %d", sent, err, api.MaxStreamBytes)
		}
		if _, _, err := s.Next(t.Context()); err != nil {
			t.Fatalf("Next after %d bytes: %v", sent, err)
		}
	}
	if err := s.push(chunk[:1]); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("push beyond %d bytes = %v, want %v", api.MaxStreamBytes, err, wire.ErrFrame)
	}
	if bytes, _ := s.figures(); granted > api.MaxStreamBytes || bytes < api.MaxStreamBytes {
		t.Errorf("granted %d bytes of %d, want at most %d", granted, bytes, api.MaxStreamBytes)
	}
}

// TestStreamThatIsNotTaken: a child must not begin a stream where the caller takes none.
func TestStreamThatIsNotTaken(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), func(c *Config) { c.Logger = zap.NewNop() })
	s := acquire(t, p, fakeProgram("stream", ""))
	defer p.Release(s)
	if r := s.Run(t.Context(), do("stream HCED")); r.Error == nil || r.Error.Type != api.ErrSandboxCrash {
		t.Errorf("got %s, %+v, want error %s", r.Status, r.Error, api.ErrSandboxCrash)
	}
}

// readStream reads a stream to its end, and returns what ended it.
func readStream(ctx context.Context, s *Stream) error {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	for {
		chunk, _, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if len(chunk) > wire.MaxChunk {
			return errors.New("a chunk is larger than the largest")
		}
	}
}
