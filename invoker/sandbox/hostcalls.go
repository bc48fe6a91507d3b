package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// HostFunc performs the host call name with the arguments head (JSON) and blob. It is
// called from several goroutines at once. An error's api code and message reach the
// function; any other error is logged, and the function sees CodeInternal. ctx ends with
// the activation. An empty replyHead stands for {}.
type HostFunc func(ctx context.Context, name string, head, blob []byte) (replyHead, replyBlob []byte, err error)

// HostError is an error of a HostFunc with further members for the function beside code and
// message. Members must be a JSON object. The child copies them to the Error that rejects
// the promise.
type HostError struct {
	Refusal *api.Error
	Members json.RawMessage
}

func (e *HostError) Error() string { return e.Refusal.Error() }

// Unwrap returns the refusal.
func (e *HostError) Unwrap() error { return e.Refusal }

// Bounds of the host calls in flight of one activation. At a bound the child's next frame is
// not read until a call has ended.
//
// 64 calls with small arguments are in flight together, or about eight of 1 MiB, or one of
// any size. These bounds are the parent's; the child's own, wire.MaxCallsInFlight, is larger,
// and the calls between the two wait in the socket.
const (
	maxHostCalls     = 64
	maxHostCallBytes = wire.MaxActivationFrame
	maxReplyBytes    = 2 * api.MaxResultBytes // of replies that reserved their room
)

// hostCallKey is where the ctx of a host call carries its hostCall.
type hostCallKey struct{}

// hostCall is a call in flight.
type hostCall struct {
	calls *hostCalls
	held  int64 // bytes that ReserveReply has reserved for the reply

	// Guarded by the mutex of calls.
	abandoned bool
	stop      func() // of OnAbandon; nil without one
}

// ReserveReply waits until the activation whose host call has ctx has room for a
// reply of n bytes, at most twice api.MaxResultBytes. The room is freed when the child has
// read the reply. A busy child does not read: without a bound, the replies to many calls
// would fill this process. A call that may have a large reply reserves room once, before it
// holds the bytes. Errors: ctx's.
func ReserveReply(ctx context.Context, n int64) error {
	c, ok := ctx.Value(hostCallKey{}).(*hostCall)
	if !ok {
		return nil // not under a sandbox
	}
	if err := c.calls.replies.Acquire(ctx, n); err != nil {
		return err
	}
	c.held += n
	return nil
}

// OnAbandon has f called once if the script abandons the host call that has ctx before the
// call has ended. f may be called before OnAbandon returns, and must not block.
func OnAbandon(ctx context.Context, f func()) {
	c, ok := ctx.Value(hostCallKey{}).(*hostCall)
	if !ok {
		return // not under a sandbox
	}
	c.calls.mu.Lock()
	abandoned := c.abandoned
	c.stop = f
	c.calls.mu.Unlock()
	if abandoned {
		f()
	}
}

// hostCalls are the host calls of one activation: each in a goroutine, replies written as
// they come, and nothing written once the activation has ended. A reply that was written in
// part leaves the stream unusable: the child is not used again (see end).
//
//	start    the reading goroutine waits for room: frames behind this call wait too
//	perform  a goroutine of the call runs the HostFunc
//	answer   writes the reply, one goroutine at a time
//	done     makes room, and wakes start
//
// Replies may come in another order than the calls. A HostFunc that outlives its activation
// is waited for by Pool.Close, not by Run.
type hostCalls struct {
	child  *process
	call   *Call
	log    *zap.Logger
	ids    func() []zap.Field // the activation's, for the log
	ctx    context.Context    // the activation's life
	cancel context.CancelFunc

	slots sync.WaitGroup // goroutines at work
	mu    sync.Mutex
	calls map[uint32]*hostCall // in flight, by the id of their frame
	count int                  // calls in flight
	bytes int                  // of their frames
	room  chan struct{}        // holds a token when a call has ended

	replies *semaphore.Weighted // bytes that ReserveReply hands out

	writing sync.Mutex
	ended   bool // guarded by writing, as is broken
	broken  bool // a reply was written in part
	frame   []byte

	// release is called when the last goroutine has returned.
	release func()
}

// newHostCalls returns the host calls of call, which child runs. ctx is the activation's;
// the ctx of the calls ends killGrace after the deadline at the latest. The caller must
// call end.
func newHostCalls(ctx context.Context, child *process, call *Call, log *zap.Logger, ids func() []zap.Field, release func()) *hostCalls {
	h := &hostCalls{child: child, call: call, log: log, ids: ids, room: make(chan struct{}, 1), release: release}
	h.calls = map[uint32]*hostCall{}
	h.replies = semaphore.NewWeighted(maxReplyBytes)
	h.ctx, h.cancel = context.WithDeadline(ctx, call.Deadline.Add(killGrace))
	return h
}

