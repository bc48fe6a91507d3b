package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Options are what differs between a confined process and a test.
type Options struct {
	// Layers are the confinement layers that Hello reports.
	Layers []string
	// MappedBytes measures the address space, once; nil reports 0.
	MappedBytes func() int64
	// WatchMemory holds scripts to their memory limit. The watch counts the
	// whole process, so it is off where other work shares it.
	WatchMemory bool
	// OnHangup is called by the reader at the peer's end; nil interrupts the
	// running activation and lets Serve return.
	OnHangup func()
}

// queuedFrames is more than there can be: an Invoke and a reply for each call in
// flight. The reader must never wait for the goroutine that runs scripts: that
// one may be writing calls, which the parent reads only as replies are taken.
const queuedFrames = wire.MaxCallsInFlight + 8

// errProtocol is a frame that must not come at that point.
var errProtocol = errors.New("child: frame out of place")

// Serve speaks the child's side of the protocol on conn until the peer hangs up
// (nil), ctx ends, or the peer breaks the protocol. It closes conn.
//
// In this order: Hello, then the one assignment, then activations until the end. nil is
// also returned after a refused or a checked assignment, which leave nothing to serve.
func Serve(ctx context.Context, conn net.Conn, opts Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // unblocks the reader; nothing is left to lose
	s := &server{
		opts:   opts,
		link:   &link{w: conn},
		frames: make(chan frame, queuedFrames),
		done:   ctx.Done(),
	}
	go s.read(wire.NewReader(conn))
	err := s.serve()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// server is one child: its link, its program and the realm built ahead. The goroutine of
// serve owns all fields but frames, hangup and current, which it shares with the reader.
type server struct {
	opts    Options
	link    *link
	frames  chan frame
	done    <-chan struct{}
	hangup  error                   // why frames was closed; set before
	current atomic.Pointer[control] // of the running activation
	program *program
	next    *realm // built ahead; nil if there is none
	memory  *memoryWatch
	// cpuBefore is the process's processor time at the last Done, or at Ready.
	cpuBefore time.Duration
	calls     uint32 // ids of host calls, never used twice in a child's life
}

// frame is a frame that the reader has read. An Invoke carries the control of its
// activation, which the reader makes so that a hangup right after it can stop it.
type frame struct {
	kind    wire.Kind
	payload []byte
	control *control
}

// read passes frames to the loop. It also notices the peer's end while a script
// has the main goroutine.
//
// It makes the control of an activation before it passes the Invoke frame on. A hangup
// behind the frame then finds the control, even if the loop has not taken the frame yet.
func (s *server) read(r *wire.Reader) {
	defer close(s.frames)
	for {
		kind, payload, err := r.Next()
		if err != nil {
			s.hangup = err
			if s.opts.OnHangup != nil {
				s.opts.OnHangup()
			}
			s.stop(causeHangup)
			return
		}
		f := frame{kind: kind, payload: payload}
		if kind == wire.KindInvoke {
			f.control = newControl()
			s.current.Store(f.control)
		}
		select {
		case s.frames <- f:
		case <-s.done:
			return
		}
	}
}

// stop ends the running activation, if there is one. It may be called from any goroutine.
func (s *server) stop(c cause) {
	if ctl := s.current.Load(); ctl != nil {
		ctl.stop(c)
	}
}

// serve greets, takes the assignment, and runs activations until an error, which may be the
// end of the socket (io.EOF). Between activations it builds the realm of the next one.
func (s *server) serve() error {
	if err := s.link.message(wire.KindHello, wire.Hello{Layers: s.opts.Layers}, nil); err != nil {
		return err
	}
	more, err := s.assign()
	if err != nil || !more {
		return err
	}
	for {
		s.buildAhead()
		f, err := s.receive()
		if err != nil {
			return err
		}
		switch f.kind {
		case wire.KindInvoke:
			if err := s.invoke(f); err != nil {
				return err
			}
		case wire.KindHostReply: // of a call that its activation did not wait for
		case wire.KindCredit, wire.KindAbort: // of an answer that has ended
		default:
			return fmt.Errorf("%w: kind %d", errProtocol, f.kind)
		}
	}
}

// receive waits for the next frame. After a heavy activation it returns memory to the
// kernel if none comes within idleBeforeRelease.
func (s *server) receive() (frame, error) {
	if s.memory.heavy() {
		select {
		case f, ok := <-s.frames:
			return s.received(f, ok)
		case <-time.After(idleBeforeRelease):
			s.memory.release()
		}
	}
	f, ok := <-s.frames
	return s.received(f, ok)
}

// received returns f, or the reason why the reader has ended.
func (s *server) received(f frame, ok bool) (frame, error) {
	if !ok {
		return frame{}, s.hangup
	}
	return f, nil
}

// assign takes the one program that this child serves, and answers Ready or Refused. more
// is false if there is nothing to serve: the source was refused or only to be checked. The
// figures in Ready are measured after a collection, when the program is compiled and no
// activation has run: they are the base of the memory limits on both sides.
func (s *server) assign() (more bool, err error) {
	f, err := s.receive()
	if err != nil {
		return false, err
	}
	if f.kind != wire.KindAssign {
		return false, fmt.Errorf("%w: kind %d before Assign", errProtocol, f.kind)
	}
	var head wire.Assign
	blob, err := wire.ParseMessage(f.payload, &head)
	if err != nil {
		return false, err
	}
	if s.opts.WatchMemory {
		collectForLoad()
	}
	program, script, problems := load(head, blob)
	if len(problems) > 0 {
		return false, s.link.message(wire.KindRefused, wire.Refused{Problems: problems}, nil)
	}
	if head.CheckOnly {
		return false, s.link.message(wire.KindReady, wire.Ready{}, script)
	}
	s.program = program
	runtime.GC()
	s.cpuBefore = cpuTime()
	ready := wire.Ready{LiveBytes: gauge(metricLive)}
	if s.opts.MappedBytes != nil {
		ready.MappedBytes = s.opts.MappedBytes()
	}
	if s.opts.WatchMemory {
		s.memory = newMemoryWatch(ready.LiveBytes, head.MemoryMB, &program.growing, func() { s.stop(causeMemory) })
		s.memory.start()
		collectForRuns()
	}
	return true, s.link.message(wire.KindReady, ready, script)
}
