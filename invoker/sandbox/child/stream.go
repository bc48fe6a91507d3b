package child

import (
	"bytes"
	"errors"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// maxWaitingWrites bounds the bytes of writes that wait for the client.
const maxWaitingWrites = api.MaxResultBytes

// outStream is the answer of an activation that goes out as it is produced. Where the caller
// takes no stream, its body is collected, under the limit of a result.
type outStream struct {
	act     *activation
	head    *response // status and headers
	collect bool
	body    []byte // collected
	credit  int    // bytes that may be sent now
	sent    int64
	waiting []waitingWrite
	size    int  // bytes of waiting
	closing bool // close was called: nothing more is written
	ended   bool
	left    goja.Value    // why nothing can be written any more; nil while it can
	cancel  goja.Callable // ends the stream that is pumped; nil without one
}

// waitingWrite is the part of a write for which there was no credit.
type waitingWrite struct {
	data []byte
	done *deferred
}

// openStream begins the answer, once in an activation.
func (a *activation) openStream(head *response) (*outStream, error) {
	if a.out != nil { // scripts ran while the head was read, and began one
		return nil, errors.New("the answer has begun already")
	}
	s := &outStream{act: a, head: head, credit: wire.StreamWindow, collect: a.head.Flags&wire.FlagStream == 0}
	if !s.collect {
		if len(head.headers.list) > network.MaxFetchHeaders {
			return nil, &refusedResult{api.ErrResultInvalid, "a streamed answer has at most 256 headers"}
		}
		wireHead := wire.StreamHead{Status: head.status, Headers: head.headers.list}
		if err := a.server.link.message(wire.KindStream, wireHead, nil); err != nil {
			return nil, err
		}
	}
	a.out = s
	return s, nil
}

// write sends bytes of the body. It returns nil if they were sent, and otherwise a promise
// that is resolved when they are. Exceptions: the reason why the caller left, a TypeError
// after the end, and a RangeError beyond a limit.
func (s *outStream) write(r *realm, data []byte) *deferred {
	switch {
	case !r.effect() || r.act != s.act || s.ended || s.closing:
		panic(r.vm.NewTypeError("the answer has ended"))
	case s.left != nil:
		panic(s.left)
	case s.collect:
		if len(s.body)+len(data) > api.MaxResultBytes {
			panic(r.newNamedError("RangeError", "the answer is more than 6 MiB, and the caller takes no stream"))
		}
		s.body = append(s.body, data...)
		return nil
	}
	// A write that is refused has sent nothing.
	if s.sent+int64(len(data)) > api.MaxStreamBytes {
		panic(r.newNamedError("RangeError", "the answer is more than "+api.SizeText(api.MaxStreamBytes)))
	}
	now := 0 // bytes that are sent immediately
	if len(s.waiting) == 0 {
		now = s.credit
	}
	if s.size+len(data)-now > maxWaitingWrites {
		panic(r.newNamedError("RangeError", "more than 6 MiB wait for the client; await the promises of write"))
	}
	s.sent += int64(len(data))
	if len(s.waiting) == 0 {
		data = s.push(r, data)
	}
	if len(data) == 0 {
		return nil
	}
	d := r.newDeferred()
	s.size += len(data)
	s.waiting = append(s.waiting, waitingWrite{bytes.Clone(data), d})
	return d
}

// push sends what the credit allows and returns the rest.
func (s *outStream) push(r *realm, data []byte) []byte {
	for len(data) > 0 && s.credit > 0 {
		n := min(len(data), s.credit, wire.MaxChunk)
		part := data[:n]
		if err := s.act.server.link.send(func(dst []byte) ([]byte, error) { return wire.AppendChunk(dst, part) }); err != nil {
			panic(r.newError(api.CodeInternal, "the host cannot be reached"))
		}
		s.credit -= n
		data = data[n:]
	}
	return data
}

// granted sends what waits, as far as the new credit allows.
func (s *outStream) granted(r *realm, n uint32) error {
	s.credit += int(min(n, wire.StreamWindow))
	for len(s.waiting) > 0 && s.credit > 0 && s.left == nil {
		w := &s.waiting[0]
		before := len(w.data)
		if err := r.try(func() { w.data = s.push(r, w.data) }); err != nil {
			return err
		}
		s.size -= before - len(w.data)
		if len(w.data) > 0 {
			break
		}
		done := w.done
		s.waiting = s.waiting[1:]
		if err := done.resolve(goja.Undefined()); err != nil {
			return err
		}
	}
	if s.closing && len(s.waiting) == 0 && s.left == nil {
		return s.complete()
	}
	return nil
}

// complete ends the body, of which everything is sent.
func (s *outStream) complete() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if s.collect {
		return nil
	}
	return s.act.server.link.send(func(dst []byte) ([]byte, error) { return wire.AppendSignal(dst, wire.KindStreamEnd) })
}

// abandon fails what waits, because the caller left.
func (s *outStream) abandon(r *realm, reason goja.Value) error {
	s.left = reason
	waiting := s.waiting
	s.waiting, s.size = nil, 0
	for _, w := range waiting {
		if err := w.done.reject(reason); err != nil {
			return err
		}
	}
	if s.cancel == nil {
		return nil
	}
	return r.run(func() {
		_, err := s.cancel(goja.Undefined(), reason)
		must(err)
	})
}

// blocked reports whether a write waits for the client: the loop is then not empty.
func (s *outStream) blocked() bool { return s != nil && len(s.waiting) > 0 }

// end waits until everything is sent, and completes the body.
func (s *outStream) end() error {
	if s.ended {
		return nil
	}
	for len(s.waiting) > 0 && s.left == nil {
		if s.act.ctl.cause() != causeNone {
			return errStopped
		}
		if err := s.act.turn(); err != nil {
			return err
		}
	}
	if s.left != nil {
		return &thrown{value: s.left}
	}
	return s.complete()
}

