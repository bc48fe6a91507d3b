package child

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/dop251/goja"
)

// eventsModule has the classes of events. It is evaluated when a script first uses one of
// them, or a signal.
const eventsModule = "internal/events"

// signalRows are the natives of internal/signals.
func signalRows() []row {
	signal := func(r *realm, call goja.FunctionCall) *abortSignal {
		return receiver[*abortSignal](r, call.Argument(0), "AbortSignal")
	}
	return []row{
		{"isSignal", function("isSignal", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			_, ok := stateOf[*abortSignal](call.Argument(0))
			return r.vm.ToValue(ok)
		})},
		{"aborted", function("aborted", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.vm.ToValue(signal(r, call).aborted)
		})},
		{"reason", function("reason", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			return orUndefined(signal(r, call).reason)
		})},
		// onAbort is (signal, f): f is called before the listeners. It returns a function that
		// forgets f.
		{"onAbort", function("onAbort", 2, func(r *realm, call goja.FunctionCall) goja.Value {
			s := signal(r, call)
			f, ok := goja.AssertFunction(call.Argument(1))
			if !ok {
				panic(r.vm.NewTypeError("onAbort: the second argument must be a function"))
			}
			step := &abortStep{call: f}
			s.steps = append(s.steps, step)
			return r.newFunction("", 0, func(goja.FunctionCall) goja.Value {
				s.steps = slices.DeleteFunc(s.steps, func(other *abortStep) bool { return other == step })
				return goja.Undefined()
			})
		})},
	}
}

// reportRows are the natives of internal/reporting.
func reportRows() []row {
	return []row{
		{"describe", function("describe", 1, describeError)},
		{"log", function("log", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			if r.effect() {
				r.act.logFailure("Uncaught ", &thrown{value: call.Argument(0)})
			}
			return goja.Undefined()
		})},
	}
}

// stackPlace is the place of a frame of a stack.
var stackPlace = regexp.MustCompile(`([^\s(]+):(\d+):(\d+)\)?(?:\n|$)`)

// describeError returns what an ErrorEvent has beside the value that was thrown.
func describeError(r *realm, call goja.FunctionCall) goja.Value {
	out := r.vm.NewObject()
	if !r.effect() {
		return out
	}
	e := r.act.exception(call.Argument(0), nil, false)
	must(out.Set("message", "Uncaught "+e.Message))
	if place := stackPlace.FindStringSubmatch(e.Stack); place != nil {
		must(out.Set("filename", place[1]))
		for i, name := range []string{"lineno", "colno"} {
			if n, err := strconv.Atoi(place[2+i]); err == nil {
				must(out.Set(name, n))
			}
		}
	}
	return out
}

// hears reports whether the script may have a listener on the global object for a type: then
// its modules exist, or the handler is set.
func (r *realm) hears(eventType string) bool {
	if r.node[eventsModule] != nil {
		return true
	}
	var handler goja.Value
	if err := r.try(func() { handler = r.vm.GlobalObject().Get("on" + eventType) }); err != nil {
		return false
	}
	_, ok := goja.AssertFunction(handler)
	return ok
}

// reportUncaught passes an exception of a callback to the listeners of the global object. It
// returns nil if one of them prevented the platform's own handling, the error of a listener that
// no script can catch, and otherwise err.
func (r *realm) reportUncaught(err error) error {
	var ex *goja.Exception
	if err == nil || !errors.As(err, &ex) || uncatchable(err) || !r.hears("error") {
		return err
	}
	prevented := false
	failed := r.run(func() { prevented = r.callBuiltin("internal/reporting", "tell", ex.Value()).ToBoolean() })
	switch {
	case failed != nil && uncatchable(failed):
		return failed
	case prevented:
		return nil
	}
	return err
}

// reportError is reportError(error): the event error, and a line of the log if no listener
// prevents it.
func reportError(r *realm, call goja.FunctionCall) goja.Value {
	if len(call.Arguments) == 0 {
		panic(r.vm.NewTypeError("reportError: an argument is required"))
	}
	if !r.effect() {
		return goja.Undefined()
	}
	if !r.hears("error") {
		r.act.logFailure("Uncaught ", &thrown{value: call.Argument(0)})
		return goja.Undefined()
	}
	return r.callBuiltin("internal/reporting", "report", call.Argument(0))
}

// firstUnhandled returns the first rejection without a handler, after the listeners of the
// event unhandledrejection were called; nil if they prevented or handled all
// (https://html.spec.whatwg.org/#notify-about-rejected-promises). An error is one that no
// script can catch.
func (a *activation) firstUnhandled() (*goja.Promise, error) {
	r := a.realm
	for len(a.unhandled) > 0 {
		p := a.unhandled[0]
		if !r.hears("unhandledrejection") {
			return p, nil
		}
		a.unhandled = a.unhandled[1:]
		a.notifying = p
		prevented := false
		err := r.run(func() {
			prevented = r.callBuiltin("internal/reporting", "rejected", r.vm.ToValue("unhandledrejection"), r.vm.ToValue(p), p.Result()).ToBoolean()
		})
		handled := a.notifying == nil
		a.notifying = nil
		switch {
		case err != nil && uncatchable(err):
			return nil, err
		case handled:
		case prevented:
			a.outstanding = append(a.outstanding, p)
		default:
			a.unhandled = append([]*goja.Promise{p}, a.unhandled...)
			return p, nil
		}
	}
	return nil, nil //nolint:nilnil // no rejection is left
}

// handledLate fires the event rejectionhandled for a promise that gets its handler after a
// listener prevented its unhandledrejection.
func (r *realm) handledLate(p *goja.Promise) {
	a := r.act
	if a.notifying == p {
		a.notifying = nil
		return
	}
	i := slices.Index(a.outstanding, p)
	if i < 0 {
		return
	}
	a.outstanding = slices.Delete(a.outstanding, i, i+1)
	r.after("rejectionhandled", 0, 0, func() error {
		return r.run(func() {
			r.callBuiltin("internal/reporting", "rejected", r.vm.ToValue("rejectionhandled"), r.vm.ToValue(p), p.Result())
		})
	})
}

// messageRows are the natives of internal/messaging.
func messageRows() []row {
	return []row{
		{"clone", function("clone", 2, func(r *realm, call goja.FunctionCall) goja.Value {
			v, ports := r.cloned(call.Argument(0), r.sequence(call.Argument(1)))
			return r.vm.NewArray(v, r.vm.NewArray(ports...))
		})},
		{"activation", activationToken()},
		// task is (f): the loop calls f, behind the timers that are due.
		{"task", function("task", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			f, ok := goja.AssertFunction(call.Argument(0))
			if !ok {
				panic(r.vm.NewTypeError("task: the argument must be a function"))
			}
			context := r.async
			r.after("postMessage", 0, 0, func() error {
				r.async = context
				_, err := r.callLoop(f)
				r.async = r.own
				return r.reportUncaught(err)
			})
			return goja.Undefined()
		})},
	}
}

// sequence returns the items of an iterable.
func (r *realm) sequence(v goja.Value) (items []goja.Value) {
	r.vm.ForOf(v, func(item goja.Value) bool {
		items = append(items, item)
		return true
	})
	return items
}
