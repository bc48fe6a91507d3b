package hostcall

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// incoming reads the body of a response ahead, at most smallReply bytes of it. A server that
// sends more waits until the function has read.
type incoming struct {
	ctx    context.Context // the exchange's
	cancel context.CancelFunc

	reading sync.Mutex // held by the call that waits for the next part

	mu   sync.Mutex
	held []byte
	err  error         // the end of the body, io.EOF if it is whole
	more chan struct{} // holds a token when held or err has changed
	room chan struct{} // holds a token when held has shrunk
}

// newIncoming begins to read body, which it closes. cancel ends ctx, the exchange.
func newIncoming(ctx context.Context, body io.ReadCloser, cancel context.CancelFunc) *incoming {
	in := &incoming{ctx: ctx, cancel: cancel, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	go func() {
		defer func() { _ = body.Close() }() // it has been read or given up
		in.fill(body)
	}()
	return in
}

// fill reads until the body or ctx ends.
func (in *incoming) fill(body io.Reader) {
	part := make([]byte, 32<<10)
	for {
		n, err := body.Read(part)
		in.mu.Lock()
		in.held = append(in.held, part[:n]...)
		in.err = err
		full := len(in.held)+len(part) > smallReply
		in.mu.Unlock()
		wake(in.more)
		for err == nil && full {
			select {
			case <-in.room:
			case <-in.ctx.Done():
				return
			}
			in.mu.Lock()
			full = len(in.held)+len(part) > smallReply
			in.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// wake puts a token into a channel that holds one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// first returns the beginning of the body: when the body has ended, when no more is read ahead,
// or after the time. end reports that this is the whole body.
func (in *incoming) first(grace time.Duration) (part []byte, end bool, err error) {
	timeout := time.NewTimer(grace)
	defer timeout.Stop()
	for {
		in.mu.Lock()
		done := in.err != nil || len(in.held)+32<<10 > smallReply
		in.mu.Unlock()
		if done {
			return in.take()
		}
		select {
		case <-in.more:
		case <-timeout.C:
			return in.take()
		case <-in.ctx.Done():
			return nil, false, in.ctx.Err()
		}
	}
}

// next waits for the next part. end reports that no other follows. Errors: ctx's, those of the
// exchange.
func (in *incoming) next(ctx context.Context) (part []byte, end bool, err error) {
	for {
		part, end, err = in.take()
		if len(part) > 0 || end || err != nil {
			return part, end, err
		}
		select {
		case <-in.more:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-in.ctx.Done():
			return nil, false, in.ctx.Err()
		}
	}
}

// take returns what has arrived. An error comes behind all that arrived before it.
func (in *incoming) take() (part []byte, end bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	part, in.held = in.held, nil
	wake(in.room)
	switch {
	case errors.Is(in.err, io.EOF):
		return part, true, nil
	case len(part) == 0 && in.err != nil:
		return nil, false, in.err
	}
	return part, false, nil
}

// close ends the exchange.
func (in *incoming) close() { in.cancel() }
