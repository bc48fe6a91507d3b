package sandbox

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// abortGrace is how long a function may take to end after its caller left, if it has asked to
// be notified. Then its child is killed.
const abortGrace = time.Second

// creditStep is the number of bytes that the client has read before they are granted to the
// child. It bounds the Credit frames that can wait for the child.
const creditStep = wire.StreamWindow / 4

// Stream is an answer that the child still produces. Between the goroutine that reads the
// child's frames and the one that calls Next it holds at most wire.StreamWindow bytes. It
// implements api.Stream.
type Stream struct {
	head  wire.StreamHead
	grant func(n uint32) // lets the child send n more bytes
	begun time.Time

	mu     sync.Mutex
	chunks [][]byte
	held   int           // bytes that the child has sent and the window still counts
	read   int           // bytes of held that were written, and are not granted yet
	taken  int           // bytes of the chunk that Next returned last
	wake   chan struct{} // holds a token when Next has something to look at
	ended  bool
	failed error  // the answer is not complete
	closed func() // called once when the answer has failed; may be nil
	bytes  int64
	first  time.Duration // from begun to the first chunk; 0 before
}

// errAborted is the end of an answer that is not complete.
var errAborted = fmt.Errorf("sandbox: the function did not complete its answer: %w", io.ErrUnexpectedEOF)

func newStream(payload []byte, began time.Time, grant func(uint32)) (*Stream, error) {
	s := &Stream{begun: began, grant: grant, wake: make(chan struct{}, 1)}
	blob, err := wire.ParseMessage(payload, &s.head)
	if err != nil {
		return nil, err
	}
	if len(blob) > 0 || s.head.Status < 200 || s.head.Status > 599 || len(s.head.Headers) > network.MaxFetchHeaders {
		return nil, fmt.Errorf("%w: the head of a stream", wire.ErrFrame)
	}
	return s, nil
}

// Head returns the status, 200 to 599, and the headers as the function set them: the caller
// checks their names and values.
func (s *Stream) Head() (status int, headers [][2]string) { return s.head.Status, s.head.Headers }

// push adds a chunk of the child. Errors: wire.ErrFrame beyond the window, beyond the limit of
// an answer, and after its end.
func (s *Stream) push(chunk []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += len(chunk)
	s.bytes += int64(len(chunk))
	if s.ended || len(chunk) == 0 || len(chunk) > wire.MaxChunk || s.held > wire.StreamWindow || s.bytes > api.MaxStreamBytes {
		return fmt.Errorf("%w: a chunk of %d bytes beyond the window", wire.ErrFrame, len(chunk))
	}
	if s.first == 0 {
		s.first = time.Since(s.begun)
	}
	// Small chunks are joined, so that what they hold is what the window counts.
	if last := len(s.chunks) - 1; last >= 0 && len(s.chunks[last])+len(chunk) <= wire.MaxChunk {
		s.chunks[last] = append(s.chunks[last], chunk...)
	} else {
		s.chunks = append(s.chunks, chunk)
	}
	s.signal()
	return nil
}

// signal wakes Next. The caller holds s.mu.
func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end ends the answer, with a nil error if it is complete. Only the first call counts.
func (s *Stream) end(failed error) {
	s.mu.Lock()
	first := !s.ended
	if first {
		s.ended, s.failed = true, failed
	}
	s.signal()
	if first && failed != nil && s.closed != nil {
		s.closed()
	}
	s.mu.Unlock()
}

// OnFailure registers f, which is called once if the answer fails: a client that does not read can
// then be cut off. f may run on any goroutine, and must not call s. After OnFailure(nil) returns,
// it is no longer called.
func (s *Stream) OnFailure(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = f
	if s.failed != nil && f != nil {
		f()
	}
}

