package child

import (
	"math"
	"time"

	"github.com/dop251/goja"
)

// abortSignal is an AbortSignal (https://dom.spec.whatwg.org/#interface-AbortSignal). Its
// listeners are those of an EventTarget.
type abortSignal struct {
	aborted bool
	reason  goja.Value                // nil until it is aborted
	object  *goja.Object              // of newSignal
	then    []func(reason goja.Value) // the platform's own listeners, called first
	steps   []*abortStep              // those of the platform's scripts, called next
	// sources are the signals that abort this one, which follow made: never ones that
	// it made, too, so that an abort does not recurse.
	sources    []*abortSignal
	dependents []*abortSignal // the signals that have this one as a source
	dependent  bool
}

// abortStep is a function of a script of the platform.
type abortStep struct{ call goja.Callable }

// newSignal makes a signal and its object.
func (r *realm) newSignal() *abortSignal {
	s := &abortSignal{}
	s.object = signalClass().instance(r, s)
	return s
}

// abort aborts the signal and those that depend on it, and then calls the listeners of all,
// once (DOM: signal abort). reason is the script's, an AbortError if it is undefined.
func (s *abortSignal) abort(r *realm, reason goja.Value) {
	if s.aborted {
		return
	}
	if reason == nil || goja.IsUndefined(reason) {
		reason = r.newDOMException("AbortError", "This operation was aborted")
	}
	s.aborted, s.reason = true, reason
	aborted := []*abortSignal{s}
	for _, d := range s.dependents {
		if !d.aborted {
			d.aborted, d.reason = true, reason
			aborted = append(aborted, d)
		}
	}
	s.dependents = nil
	for _, signal := range aborted {
		signal.notify(r)
	}
}

// notify calls the listeners (DOM: run the abort steps).
func (s *abortSignal) notify(r *realm) {
	then, steps := s.then, s.steps
	s.then, s.steps = nil, nil
	for _, listener := range then {
		listener(s.reason)
	}
	for _, step := range steps {
		_, err := step.call(goja.Undefined())
		must(err)
	}
	r.callBuiltin(eventsModule, "fireAbort", s.object)
}

// eventTarget is the class that others inherit from.
func (r *realm) eventTarget() *goja.Object {
	return r.builtin(eventsModule).(*goja.Object).Get("EventTarget").(*goja.Object)
}

// signalClass describes AbortSignal, with the statics abort, timeout and any. A script
// cannot construct one.
func signalClass() *class[*abortSignal] {
	return &class[*abortSignal]{
		name:   "AbortSignal",
		parent: (*realm).eventTarget,
		members: []member[*abortSignal]{
			{name: "aborted", get: func(r *realm, s *abortSignal) goja.Value { return r.vm.ToValue(s.aborted) }},
			{name: "reason", get: func(_ *realm, s *abortSignal) goja.Value { return orUndefined(s.reason) }},
			{
				name: "onabort",
				get: func(r *realm, s *abortSignal) goja.Value {
					return r.callBuiltin(eventsModule, "handlerOf", s.object, r.vm.ToValue("abort"))
				},
				set: func(r *realm, s *abortSignal, v goja.Value) {
					r.callBuiltin(eventsModule, "setHandler", s.object, r.vm.ToValue("abort"), v)
				},
			},
			{name: "throwIfAborted", call: func(_ *realm, s *abortSignal, _ goja.FunctionCall) goja.Value {
				if s.aborted {
					panic(s.reason)
				}
				return goja.Undefined()
			}},
		},
		statics: []row{
			{"abort", function("abort", 0, func(r *realm, call goja.FunctionCall) goja.Value {
				s := r.newSignal()
				s.abort(r, call.Argument(0))
				return s.object
			})},
			{"timeout", counted("timeout", signalTimeout)},
			{"any", counted("any", signalAny)},
		},
	}
}

// signalTimeout is AbortSignal.timeout(ms): a signal that aborts with a TimeoutError after
// ms, at least 1. Its timer keeps the loop from being empty, unlike in browsers, until it
// fires.
func signalTimeout(r *realm, call goja.FunctionCall) goja.Value {
	ms := math.Trunc(call.Argument(0).ToFloat())
	if !(ms >= 0 && ms <= 1<<53-1) {
		panic(r.vm.NewTypeError("AbortSignal.timeout: the time must be a number from 0 to 2^53 - 1"))
	}
	s := r.newSignal()
	delay := max(time.Duration(min(ms, maxDelay))*time.Millisecond, time.Millisecond)
	r.after("AbortSignal.timeout", delay, 0, func() error {
		return r.run(func() {
			s.abort(r, r.newDOMException("TimeoutError", "The operation was aborted due to timeout"))
		})
	})
	return s.object
}

// signalAny is AbortSignal.any(signals): a signal that aborts when the first of the given
// signals does, with its reason; immediately if one has aborted already.
func signalAny(r *realm, call goja.FunctionCall) goja.Value {
	var list []*abortSignal
	for _, v := range r.sequence(call.Argument(0)) {
		list = append(list, receiver[*abortSignal](r, v, "AbortSignal"))
	}
	s := r.newSignal()
	s.follow(r, list)
	return s.object
}

// follow makes a new signal depend on others (DOM: create a dependent abort signal).
func (s *abortSignal) follow(r *realm, list []*abortSignal) {
	s.dependent = true
	known := map[*abortSignal]bool{}
	for _, source := range list {
		if source.aborted {
			s.abort(r, source.reason)
			return
		}
	}
	for _, source := range list {
		sources := []*abortSignal{source}
		if source.dependent {
			sources = source.sources
		}
		for _, source := range sources {
			if !known[source] {
				known[source] = true
				s.sources = append(s.sources, source)
			}
		}
	}
	for _, source := range s.sources {
		source.dependents = append(source.dependents, s)
	}
}

// abortController is an AbortController
// (https://dom.spec.whatwg.org/#interface-abortcontroller).
type abortController struct{ signal *abortSignal }

// controllerClass describes AbortController.
func controllerClass() *class[*abortController] {
	return &class[*abortController]{
		name: "AbortController",
		construct: func(r *realm, _ goja.ConstructorCall) *abortController {
			return &abortController{r.newSignal()}
		},
		members: []member[*abortController]{
			{name: "signal", get: func(_ *realm, c *abortController) goja.Value { return c.signal.object }},
			{name: "abort", call: func(r *realm, c *abortController, call goja.FunctionCall) goja.Value {
				c.signal.abort(r, call.Argument(0))
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
