package child

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// pendingCall is a host call that the parent has not answered. It waits in loop.calls under
// the id of its frame.
type pendingCall struct {
	promise *deferred
	answer  func(head, blob []byte) goja.Value
	class   string // of the error that a failure rejects with
}

// failsAs sets the class of the error that the failure of a call rejects with.
func (r *realm) failsAs(id uint32, class string) {
	if id != 0 {
		r.act.loop.calls[id].class = class
	}
}

// send makes a host call of its declaration. answer makes the promise's value of the
// reply; an exception that it throws rejects the promise.
//
// A function of cs that makes a host call reads its arguments, sends, and answers, all
// within promised, so that a bad argument rejects the promise like a refusal of the host.
// A call cs.weather.at(city), declared as
//
//	var WeatherAt = Call[City, Weather]{"weather.at"}
//
// in invoker/sandbox/wire/calls.go, is in full:
//
//	func weatherAt(r *realm, call goja.FunctionCall) goja.Value {
//		return r.promised(func() *deferred {
//			city, ok := call.Argument(0).(goja.String)
//			if !ok {
//				r.badArgument("cs.weather.at: the city must be a string") // throws
//			}
//			return send(r, wire.WeatherAt, wire.City{Name: city.String()}, nil,
//				func(w wire.Weather, _ []byte) goja.Value { return r.vm.ToValue(w.Celsius) })
//		})
//	}
//
// Its row {"at", function("at", 1, weatherAt)} belongs into the namespace's table. The
// script sees a promise; answer runs on the goroutine that runs scripts, after the
// parent's reply and before the promise's reactions.
func send[A, R any](r *realm, declared wire.Call[A, R], args A, blob []byte, answer func(reply R, blob []byte) goja.Value) *deferred {
	d, _ := r.call(declared.Name, args, blob, func(head, blob []byte) goja.Value {
		var reply R
		r.decode(head, &reply)
		return answer(reply, blob)
	})
	return d
}

// sendOnly makes a host call whose promise resolves to undefined.
func sendOnly[A any](r *realm, declared wire.Call[A, wire.None], args A, blob []byte) *deferred {
	d, _ := r.call(declared.Name, args, blob, func(_, _ []byte) goja.Value { return goja.Undefined() })
	return d
}

// call asks the parent for a side effect. answer makes the promise's value of the reply;
// an exception that it throws rejects the promise. The id is for abandon.
//
// It throws what dispatch throws.
func (r *realm) call(name string, head any, blob []byte, answer func(head, blob []byte) goja.Value) (*deferred, uint32) {
	d := r.newDeferred()
	id := r.dispatch(name, head, blob)
	if id == 0 {
		return d, 0
	}
	if r.act.loop.calls == nil {
		r.act.loop.calls = make(map[uint32]*pendingCall)
	}
	r.act.loop.calls[id] = &pendingCall{promise: d, answer: answer, class: "Error"}
	return d, id
}

// dispatch sends a host call whose reply is dropped, and returns its id.
//
// It throws CS_RUNTIME_INVALID_ARGUMENT for too many or too large calls, before anything is
// sent. Outside of an activation, while modules are evaluated ahead, nothing is sent, the
// realm is thrown away (see effect), and the id is 0. The frame is written before dispatch
// returns; writing may wait until the parent has room (sandbox.hostCalls).
func (r *realm) dispatch(name string, head any, blob []byte) uint32 {
	if !r.effect() {
		return 0
	}
	a := r.act
	if a.loop.flying >= wire.MaxCallsInFlight {
		panic(r.newError(api.CodeHostInvalidArgument, "more than 1000 calls are waiting; await some of them first"))
	}
	if len(blob) > wire.MaxCallBlob {
		panic(r.bodyTooLong())
	}
	headJSON, err := json.Marshal(head)
	if err != nil {
		panic(r.newError(api.CodeHostInvalidArgument, err.Error()))
	}
	if len(headJSON) > wire.MaxHead {
		panic(r.newError(api.CodeHostInvalidArgument, "the arguments of a call are at most 1 MiB as JSON, a body or value not counted"))
	}
	a.server.calls++
	id := a.server.calls
	err = a.server.link.send(func(dst []byte) ([]byte, error) {
		return wire.AppendHostCall(dst, wire.HostCall{ID: id, Name: name, Head: headJSON, Blob: blob})
	})
	if err != nil {
		panic(r.newError(api.CodeInternal, "the host cannot be reached"))
	}
	a.loop.flying++
	return id
}

