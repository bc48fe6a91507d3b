package jobs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
	workerv1 "github.com/codesous/sous/api/worker/v1"
	"github.com/codesous/sous/api/worker/wire"
	"github.com/codesous/sous/controlplane/rest"
)

// bidiStream is the server's side of a stream.
type bidiStream = connect.BidiStream[workerv1.LifecycleRequest, workerv1.LifecycleResponse]

// inspection is how often a stream is examined: its key, and a frame that does not arrive.
const inspection = time.Second

// session is one stream of a worker. Its goroutines are serve, receive, one for each frame that is
// handled, and one for each fetch that waits. A worker that does not read holds all of them up in
// send, until the deadline of a write ends the stream.
type session struct {
	*streams
	worker
	ctx    context.Context //nolint:containedctx // of the stream, which this is
	cancel context.CancelCauseFunc
	duplex *rest.Duplex
	stream *bidiStream
	rate   *rate.Limiter
	slots  chan struct{}  // has a token for each frame that is handled
	work   sync.WaitGroup // frames and fetches

	sending sync.Mutex // of stream.Send and failed
	failed  int        // answers in a row that blame the worker

	mu      sync.Mutex // of the rest
	calls   map[uint64]*call
	fetches int   // calls with a fetch
	closing bool  // no fetch waits any more
	refusal error // of the key, at the last look
}

// call is a frame in progress, and its fetch.
type call struct {
	frame *workerv1.LifecycleRequest
	held  int64 // bytes of the budget
	// until ends with the wait of the frame's fetch, when it is cancelled and with the stream. It is nil
	// without a fetch.
	until context.Context //nolint:containedctx // of the fetch
	stop  context.CancelFunc
}

// The causes with which a session ends.
var (
	errTooManyErrors = api.Errorf(api.CodeCapacityLimit, "too many frames in a row were refused: the stream is closed")
	errDrained       = api.Errorf(api.CodeShuttingDown, "the server shuts down: connect again")
	errPanicked      = errors.New("a goroutine of the stream panicked")
	errUnsent        = errors.New("a response could not be sent")
)

func newSession(ctx context.Context, s *streams, who worker, d *rest.Duplex, stream *bidiStream) *session {
	x := &session{
		streams: s, worker: who, duplex: d, stream: stream, rate: rate.NewLimiter(rate.Limit(s.cfg.FrameRate), s.cfg.FrameRate),
		slots: make(chan struct{}, streamFrames), calls: map[uint64]*call{},
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

// serve handles frames, beginning with the first, until the stream ends. It returns when no frame and
// no fetch is in progress, with the reason for the metrics.
func (x *session) serve(first *workerv1.LifecycleRequest) (reason string, err error) {
	frames := make(chan received)
	go x.guard(func() { x.receive(frames) })
	drained := rest.Drained(x.ctx)
	var grace <-chan time.Time
	inspect := time.NewTicker(inspection)
	defer inspect.Stop()
	defer func() {
		x.endFetches()
		x.work.Wait()
		x.cancel(nil)
	}()
	x.begin(received{frame: first, bytes: x.duplex.Message()})
	for {
		select {
		case r, open := <-frames:
			if !open || r.err != nil {
				return closedClient, endOfFrames(r.err)
			}
			x.begin(r)
		case <-drained:
			drained, grace = nil, time.After(drainGrace)
			x.endFetches()
			_ = x.send(&workerv1.LifecycleResponse{Draining: true}) // an error ends the stream
		case <-grace:
			return closedDrain, errDrained
		case <-inspect.C:
			x.inspect()
		case <-x.ctx.Done():
			return ended(context.Cause(x.ctx))
		}
	}
}

// endOfFrames returns the error with which a stream ends that could not be read, nil if the worker ended
// it or its connection broke.
func endOfFrames(err error) error {
	var coded *api.Error
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &coded):
		return coded
	case connect.CodeOf(err) == connect.CodeInvalidArgument:
		return api.Errorf(api.CodeInvalid, "a frame is not a LifecycleRequest")
	}
	return nil
}

// ended returns how a stream ends by a cause of its own.
func ended(cause error) (reason string, err error) {
	var coded *api.Error
	switch {
	case errors.Is(cause, errTooManyErrors):
		return closedErrors, errTooManyErrors
	case errors.Is(cause, errPanicked):
		return closedErrors, errPanicked
	case errors.As(cause, &coded):
		return closedRefused, coded
	}
	return closedClient, nil
}

// guard calls f. If it panics, the stream ends, instead of the process.
func (x *session) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			x.api.log.Error("panic", zap.String("request_id", rest.RequestID(x.ctx)), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			x.cancel(errPanicked)
		}
	}()
	f()
}

