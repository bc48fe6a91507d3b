package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/received"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"go.uber.org/zap"
)

// killGrace is how long after its deadline a child may take to interrupt itself and to
// answer. Then it is killed.
const killGrace = 100 * time.Millisecond

// keptFrameBytes bounds the buffer that a warm sandbox keeps for its next frame.
const keptFrameBytes = 64 << 10

// Call is one activation.
type Call struct {
	Head     wire.InvokeHead // Run sets its DeadlineMS from Deadline
	Event    []byte          // JSON
	Deadline time.Time
	// Host performs the function's side effects; nil refuses all of them. It is
	// called from several goroutines at once.
	Host HostFunc
	// Log receives the log records in order, up to api.MaxLogBytes of text; a
	// record's Text is the callee's to keep. nil drops them.
	Log func(wire.LogRecord)
	// Early lets Run return the handler's answer before the activation has ended.
	Early bool
	// Stream lets Run return an answer that the function streams. It requires Early.
	Stream bool
	// CPULimit is the processor time that the activation may use, 0 for no limit but Deadline.
	CPULimit time.Duration
	// Messages is the number of jobs that the activation handles on behalf of a queue trigger,
	// 0 for none. Their verdicts are then in Result.Verdicts, and do not change the Status.
	Messages int
}

// Result is the end of an activation. Value is nil unless Status is success and the handler
// returned something; Error is nil if Status is success or cancelled. CPU is processor time
// since the end of the activation before, so it includes the scope that was built ahead for
// this one. MemoryPeakBytes is the child's figure, at most its limit; for a child that died
// it is the resident size of the whole process.
type Result struct {
	Status          api.Status
	Value           json.RawMessage
	Error           *api.ActivationError
	CPU             time.Duration
	MemoryPeakBytes int64
	LogsTruncated   bool
	// RetryAfterMS is the delay that a handler asked for with the retry of its job. It is nil
	// unless Status is error or timeout.
	RetryAfterMS *int64
	// NoRetry is set if a handler asked that no attempt follows a failure of this one.
	NoRetry bool
	// Verdicts has what the handler decided about each of the Call's Messages.
	Verdicts []api.MessageVerdict
	// Rest, if not nil, waits for the end of the activation and returns its result: this
	// one is only the handler's answer, Status and Value. It must be called, once, and the
	// sandbox is in use until it returns. Only a Call with Early has it.
	Rest func() Result `json:"-"`
	// Stream is the answer that Rest still produces, nil for one that is whole.
	Stream *Stream `json:"-"`
	// StreamBytes is the size of the body that was streamed, and FirstByte the time from
	// the beginning of the run to its first chunk.
	StreamBytes int64
	FirstByte   time.Duration
}

// run is the state of one Run. Only the goroutine of Run, and then that of Rest, uses the
// fields that are not guarded.
type run struct {
	*Sandbox
	ctx      context.Context // Run's own
	call     *Call
	host     *hostCalls // made at the first host call
	logBytes int
	logsCut  bool
	received received.Count
	cpu      *cpuWatch   // nil if the activation cannot reach its limit
	answered bool        // the child sent an Answer
	early    *Result     // the answer, for the caller of Run
	unlink   func() bool // ends the effect of ctx; false if it has ended
	began    time.Time
	stream   *Stream // nil without one
	decided  verdicts

	listening atomic.Bool                // the script wants to know when ctx ends
	settled   atomic.Bool                // the activation has ended: late must not kill the child
	late      atomic.Pointer[time.Timer] // kills the child after abortGrace
	signals   sync.Mutex                 // guards the fields below
	over      bool                       // the activation has ended
	broken    bool                       // a frame was written in part
}

