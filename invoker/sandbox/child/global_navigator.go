package child

import (
	"bytes"

	"github.com/dop251/goja"
)

// userAgent is navigator.userAgent: one product without a version, as ECMA-429 recommends. It
// is what fetch sends for a request without a User-Agent (package hostcall).
const userAgent = "sous"

// navigatorObject is the state of navigator, which has none.
type navigatorObject struct{}

// navigatorClass describes Navigator
// (https://html.spec.whatwg.org/#the-navigator-object), with what ECMA-429 requires.
func navigatorClass() *class[navigatorObject] {
	return &class[navigatorObject]{
		name: "Navigator",
		members: []member[navigatorObject]{
			{name: "userAgent", get: func(r *realm, _ navigatorObject) goja.Value { return r.vm.ToValue(userAgent) }},
		},
	}
}

// schedulerObject is the state of scheduler, which has none.
type schedulerObject struct{}

// schedulerClass describes Scheduler, with the method wait of Workers.
func schedulerClass() *class[schedulerObject] {
	return &class[schedulerObject]{
		name: "Scheduler",
		members: []member[schedulerObject]{
			{name: "wait", length: 1, promise: true, call: func(r *realm, _ schedulerObject, call goja.FunctionCall) goja.Value { return schedulerWait(r, call) }},
		},
	}
}

// schedulerWait is scheduler.wait(ms, { signal }): a promise that resolves after ms, and
// rejects with the reason of the signal if that aborts before.
func schedulerWait(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		if len(call.Arguments) == 0 {
			panic(r.vm.NewTypeError("scheduler.wait: the time is missing"))
		}
		delay := delayOf(call.Argument(0))
		var signal *abortSignal
		if options, ok := call.Argument(1).(*goja.Object); ok {
			if v := given(options, "signal"); v != nil {
				signal = receiver[*abortSignal](r, v, "AbortSignal")
			}
		}
		if signal != nil && signal.aborted {
			panic(signal.reason)
		}
		d := r.newDeferred()
		id := r.after("scheduler.wait", delay, 0, func() error { return d.resolve(goja.Undefined()) })
		if signal != nil {
			signal.then = append(signal.then, func(reason goja.Value) { r.stopWaiting(d, id, reason) })
		}
		return d
	})
}

// stopWaiting rejects the promise of a timer, unless that has fired.
func (r *realm) stopWaiting(d *deferred, timer int64, reason goja.Value) {
	if r.act == nil || d.promise.State() != goja.PromiseStatePending {
		return
	}
	if _, waits := r.act.loop.byID[timer]; !waits {
		return // of an activation that has ended
	}
	r.act.loop.clear(timer)
	must(d.reject(reason))
}

// handlerNames are the event handlers of the global object. They are plain properties of it:
// the events of the platform call what they hold.
func handlerNames() []string {
	return []string{"onerror", "onunhandledrejection", "onrejectionhandled"}
}

// handlersIn returns the handlers that a script names.
func handlersIn(script []byte) []string {
	var named []string
	for _, name := range handlerNames() {
		if bytes.Contains(script, []byte(name)) {
			named = append(named, name)
		}
	}
	return named
}

// scopeRows are the globals that the global object has as an EventTarget.
func scopeRows() []row {
	rows := []row{
		{"reportError", function("reportError", 1, reportError)},
		{"navigator", func(r *realm) goja.Value { return navigatorClass().instance(r, navigatorObject{}) }},
		{"scheduler", func(r *realm) goja.Value { return schedulerClass().instance(r, schedulerObject{}) }},
		{"performance", func(r *realm) goja.Value { return r.builtin("internal/performance").(*goja.Object).Get("performance") }},
		navigatorClass().global(),
		schedulerClass().global(),
	}
	for _, name := range []string{"addEventListener", "removeEventListener", "dispatchEvent"} {
		rows = append(rows, row{name, func(r *realm) goja.Value {
			return r.eventTarget().Get("prototype").(*goja.Object).Get(name)
		}})
	}
	for _, name := range handlerNames() {
		rows = append(rows, row{name, func(*realm) goja.Value { return goja.Null() }})
	}
	return rows
}