// start performs c concurrently, once there is room for it. size is its memory in bytes.
// Only the goroutine that reads the child's frames calls it. Errors, which end the
// activation: os.ErrDeadlineExceeded if ctx ends while it waits, io.ErrUnexpectedEOF if the
// child dies.
func (h *hostCalls) start(c wire.HostCall, size int) error {
	for !h.admit(size) {
		select {
		case <-h.room:
		case <-h.ctx.Done():
			return fmt.Errorf("%w: waiting for host calls", os.ErrDeadlineExceeded)
		case <-h.child.gone:
			return fmt.Errorf("%w: waiting for host calls", io.ErrUnexpectedEOF)
		}
	}
	state := &hostCall{calls: h}
	h.mu.Lock()
	h.calls[c.ID] = state
	h.mu.Unlock()
	h.slots.Go(func() {
		reply := h.perform(context.WithValue(h.ctx, hostCallKey{}, state), c)
		h.mu.Lock()
		delete(h.calls, c.ID) // from here on, nothing is left to stop
		h.mu.Unlock()
		h.answer(reply)
		h.replies.Release(state.held)
		h.done(size)
	})
	return nil
}

// abandon stops a call whose reply the script does not wait for any more. One that has ended
// is no error.
func (h *hostCalls) abandon(id uint32) {
	h.mu.Lock()
	var stop func()
	if c := h.calls[id]; c != nil && !c.abandoned {
		c.abandoned, stop = true, c.stop
	}
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// admit counts a call if there is room for it. The first call is admitted whatever its
// size.
func (h *hostCalls) admit(size int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count > 0 && (h.count >= maxHostCalls || h.bytes+size > maxHostCallBytes) {
		return false
	}
	h.count++
	h.bytes += size
	return true
}

// done ends what admit began.
func (h *hostCalls) done(size int) {
	h.mu.Lock()
	h.count--
	h.bytes -= size
	h.mu.Unlock()
	select {
	case h.room <- struct{}{}:
	default:
	}
}

// perform calls the host function. Its panic fails the call, not the server.
func (h *hostCalls) perform(ctx context.Context, c wire.HostCall) (reply wire.HostReply) {
	reply.ID = c.ID
	defer func() {
		if r := recover(); r != nil {
			reply = h.refuse(c, fmt.Errorf("panic: %v", r))
			h.log.Error("host call panicked", append(h.ids(), zap.String("call", c.Name), zap.Any("panic", r), zap.Stack("stack"))...)
		}
	}()
	if h.call.Host == nil {
		return h.refuse(c, api.Errorf(api.CodeRuntimeCapabilityDenied, "this function may not use %s", c.Name))
	}
	var err error
	reply.Head, reply.Blob, err = h.call.Host(ctx, c.Name, c.Head, c.Blob)
	if err != nil {
		return h.refuse(c, err)
	}
	if reply.Head == nil {
		reply.Head = []byte("{}")
	}
	reply.OK = true
	return reply
}

// refuse returns the reply to a call that failed. The text of an error that is no api.Error
// is logged and hidden from the function.
func (h *hostCalls) refuse(c wire.HostCall, err error) wire.HostReply {
	e := wire.HostError{Code: string(api.CodeInternal), Message: "the platform could not perform " + c.Name}
	var known *api.Error
	if errors.As(err, &known) {
		e = wire.HostError{Code: string(known.Code), Message: known.Message}
		var more *HostError
		if errors.As(err, &more) {
			e.Members = more.Members
		}
	} else if h.ctx.Err() == nil {
		h.log.Warn("host call failed", append(h.ids(), zap.String("call", c.Name), zap.Error(err))...)
	}
	return wire.HostReply{ID: c.ID, Head: encodeHostError(e)}
}

// answer writes a reply unless the activation has ended.
//
// Writing waits until the child reads. It fails at the deadline of the connection, which
// Run sets.
func (h *hostCalls) answer(reply wire.HostReply) {
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.ended || h.broken {
		return
	}
	frame, err := wire.AppendHostReply(h.frame[:0], reply)
	if err != nil {
		e := wire.HostError{Code: string(api.CodeInternal), Message: "the reply is too large"}
		// An error's frame is small: this cannot fail.
		frame, _ = wire.AppendHostReply(h.frame[:0], wire.HostReply{ID: reply.ID, Head: encodeHostError(e)})
	}
	if cap(frame) <= keptFrameBytes {
		h.frame = frame
	}
	if _, err := h.child.socket.Write(frame); err != nil {
		h.broken = true // the child is dead or late; the run's reads find out which
	}
}

// end stops the running calls and drops their replies. It reports whether
// the stream to the child is whole.
//
// It does not wait for calls that ignore their ctx. The order matters: ended is set before
// the ctx ends, so that no reply of a call that was stopped reaches the child's next
// activation.
func (h *hostCalls) end() (whole bool) {
	// A reply that is being written gets a moment more, then fails.
	_ = h.child.conn.SetWriteDeadline(time.Now().Add(killGrace))
	h.writing.Lock()
	h.ended = true
	whole = !h.broken
	h.writing.Unlock()
	h.cancel()
	go func() {
		h.slots.Wait()
		h.release()
	}()
	return whole
}

// encodeHostError returns e as JSON. It cannot fail: Code and Message are strings, and
// Members is an object by contract.
func encodeHostError(e wire.HostError) []byte {
	head, _ := json.Marshal(e)
	return head
}