// Run has the child handle one event. It always returns a result: errors of the child are
// those of the activation. When ctx ends the child is killed and the Status is cancelled,
// or timeout if it was ctx's deadline. An activation with a deadline in the past does not
// reach the child.
//
//	Done in time                          as the child reports it
//	deadline + killGrace without a Done   timeout; the child is killed
//	an Answer, where call.Early is set    the answer; Result.Rest waits for the end
//	the child dies                        MemoryLimit, Exception (stack) or SandboxCrash
//	more processor time than CPULimit     CPULimit; the child is killed
//	a frame that must not come            SandboxCrash; the child is killed
//	more bytes than it may send           SandboxCrash; the child is killed
//
// In all cases but the first the sandbox is spent, and Release ends it.
func (s *Sandbox) Run(ctx context.Context, call Call) Result {
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx)
	case !time.Now().Before(call.Deadline):
		return timedOut()
	}
	r := &run{Sandbox: s, ctx: ctx, call: &call, began: time.Now()}
	// The watchdog: reads and writes fail once the child is late. The only failure
	// is a closed socket, and then they fail as well.
	_ = s.child.conn.SetDeadline(call.Deadline.Add(killGrace))
	r.unlink = context.AfterFunc(ctx, r.left)
	r.cpu = watchCPU(s.child, call.CPULimit, time.Until(call.Deadline))
	err := r.send()
	if err != nil {
		return r.end(r.failed(err))
	}
	result := r.handle()
	if r.early != nil {
		answer := *r.early
		r.early = nil
		answer.Rest = func() Result { return r.end(r.handle()) }
		return answer
	}
	return r.end(result)
}

// end frees what the activation held beside its child.
func (r *run) end(result Result) Result {
	if r.cpu.end() {
		r.spent = true // the child is being killed, although it has just ended in order
	}
	result = r.settle(result)
	if r.host != nil && !r.host.end() {
		r.spent = true
	}
	result = r.judged(result)
	result.LogsTruncated = result.LogsTruncated || r.logsCut
	return result
}

// handle reads frames until the activation has ended, or until r.early is set. Frames are
// handled one after another; a host call only waits here for room (hostCalls.start).
func (r *run) handle() Result {
	for {
		kind, payload, err := r.child.frames.Next()
		if err == nil {
			err = r.received.Add(kind, len(payload))
		}
		if err != nil {
			return r.failed(err)
		}
		switch kind {
		case wire.KindDone:
			var done wire.Done
			done, err = wire.ParseDone(payload)
			if err == nil {
				return r.done(done)
			}
		case wire.KindAnswer:
			err = r.answer(payload)
			if err == nil {
				return Result{}
			}
		case wire.KindStream:
			err = r.begin(payload)
			if err == nil {
				return Result{}
			}
		case wire.KindChunk, wire.KindStreamEnd:
			err = r.chunk(kind, payload)
		case wire.KindAbort:
			r.listening.Store(true)
		case wire.KindHostCall:
			err = r.hostCall(payload)
		case wire.KindAbandon:
			err = r.abandon(payload)
		case wire.KindVerdict:
			err = r.verdict(payload)
		case wire.KindLog:
			if !r.logsCut {
				err = wire.ParseLog(payload, r.log)
			}
		default:
			err = wire.ErrFrame
		}
		if err != nil {
			return r.failed(err)
		}
	}
}

// answer keeps the handler's answer, which comes once and only if it was asked for.
func (r *run) answer(payload []byte) error {
	if !r.call.Early || r.answered {
		return wire.ErrFrame
	}
	r.answered = true
	done, err := wire.ParseDone(payload)
	if err != nil {
		return err
	}
	result, err := outcome(done)
	if err != nil {
		return err
	}
	if result.Status != api.StatusSuccess {
		return wire.ErrFrame // the child knows the limit of a result
	}
	r.early = &result
	return nil
}

// send writes the Invoke frame. Its buffer is kept for the next activation unless it grew
// large.
func (r *run) send() error {
	r.call.Head.DeadlineMS = r.call.Deadline.UnixMilli()
	if r.call.Early {
		r.call.Head.Flags |= wire.FlagEarly
	}
	if r.call.Stream {
		r.call.Head.Flags |= wire.FlagStream
	}
	frame, err := wire.AppendInvoke(r.frame[:0], &r.call.Head, r.call.Event)
	if err != nil {
		return err
	}
	if cap(frame) <= keptFrameBytes {
		r.frame = frame
	}
	_, err = r.child.socket.Write(frame)
	return err
}