// result is the result of the activation: that of an endpoint, without a body that was
// streamed.
func (s *outStream) result(r *realm) (value goja.Value, err error) {
	err = r.try(func() {
		head := *s.head
		head.body = &body{null: !s.collect}
		value = head.object(r, s.body)
	})
	return value, err
}

// streamed sends the body of a returned Response as it is produced, and returns the result
// that the record keeps.
func (a *activation) streamed(p *response) (goja.Value, error) {
	r := a.realm
	var s *outStream
	d := r.newDeferred()
	err := r.try(func() {
		p.body.usable(r)
		p.body.used = true
		var failed error
		s, failed = a.openStream(p)
		if failed != nil {
			must(d.reject(r.newError(api.CodeInternal, failed.Error())))
			return
		}
		stop := r.callBuiltin("internal/pump", "pump", p.body.stream,
			r.newFunction("write", 1, func(call goja.FunctionCall) goja.Value { return s.pumped(r, call.Argument(0)) }),
			r.newFunction("", 0, func(goja.FunctionCall) goja.Value {
				must(d.resolve(goja.Undefined()))
				return goja.Undefined()
			}),
			r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
				must(d.reject(call.Argument(0)))
				return goja.Undefined()
			}))
		s.cancel, _ = goja.AssertFunction(stop)
	})
	if err == nil {
		_, err = a.await(d.value(r))
	}
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	return s.result(r)
}

// pumped writes a chunk of a stream, which must be a Uint8Array.
func (s *outStream) pumped(r *realm, chunk goja.Value) goja.Value {
	data, ok := bufferSource(chunk)
	if !ok {
		panic(r.vm.NewTypeError("The chunks of a body must be of the class Uint8Array"))
	}
	if d := s.write(r, data); d != nil {
		return d.value(r)
	}
	return goja.Undefined()
}

// csRespond is cs.respond(status, headers): it begins the answer and returns its writer.
//
//	const out = cs.respond(200, { "content-type": "text/event-stream" });
//	await out.write("data: 1\n\n");
//	out.close();
//
// The answer ends with close, or when the handler settles.
func csRespond(r *realm, call goja.FunctionCall) goja.Value {
	if !r.effect() {
		return goja.Undefined()
	}
	a := r.act
	if a.out != nil || a.settledHandler {
		panic(r.vm.NewTypeError("cs.respond: the answer has begun already"))
	}
	init := r.vm.NewObject()
	if v := call.Argument(0); !goja.IsUndefined(v) {
		must(init.Set("status", v))
	}
	if v := call.Argument(1); !goja.IsUndefined(v) {
		must(init.Set("headers", v))
	}
	s, err := a.openStream(r.newResponse(&body{null: true}, "", init))
	if err != nil {
		panic(r.newError(api.CodeInternal, err.Error()))
	}
	writer := r.vm.NewObject()
	must(writer.Set("write", r.newFunction("write", 1, func(call goja.FunctionCall) goja.Value {
		return r.promised(func() *deferred {
			data, ok := bufferSource(call.Argument(0))
			if !ok {
				data = []byte(call.Argument(0).String())
			}
			d := s.write(r, data)
			if d == nil {
				d = r.newDeferred()
				must(d.resolve(goja.Undefined()))
			}
			return d
		})
	})))
	must(writer.Set("close", r.newFunction("close", 0, func(goja.FunctionCall) goja.Value {
		if !r.effect() || r.act != s.act || s.closing {
			return goja.Undefined()
		}
		s.closing = true
		if len(s.waiting) == 0 && s.left == nil {
			if err := s.complete(); err != nil {
				panic(r.newError(api.CodeInternal, "the host cannot be reached"))
			}
		}
		return goja.Undefined()
	})))
	return writer
}

// responded returns the result of an activation whose handler called cs.respond.
func (a *activation) responded(value goja.Value) (goja.Value, error) {
	if !goja.IsUndefined(value) {
		return nil, &refusedResult{api.ErrResultInvalid, "the handler called cs.respond, and must return nothing"}
	}
	if err := a.out.end(); err != nil {
		return nil, err
	}
	return a.out.result(a.realm)
}

// signalled handles a frame about the caller of the activation.
func (a *activation) signalled(f frame) error {
	r := a.realm
	if f.kind == wire.KindCredit {
		n, err := wire.ParseCredit(f.payload)
		if err != nil || a.out == nil {
			return err
		}
		return a.out.granted(r, n)
	}
	var reason goja.Value
	if err := r.try(func() { reason = r.newDOMException("AbortError", "The client left") }); err != nil {
		return err
	}
	if a.out != nil {
		if err := a.out.abandon(r, reason); err != nil {
			return err
		}
	}
	if a.signal == nil {
		return nil
	}
	return r.run(func() { a.signal.abort(r, reason) })
}

// listens reports whether the script can be notified that the caller disconnects: a promise
// that waits for it can settle.
func (a *activation) listens() bool {
	return a.signal != nil && !a.signal.aborted && a.head.Flags&wire.FlagEarly != 0
}

// callerSignal returns the AbortSignal that aborts when the caller leaves. The parent waits
// for the script only if it has asked for the signal.
func (a *activation) callerSignal(r *realm) goja.Value {
	if a.signal == nil {
		a.signal = r.newSignal()
		if r.act == a && a.head.Flags&wire.FlagEarly != 0 {
			_ = a.server.link.send(func(dst []byte) ([]byte, error) { return wire.AppendSignal(dst, wire.KindAbort) })
		}
	}
	return a.signal.object
}