// inspect ends the stream if its key was revoked or has expired, or if a frame stays unfinished. While
// the store does not answer, the frames are refused.
func (x *session) inspect() {
	if err := x.duplex.Stalled(); err != nil {
		x.cancel(err)
	}
	err := rest.Recheck(x.ctx)
	if api.ErrorCode(err) == api.CodeAuthnInvalid {
		x.cancel(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refusal = err
}

// received is a frame of so many bytes, or the error with which no further one arrives.
type received struct {
	frame *workerv1.LifecycleRequest
	bytes int64
	err   error
}

// receive reads frames, at the rate of the stream.
func (x *session) receive(to chan<- received) {
	defer close(to)
	for {
		frame, err := x.stream.Receive()
		r := received{frame, x.duplex.Message(), err}
		if err == nil {
			err = x.pace()
		}
		select {
		case to <- r:
		case <-x.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// pace waits until the stream may have a further frame.
func (x *session) pace() error {
	wait := x.rate.Reserve().Delay()
	if wait == 0 {
		return nil
	}
	x.m.frames.WithLabelValues(framePaced).Inc()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.ctx.Done():
		return x.ctx.Err()
	}
}

// begin handles a frame in a goroutine, once the stream has a slot. A frame that cannot be handled is
// refused. Frames are registered in the order of their arrival, so that one can cancel the fetch of an
// earlier one.
func (x *session) begin(r received) {
	select {
	case x.slots <- struct{}{}:
	case <-x.ctx.Done():
		return
	}
	c, err := x.register(r)
	overloaded := false
	if err == nil {
		select {
		case x.frames <- struct{}{}:
		default:
			x.forget(c)
			overloaded, err = true, busy()
		}
	}
	x.work.Go(func() {
		defer func() { <-x.slots }()
		if err != nil {
			x.duplex.Return(r.bytes)
			x.guard(func() { x.refuse(r.frame.GetRequestId(), err, overloaded) })
			return
		}
		defer func() { <-x.frames }()
		defer func() { x.duplex.Return(c.held) }()
		x.guard(func() { x.handle(c) })
	})
}

// refuse answers a frame of which no part is carried out.
func (x *session) refuse(id uint64, err error, overloaded bool) {
	outcome := frameError
	if overloaded {
		outcome = frameOverloaded
	}
	x.m.frames.WithLabelValues(outcome).Inc()
	_ = x.send(&workerv1.LifecycleResponse{RequestId: id, Error: wire.FromError(rest.Refusal(x.ctx, err))}) // an error ends the stream
}

// register adds a frame to those in progress, and cancels the fetches that it names. Errors:
// CodeInvalid, CodeCapacityLimit, CodeOverloaded.
func (x *session) register(r received) (*call, error) {
	c := &call{frame: r.frame, held: r.bytes}
	elements, err := examine(r.frame)
	if err != nil {
		return nil, err
	}
	if hello := r.frame.GetHello(); hello != nil && (hello.GetWorkerId() != x.id || hello.GetNamespace() != x.namespace) {
		return nil, api.InvalidField("hello", "only the first frame may introduce the worker")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refusal != nil {
		return nil, x.refusal
	}
	if _, taken := x.calls[r.frame.GetRequestId()]; taken {
		return nil, api.InvalidField("request_id", "is that of a frame or of a fetch in progress")
	}
	if r.frame.GetFetch() != nil && x.fetches >= streamFetches {
		return nil, api.Errorf(api.CodeCapacityLimit, "limit of %d fetches of a stream exceeded", streamFetches)
	}
	if err := x.duplex.Hold(elements * elementBytes); err != nil {
		return nil, err
	}
	c.held += elements * elementBytes
	for _, id := range r.frame.GetCancelFetches() {
		if earlier := x.calls[id]; earlier != nil && earlier.stop != nil {
			earlier.stop()
		}
	}
	if f := r.frame.GetFetch(); f != nil {
		c.until, c.stop = waitOf(x.ctx, f)
		x.fetches++
		if x.closing {
			c.stop()
		}
	}
	x.calls[r.frame.GetRequestId()] = c
	return c, nil
}

// forget removes a frame whose last response is about to be sent: the worker may use its id again.
func (x *session) forget(c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.calls[c.frame.GetRequestId()] != c {
		return
	}
	delete(x.calls, c.frame.GetRequestId())
	if c.stop != nil {
		c.stop()
		x.fetches--
	}
}

// endFetches ends the waits of all fetches, and of those to come.
func (x *session) endFetches() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closing = true
	for _, c := range x.calls {
		if c.stop != nil {
			c.stop()
		}
	}
}

// send sends a response. After too many in a row that blame the worker, and after one that could not be
// sent, the stream ends. Errors: errUnsent; for a response with jobs also CodeCapacityLimit and
// CodeOverloaded, if there is no room for it.
func (x *session) send(res *workerv1.LifecycleResponse) error {
	// What waits to be sent counts, too.
	size := int64(proto.Size(res))
	err := x.duplex.Hold(size)
	if err != nil && len(res.GetFetched().GetJobs()) > 0 {
		return err
	}
	if err == nil {
		defer x.duplex.Return(size)
	}
	x.sending.Lock()
	defer x.sending.Unlock()
	if x.ctx.Err() != nil {
		return errUnsent
	}
	err = x.stream.Send(res)
	if err != nil || x.duplex.Flushed() != nil || x.ctx.Err() != nil {
		x.cancel(errUnsent)
		return errUnsent
	}
	if !blames(res) {
		x.failed = 0
		return nil
	}
	x.failed++
	if x.failed >= x.cfg.Errors {
		x.cancel(errTooManyErrors)
	}
	return nil
}

// refusals returns the errors of a response: that of its frame, or those of its parts.
func refusals(res *workerv1.LifecycleResponse) []*workerv1.Error {
	all := []*workerv1.Error{
		res.GetError(), res.GetFetched().GetError(), res.GetAcked().GetError(), res.GetFailed().GetError(), res.GetExtended().GetError(),
	}
	for _, e := range res.GetEnqueued() {
		all = append(all, e.GetError())
	}
	return slices.DeleteFunc(all, func(e *workerv1.Error) bool { return e == nil })
}

// blames reports whether a response refuses something for a reason that the worker can change. To close
// the streams of an overloaded replica would add to its load.
func blames(res *workerv1.LifecycleResponse) bool {
	return slices.ContainsFunc(refusals(res), func(e *workerv1.Error) bool {
		return httpstatus.Of(api.Code(e.GetCode())) < http.StatusInternalServerError
	})
}