// log passes a record on until api.MaxLogBytes are reached. The child has the same budget;
// this one holds for a child that does not keep to it.
func (r *run) log(record wire.LogRecord) {
	r.logBytes += len(record.Text) + wire.LogRecordOverhead
	r.logsCut = r.logsCut || r.logBytes > api.MaxLogBytes
	if r.logsCut { // once cut, nothing later may slip in
		return
	}
	if r.call.Log != nil {
		r.call.Log(record)
	}
}

// ids returns the fields that name the activation in a log line.
func (r *run) ids() []zap.Field {
	return append(r.Sandbox.ids(), zap.String("activation_id", r.call.Head.ActivationID), zap.String("request_id", r.call.Head.RequestID))
}

// hostCall starts the host call of a frame. The first one of an activation makes the state
// for all of them, which most activations do not need.
func (r *run) hostCall(payload []byte) error {
	call, err := wire.ParseHostCall(payload)
	if err != nil {
		return err
	}
	if r.host == nil {
		if !r.pool.begin() {
			return errClosed()
		}
		r.host = newHostCalls(r.ctx, r.child, r.call, r.pool.log, r.ids, r.pool.tasks.Done)
	}
	return r.host.start(call, len(payload))
}

// abandon stops the host call of a frame.
func (r *run) abandon(payload []byte) error {
	id, err := wire.ParseAbandon(payload)
	if err != nil {
		return err
	}
	if r.host == nil {
		return wire.ErrFrame // there was no call
	}
	r.host.abandon(id)
	return nil
}

// failed ends an activation without a Done frame: the child is late, dead, or broke the
// protocol.
//
// It waits for the child's death, so that its exit status and stderr can explain the
// failure.
func (r *run) failed(cause error) Result {
	r.spent = true
	switch {
	case isTimeout(cause):
		r.child.killFor(endTimeout)
	case isEOF(cause):
		r.child.kill() // how it ended says why
	case errors.Is(cause, received.ErrFlood):
		r.child.killFor(endFlood)
	default:
		r.child.killFor(endProtocol)
	}
	<-r.child.gone
	cpu, peak := r.child.exit.usage()
	result := r.classify(cause)
	result.CPU = max(cpu-r.billed, 0)
	result.MemoryPeakBytes = peak
	return result
}

// classify returns the result of an activation without a Done, whose child has been reaped.
// The end of ctx and the deadline come first, because they are why the child was killed.
func (r *run) classify(cause error) Result {
	exit := r.child.exit
	switch {
	case r.ctx.Err() != nil:
		return interrupted(r.ctx)
	case exit.why == endCPU:
		return r.cpu.exceeded()
	case isTimeout(cause):
		return timedOut()
	case isEOF(cause) && exit.outOfMemory():
		return failure(api.ErrMemoryLimit, "the function used more memory than its limit")
	case isEOF(cause) && exit.stackOverflow():
		return failure(api.ErrException, "RangeError: Maximum call stack size exceeded")
	}
	reason := "the sandbox ended: " + exit.reason()
	switch {
	case errors.Is(cause, received.ErrFlood):
		reason = "the sandbox was ended: " + cause.Error()
	case !isEOF(cause):
		reason = "the sandbox broke its protocol"
	}
	r.pool.crashed()
	r.pool.log.Warn("sandbox crash", append(r.ids(), zap.String("exit", exit.reason()),
		zap.String("stderr", exit.stderr), zap.Error(cause))...)
	return failure(api.ErrSandboxCrash, reason)
}

// interrupted returns the result of an activation whose ctx has ended.
func interrupted(ctx context.Context) Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return timedOut()
	}
	return Result{Status: api.StatusCancelled}
}

// isEOF reports whether the child's end of the socket was closed.
func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isDisconnect(err)
}

// isTimeout reports whether a deadline of the connection has passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