// abandon withdraws a call that still waits, and returns its promise, which the caller settles;
// nil if the call does not wait. The parent stops the call. Its reply settles nothing; if it
// succeeded, late is called to undo it. The call stays counted in loop.flying until the reply, because the
// reader's queue must have room for it.
func (r *realm) abandon(id uint32, late func(head []byte)) *deferred {
	if r.act == nil || r.act.loop.calls[id] == nil {
		return nil
	}
	l := &r.act.loop
	waiting := l.calls[id].promise
	delete(l.calls, id)
	if l.abandoned == nil {
		l.abandoned = make(map[uint32]func(head []byte))
	}
	l.abandoned[id] = late
	// An error of the link ends the process at the next frame.
	_ = r.act.server.link.send(func(dst []byte) ([]byte, error) { return wire.AppendAbandon(dst, id) })
	return waiting
}

// replied settles the call that a frame answers, or undoes it if it was abandoned.
//
// Errors, which end the process: errProtocol for a frame that is no reply, a malformed one.
// An exception that scripts cannot catch ends the activation.
func (a *activation) replied(f frame) error {
	switch f.kind {
	case wire.KindHostReply:
	case wire.KindCredit, wire.KindAbort:
		return a.signalled(f)
	default:
		return errProtocol
	}
	reply, err := wire.ParseHostReply(f.payload)
	if err != nil {
		return err
	}
	a.loop.flying--
	if late := a.loop.abandoned[reply.ID]; late != nil {
		delete(a.loop.abandoned, reply.ID)
		if !reply.OK {
			return nil
		}
		return a.realm.run(func() { late(reply.Head) })
	}
	pending, ok := a.loop.calls[reply.ID]
	if !ok {
		return nil
	}
	delete(a.loop.calls, reply.ID)
	return pending.promise.settle(a.realm, func() goja.Value {
		if !reply.OK {
			var e wire.HostError
			if err := json.Unmarshal(reply.Head, &e); err != nil {
				e = wire.HostError{Code: string(api.CodeInternal), Message: "the host's answer cannot be read"}
			}
			panic(a.realm.hostError(pending.class, &e))
		}
		return pending.answer(reply.Head, reply.Blob)
	})
}

// hostError makes a script's Error of the host's: message, code, and the further members
// that it has. A member that is named message or code is not among them.
func (r *realm) hostError(class string, e *wire.HostError) *goja.Object {
	made := r.newErrorOf(class, api.Code(e.Code), e.Message)
	if len(e.Members) == 0 {
		return made
	}
	members, ok := r.parsed(e.Members).(*goja.Object)
	if !ok {
		return made
	}
	for _, name := range members.Keys() {
		if name == "message" || name == "code" {
			continue
		}
		must(made.DefineDataProperty(name, members.Get(name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
	return made
}

// newError makes a script's Error with a code.
func (r *realm) newError(code api.Code, message string) *goja.Object {
	return r.newErrorOf("Error", code, message)
}

// newErrorOf makes an error of one of the language's own classes, with a code.
func (r *realm) newErrorOf(class string, code api.Code, message string) *goja.Object {
	e := r.newNamedError(class, message)
	must(e.DefineDataProperty("code", r.vm.ToValue(string(code)), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	return e
}

// newNamedError makes an error of one of the language's own classes, by the name that the
// script has for it. It is a TypeError if the script replaced the class with a value that
// is no constructor.
func (r *realm) newNamedError(class, message string) *goja.Object {
	e, err := r.vm.New(r.vm.Get(class), r.vm.ToValue(message))
	if err != nil { // the script replaced the class
		e = r.vm.NewTypeError("%s", message)
	}
	return e
}

// badArgument throws that a call's argument is not of its form.
func (r *realm) badArgument(message string) {
	panic(r.newError(api.CodeHostInvalidArgument, message))
}
