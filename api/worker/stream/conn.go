package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"

	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/wire"
)

// conn is an open stream.
type conn struct {
	bidi   *connect.BidiStreamForClient[workerv1.LifecycleRequest, workerv1.LifecycleResponse]
	life   context.Context //nolint:containedctx // of the stream, which this is
	cancel context.CancelCauseFunc

	sending chan struct{} // has a token while bidi.Send runs

	mu       sync.Mutex
	last     uint64 // request id
	draining bool   // no more calls begin
	calls    map[uint64]*call
}

// call is a frame whose responses are awaited.
type call struct {
	// responses has room for all: those of a fetch that ends with its first jobs are the one that it
	// waits, and the parts of at most 80 MiB of jobs.
	responses chan *workerv1.LifecycleResponse
}

// maxResponses is the room of a call for responses.
const maxResponses = 128

// usable reports whether calls may begin.
func (c *conn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.draining && c.life.Err() == nil
}

// end ends the stream. Its calls fail with ErrBroken. The end of the context alone would not tell the
// server while no frame is being sent.
func (c *conn) end(cause error) {
	c.cancel(cause)
	_ = c.bidi.CloseRequest()
	_ = c.bidi.CloseResponse()
}

// failure returns why the stream ended, nil if it was closed or the server drained.
func (c *conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := context.Cause(c.life)
	if c.draining || errors.Is(err, errClosed) {
		return nil
	}
	return err
}

// begin sends a frame. forget must follow.
func (c *conn) begin(ctx context.Context, frame *workerv1.LifecycleRequest) (*call, error) {
	k := &call{responses: make(chan *workerv1.LifecycleResponse, maxResponses)}
	c.mu.Lock()
	c.last++
	frame.RequestId = c.last
	c.calls[c.last] = k
	c.mu.Unlock()
	return k, c.send(ctx, frame)
}

// send sends a frame. It does not end with ctx at once, since a part of the frame may have left, and the
// stream would have to end too. It does so after cancelTimeout, if the server does not read.
func (c *conn) send(ctx context.Context, frame *workerv1.LifecycleRequest) error {
	select {
	case c.sending <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return c.broken()
	}
	defer func() { <-c.sending }()
	sent := make(chan struct{})
	defer close(sent)
	defer context.AfterFunc(ctx, func() {
		timer := time.NewTimer(cancelTimeout)
		defer timer.Stop()
		select {
		case <-sent:
		case <-timer.C:
			c.end(ctx.Err())
		}
	})()
	err := c.bidi.Send(frame)
	if errors.Is(err, io.EOF) {
		<-c.life.Done() // receive finds out why
		return c.broken()
	}
	return err
}

// broken returns why the stream has ended.
func (c *conn) broken() error { return fmt.Errorf("%w: %w", ErrBroken, context.Cause(c.life)) }

// forget unregisters a call. The last one of a stream that drains ends it.
func (c *conn) forget(id uint64) {
	c.mu.Lock()
	delete(c.calls, id)
	over := c.draining && len(c.calls) == 0
	c.mu.Unlock()
	if over {
		_ = c.bidi.CloseRequest() // the server ends the stream
	}
}

// call sends a frame without a fetch and returns its response. An error of the frame is returned as such.
func (c *conn) call(ctx context.Context, frame *workerv1.LifecycleRequest) (*workerv1.LifecycleResponse, error) {
	k, err := c.begin(ctx, frame)
	defer c.forget(frame.GetRequestId())
	if err != nil {
		return nil, err
	}
	select {
	case res := <-k.responses:
		return res, wire.ToError(res.GetError())
	case <-c.life.Done():
		if res := k.arrived(); res != nil {
			return res, wire.ToError(res.GetError())
		}
		return nil, c.broken()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// arrived returns a response that is there, nil for none.
func (k *call) arrived() *workerv1.LifecycleResponse {
	select {
	case res := <-k.responses:
		return res
	default:
		return nil
	}
}

// fetch sends a fetch that ends with its first jobs, and returns them. If ctx ends it is cancelled. Jobs
// that arrived are returned without an error: they are leased.
func (c *conn) fetch(ctx context.Context, f *workerv1.Fetch) (jobs []*workerv1.Job, err error) {
	frame := &workerv1.LifecycleRequest{Fetch: f}
	k, err := c.begin(ctx, frame)
	id := frame.GetRequestId()
	defer c.forget(id)
	if err != nil {
		return nil, err
	}
	jobs, done, err := c.collect(ctx, k)
	if !done && c.life.Err() == nil {
		var rest []*workerv1.Job
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer stop()
		_, failed := c.call(last, &workerv1.LifecycleRequest{CancelFetches: []uint64{id}})
		if failed == nil {
			rest, _, failed = c.collect(last, k)
		}
		jobs, err = append(jobs, rest...), failed
	}
	for res := k.arrived(); res != nil; res = k.arrived() {
		jobs = append(jobs, res.GetFetched().GetJobs()...)
	}
	if len(jobs) > 0 {
		return jobs, nil
	}
	return nil, err
}

// collect returns the jobs of a fetch until its last response, whose error it returns, or until ctx or
// the stream ends.
func (c *conn) collect(ctx context.Context, k *call) (jobs []*workerv1.Job, done bool, err error) {
	for {
		select {
		case res := <-k.responses:
			if err := wire.ToError(res.GetError()); err != nil {
				return jobs, true, err
			}
			jobs = append(jobs, res.GetFetched().GetJobs()...)
			if res.GetFetched().GetDone() {
				return jobs, true, wire.ToError(res.GetFetched().GetError())
			}
		case <-c.life.Done():
			return jobs, false, c.broken()
		case <-ctx.Done():
			return jobs, false, ctx.Err()
		}
	}
}

// receive passes responses to the calls that they are for, until the stream ends.
func (c *conn) receive() {
	for {
		res, err := c.bidi.Receive()
		if err != nil {
			c.end(reasonOf(err))
			return
		}
		if res.GetDraining() {
			c.drain()
		}
		c.mu.Lock()
		k := c.calls[res.GetRequestId()]
		c.mu.Unlock()
		if k == nil {
			continue // a call that was given up
		}
		select {
		case k.responses <- res:
		case <-c.life.Done():
			c.end(context.Cause(c.life))
			return
		}
	}
}

// drain lets no more calls begin.
func (c *conn) drain() {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	c.forget(0)
}

// reasonOf returns the error of the API that a stream ended with, or err.
func reasonOf(err error) error {
	var coded *connect.Error
	if !errors.As(err, &coded) {
		return err
	}
	for _, d := range coded.Details() {
		value, err := d.Value()
		detail, isError := value.(*workerv1.Error)
		if err == nil && isError {
			return wire.ToError(detail)
		}
	}
	return coded
}
