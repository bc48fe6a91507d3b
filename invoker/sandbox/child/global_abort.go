package child

import (
	"slices"
	"time"

	"github.com/dop251/goja"
)

// abortSignal is an AbortSignal (https://dom.spec.whatwg.org/#interface-AbortSignal). It
// has its own listeners for the type abort instead of an EventTarget: no other type of
// event, no options and no dispatchEvent.
type abortSignal struct {
	aborted   bool
	reason    goja.Value                // nil until it is aborted
	listeners []goja.Value              // those of addEventListener, in their order
	onabort   goja.Value                // called before listeners
	then      []func(reason goja.Value) // the platform's own listeners, called first
}

// abort calls all listeners, once (DOM: signal abort). this is the signal's object, and
// reason the script's, an AbortError if it is undefined. A listener that throws keeps the
// later ones from being called, and the exception reaches the caller of abort; in browsers
// it is reported instead.
func (s *abortSignal) abort(r *realm, this, reason goja.Value) {
	if s.aborted {
		return
	}
	if reason == nil || goja.IsUndefined(reason) {
		reason = r.newDOMException("AbortError", "This operation was aborted")
	}
	s.aborted, s.reason = true, reason
	for _, listener := range s.then {
		listener(reason)
	}
	listeners := append([]goja.Value{s.onabort}, s.listeners...)
	s.then, s.listeners = nil, nil
	event := r.vm.NewObject()
	must(event.Set("type", "abort"))
	must(event.Set("target", this))
	for _, listener := range listeners {
		if call, ok := goja.AssertFunction(listener); ok {
			_, err := call(this, event)
			must(err)
		}
	}
}

// signalClass describes AbortSignal, with the statics abort, timeout and any. A script
// cannot construct one.
func signalClass() *class[*abortSignal] {
	return &class[*abortSignal]{
		name: "AbortSignal",
		members: []member[*abortSignal]{
			{name: "aborted", get: func(r *realm, s *abortSignal) goja.Value { return r.vm.ToValue(s.aborted) }},
			{name: "reason", get: func(_ *realm, s *abortSignal) goja.Value { return orUndefined(s.reason) }},
			{
				name: "onabort",
				get: func(_ *realm, s *abortSignal) goja.Value {
					if s.onabort == nil {
						return goja.Null()
					}
					return s.onabort
				},
				set: func(_ *realm, s *abortSignal, v goja.Value) { s.onabort = v },
			},
			{name: "throwIfAborted", call: func(_ *realm, s *abortSignal, _ goja.FunctionCall) goja.Value {
				if s.aborted {
					panic(s.reason)
				}
				return goja.Undefined()
			}},
			{name: "addEventListener", length: 2, call: func(_ *realm, s *abortSignal, call goja.FunctionCall) goja.Value {
				if !s.aborted && call.Argument(0).String() == "abort" && !slices.ContainsFunc(s.listeners, call.Argument(1).StrictEquals) {
					s.listeners = append(s.listeners, call.Argument(1))
				}
				return goja.Undefined()
			}},
			{name: "removeEventListener", length: 2, call: func(_ *realm, s *abortSignal, call goja.FunctionCall) goja.Value {
				s.listeners = slices.DeleteFunc(s.listeners, call.Argument(1).StrictEquals)
				return goja.Undefined()
			}},
		},
		statics: []row{
			{"abort", function("abort", 0, func(r *realm, call goja.FunctionCall) goja.Value {
				s := &abortSignal{}
				obj := signalClass().instance(r, s)
				s.abort(r, obj, call.Argument(0))
				return obj
			})},
			{"timeout", function("timeout", 1, signalTimeout)},
			{"any", function("any", 1, signalAny)},
		},
	}
}

// signalTimeout is AbortSignal.timeout(ms): a signal that aborts with a TimeoutError after
// ms, at least 1. Its timer keeps the loop from being empty, unlike in browsers, until it
// fires.
func signalTimeout(r *realm, call goja.FunctionCall) goja.Value {
	s := &abortSignal{}
	obj := signalClass().instance(r, s)
	delay := max(delayOf(call.Argument(0)), time.Millisecond)
	r.after("AbortSignal.timeout", delay, 0, func() error {
		return r.run(func() {
			s.abort(r, obj, r.newDOMException("TimeoutError", "The operation was aborted due to timeout"))
		})
	})
	return obj
}

// signalAny is AbortSignal.any(signals): a signal that aborts when the first of the given
// signals does, with its reason; immediately if one has aborted already.
func signalAny(r *realm, call goja.FunctionCall) goja.Value {
	s := &abortSignal{}
	obj := signalClass().instance(r, s)
	r.vm.ForOf(call.Argument(0), func(v goja.Value) bool {
		source := receiver[*abortSignal](r, v, "AbortSignal")
		if source.aborted {
			s.abort(r, obj, source.reason)
			return false
		}
		source.then = append(source.then, func(reason goja.Value) { s.abort(r, obj, reason) })
		return true
	})
	return obj
}

// abortController is an AbortController
// (https://dom.spec.whatwg.org/#interface-abortcontroller), with the one object of its
// signal.
type abortController struct {
	signal *abortSignal
	object *goja.Object
}

// controllerClass describes AbortController.
func controllerClass() *class[*abortController] {
	return &class[*abortController]{
		name: "AbortController",
		construct: func(r *realm, _ goja.ConstructorCall) *abortController {
			s := &abortSignal{}
			return &abortController{signal: s, object: signalClass().instance(r, s)}
		},
		members: []member[*abortController]{
			{name: "signal", get: func(_ *realm, c *abortController) goja.Value { return c.object }},
			{name: "abort", call: func(r *realm, c *abortController, call goja.FunctionCall) goja.Value {
				c.signal.abort(r, c.object, call.Argument(0))
				return goja.Undefined()
			}},
		},
	}
}

// orUndefined returns v, and undefined for a Go nil, by which goja says that a property is
// missing.
func orUndefined(v goja.Value) goja.Value {
	if v == nil {
		return goja.Undefined()
	}
	return v
}