// Next waits for the next chunk, which is the caller's to keep. A call confirms that the previous
// chunk was written, so the child may send more. more reports whether another chunk is there
// already. After the last chunk, err is io.EOF if the answer is complete, and wraps
// io.ErrUnexpectedEOF if it failed. If ctx ends, err is its error.
func (s *Stream) Next(ctx context.Context) (chunk []byte, more bool, err error) {
	s.returned()
	for {
		s.mu.Lock()
		switch {
		case len(s.chunks) > 0: // also those before a failure
			chunk, s.chunks = s.chunks[0], s.chunks[1:]
			s.taken, more = len(chunk), len(s.chunks) > 0
		case s.failed != nil:
			err = s.failed
		case s.ended:
			err = io.EOF
		}
		s.mu.Unlock()
		if chunk != nil || err != nil {
			return chunk, more, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// returned counts the chunk that Next returned last as written.
func (s *Stream) returned() {
	s.mu.Lock()
	s.read += s.taken
	s.taken = 0
	n := 0
	if s.read >= creditStep && !s.ended {
		n, s.read = s.read, 0
		s.held -= n
	}
	s.mu.Unlock()
	if n > 0 {
		s.grant(uint32(n))
	}
}

// figures returns the size of the body so far, and the time to its first byte.
func (s *Stream) figures() (bytes int64, first time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.first
}

// begin is the child's StreamHead: Run returns it as an answer.
func (r *run) begin(payload []byte) error {
	if !r.call.Stream || r.answered {
		return wire.ErrFrame
	}
	r.answered = true
	s, err := newStream(payload, r.began, func(n uint32) {
		r.signal(func(dst []byte) ([]byte, error) { return wire.AppendCredit(dst, n) })
	})
	if err != nil {
		return err
	}
	r.stream = s
	r.listening.Store(true)
	r.early = &Result{Status: api.StatusSuccess, Stream: s}
	return nil
}

// chunk is a part of the streamed body, or its end.
func (r *run) chunk(kind wire.Kind, payload []byte) error {
	switch {
	case r.stream == nil:
		return wire.ErrFrame
	case kind == wire.KindStreamEnd:
		r.stream.end(nil)
		return nil
	}
	return r.stream.push(payload)
}

// signal writes a frame to the child, unless the activation has ended: the child's next one
// must not see it. A frame that was written in part leaves the stream unusable.
func (r *run) signal(add func(dst []byte) ([]byte, error)) {
	r.signals.Lock()
	defer r.signals.Unlock()
	if r.over || r.broken {
		return
	}
	frame, err := add(nil)
	if err == nil {
		_, err = r.child.socket.Write(frame)
	}
	r.broken = err != nil // the child is dead or late; the run's reads find out which
}

// left stops the child, because ctx has ended: at once, or after abortGrace if the function
// wants to know.
func (r *run) left() {
	why := interruptedFor(r.ctx)
	if !r.listening.Load() {
		r.child.killFor(why)
		return
	}
	// Before anything that waits: a child that does not read its socket blocks signal.
	r.late.Store(time.AfterFunc(abortGrace, func() {
		if !r.settled.Load() {
			r.child.killFor(why)
		}
	}))
	r.signal(func(dst []byte) ([]byte, error) { return wire.AppendSignal(dst, wire.KindAbort) })
}

// settle ends the effect of ctx and of the stream on the child, and returns the result with
// the figures of the stream. A function that ended in time after its caller left keeps its
// sandbox.
func (r *run) settle(result Result) Result {
	unlinked := r.unlink()
	r.settled.Store(true)
	if !r.signals.TryLock() {
		// A frame that is being written gets a moment more, then fails.
		_ = r.child.conn.SetWriteDeadline(time.Now().Add(killGrace))
		r.signals.Lock()
	}
	r.over = true
	r.signals.Unlock()
	late := r.late.Load()
	switch {
	case unlinked:
	case late != nil && late.Stop():
		result.Status, result.Error, result.Value = api.StatusCancelled, nil, nil
	default:
		r.spent = true // the child is being killed, or left is about to see that it is too late
	}
	r.spent = r.spent || r.broken
	if r.stream != nil {
		r.stream.end(errAborted) // without effect on one that is complete
		result.StreamBytes, result.FirstByte = r.stream.figures()
	}
	return result
}
