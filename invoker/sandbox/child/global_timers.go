package child

import (
	"math"
	"slices"
	"time"

	"github.com/dop251/goja"
)

// maxDelay is the longest delay of a timer in milliseconds (HTML: a signed 32-bit number);
// a longer or negative one means none, as in browsers and Node.
const maxDelay = math.MaxInt32

// setTimeout, setInterval and setImmediate are those of HTML and Node
// (https://html.spec.whatwg.org/#timers). They return a number, not Node's object.
func setTimeout(r *realm, call goja.FunctionCall) goja.Value {
	return r.startTimer("setTimeout", call, false)
}

func setInterval(r *realm, call goja.FunctionCall) goja.Value {
	return r.startTimer("setInterval", call, true)
}

// setImmediate is a timeout of 0: it runs after the timers that are due already.
func setImmediate(r *realm, call goja.FunctionCall) goja.Value {
	args := call.Arguments
	if len(args) > 0 {
		args = append([]goja.Value{args[0], r.vm.ToValue(0)}, args[1:]...)
	}
	return r.startTimer("setImmediate", goja.FunctionCall{This: call.This, Arguments: args}, false)
}

// startTimer starts the timer of a call (callback, delay, ...args). An interval has a delay
// of at least 1 ms. Text as a callback is refused.
func (r *realm) startTimer(name string, call goja.FunctionCall, repeat bool) goja.Value {
	callback, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(r.vm.NewTypeError("%s: the first argument must be a function", name))
	}
	delay := delayOf(call.Argument(1))
	var args []goja.Value
	if len(call.Arguments) > 2 {
		args = slices.Clone(call.Arguments[2:]) // goja reuses its stack
	}
	every := time.Duration(0)
	if repeat {
		delay = max(delay, time.Millisecond)
		every = delay
	}
	context := r.async
	return r.vm.ToValue(r.after(name, delay, every, func() error {
		r.async = context
		_, err := r.callLoop(callback, args...)
		r.async = r.own
		return r.reportUncaught(err)
	}))
}

// after starts a timer of the activation and returns its id.
//
// name is the function's, for the error beyond maxTimers. call runs on the goroutine of
// scripts. While modules are evaluated ahead it is an effect, and starts nothing.
func (r *realm) after(name string, delay, every time.Duration, call func() error) int64 {
	if !r.effect() {
		return 0
	}
	r.timers++
	if !r.act.loop.start(r.timers, delay, every, call) {
		panic(r.vm.NewTypeError("%s: more than %d timers are waiting", name, maxTimers))
	}
	return r.timers
}

// delayOf returns a delay in milliseconds as a duration, 0 for one that is no number or out
// of bounds.
func delayOf(v goja.Value) time.Duration {
	ms := v.ToFloat()
	if math.IsNaN(ms) || ms < 0 || ms > maxDelay {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// clearTimer is clearTimeout, clearInterval and clearImmediate: ids are shared, and unknown
// ones are ignored.
func clearTimer(r *realm, call goja.FunctionCall) goja.Value {
	if id := call.Argument(0).ToInteger(); id > 0 && r.act != nil {
		r.act.loop.clear(id)
	}
	return goja.Undefined()
}

// queueMicrotask runs a function as a reaction of a settled promise, whose
// failure is reported like any other of the loop.
func queueMicrotask(r *realm, call goja.FunctionCall) goja.Value {
	callback, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(r.vm.NewTypeError("queueMicrotask: the argument must be a function"))
	}
	d := r.newDeferred()
	then, ok := goja.AssertFunction(d.value(r).(*goja.Object).Get("then"))
	if !ok {
		panic(r.vm.NewTypeError("queueMicrotask: Promise.prototype.then is not a function"))
	}
	_, err := then(d.value(r), r.vm.ToValue(func(goja.FunctionCall) goja.Value {
		_, err := callback(goja.Undefined())
		must(r.reportUncaught(err))
		return goja.Undefined()
	}))
	must(err)
	must(d.resolve(goja.Undefined()))
	return goja.Undefined()
}
