package child

import (
	"errors"
	"slices"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
)

// How deep calls nest. A function that calls itself throws at maxDepth, see guardRecursion;
// at maxCallStack the script fails with goja's uncatchable overflow. Recursion of
// native functions, which goja does not count, is bounded by maxStackBytes.
const (
	maxDepth     = 10_500
	maxCallStack = 11_000
)

// aheadBudget is how long modules may take when they are evaluated ahead, while the child
// is idle and no activation is charged for it.
const aheadBudget = 250 * time.Millisecond

// realm is one global scope with its program's modules evaluated in it. It serves one
// activation, after which it is garbage: nothing that a script changes in it, not even a
// builtin's prototype, is seen by the next activation. Where the program asks for
// instances it serves many, one at a time (instance.go).
type realm struct {
	vm      *goja.Runtime
	program *program
	ctl     *control
	act     *activation   // nil while built ahead, and between activations
	own     *asyncContext // of act; nil without act, and where contexts are not followed
	async   *asyncContext // of the code that runs
	handler goja.Callable
	// handlers are those of an object, which is then the handler.
	handlers *handlers
	beyond   *goja.Object            // the prototype of the global object
	built    rowSet                  // rows of the global table that were made
	classes  map[string]built        // by name, those that were defined
	timers   int64                   // the last id of a timer: an id is used once in a realm
	node     map[string]*goja.Object // modules of Node that were required, by name
	ticks    goja.Callable           // runs what process.nextTick was given; nil without node:process

	instance instance
	wasm     *wasmEngine // nil until the script uses WebAssembly

	expressions map[string]*regex.Program // compiled, by flags and text
	searched    textCache
	nativeExec  goja.Callable // of RegExp objects that goja made
	regexpExec  goja.Value    // RegExp.prototype.exec
}

// newRealm makes a scope without evaluating anything; act is nil for one that is built
// ahead. The clock of Date is r.now, and every rejection is reported to r.rejection.
func newRealm(p *program, ctl *control, act *activation) *realm {
	r := &realm{vm: goja.New(), program: p, ctl: ctl, act: act, instance: instance{began: time.Now()}}
	if p.assign.Instance != nil {
		r.vm.SetAsyncContextTracker(contextTracker{r})
	}
	r.vm.SetMaxCallStackSize(maxCallStack)
	r.vm.SetParserOptions(parser.WithDisableSourceMaps)
	r.vm.SetPromiseRejectionTracker(r.rejection)
	r.vm.SetTimeSource(r.now)
	ctl.attach(r.vm)
	r.installGlobals()
	return r
}

// evaluate runs the modules and keeps the handler that they export. Errors: those that the
// modules throw, or that the export is not a function.
func (r *realm) evaluate() error {
	if err := r.add(); err != nil {
		return err
	}
	if r.program.parses {
		r.installJSON()
	}
	if r.program.captures {
		if err := r.installCapture(); err != nil {
			return err
		}
	}
	value, err := r.vm.RunProgram(r.program.code)
	if err != nil {
		return err
	}
	script, ok := goja.AssertFunction(value)
	if !ok {
		return errors.New("the script is not of this compiler")
	}
	exported, err := script(goja.Undefined(), r.scriptArguments()...)
	if err != nil {
		return err
	}
	exported, err = r.settledModules(exported)
	if err != nil {
		return err
	}
	r.handler, ok = goja.AssertFunction(exported)
	if !ok {
		r.handlers, err = r.handlersOf(exported)
	}
	return err
}

// buildAhead evaluates the modules for the next activation while the child is idle.
// Effects of modules at their top level belong to the activation that they serve: a realm
// in which they logged, called the host, read the clock, started a timer or left a
// rejection is thrown away, and no other is built ahead for this program. For example
//
//	const table = build();          // built ahead: pure
//	const started = Date.now();     // never built ahead: reads the clock
//
// It does nothing if a frame waits already. A failure to build is not reported: the next
// activation evaluates the modules itself and meets the same error.
func (s *server) buildAhead() {
	if s.next != nil || s.program.aheadRefused || len(s.frames) > 0 {
		return
	}
	ctl := newControl()
	r := newRealm(s.program, ctl, nil)
	budget := time.AfterFunc(aheadBudget, func() { ctl.stop(causeSlow) })
	err := r.evaluate()
	inTime := budget.Stop() // or the timer's interrupt is still to come
	if s.program.asynchronous {
		// The first promise of a realm makes the intrinsics; now no activation pays for that.
		r.vm.NewPromise()
	}
	if err != nil || !inTime || ctl.cause() != causeNone {
		s.program.aheadRefused = true
		return
	}
	s.next = r
}

// adopt binds a realm that was built ahead, or has served before, to an activation.
func (r *realm) adopt(ctl *control, act *activation) {
	r.ctl, r.act = ctl, act
	ctl.attach(r.vm)
}

// enter begins the handler's part of the activation: from here on, code belongs to it.
func (r *realm) enter() {
	if r.program.assign.Instance != nil {
		r.own = &asyncContext{act: r.act}
		r.async = r.own
	}
	r.act.earlier = r.instance.served
	r.instance.served++
}

// leave unbinds the realm from its activation, which has ended and of which nothing stays.
func (r *realm) leave() { r.act, r.own, r.async = nil, nil, nil }

// effect reports whether the script may act on the world, which only code of the activation
// that runs may. In a realm that is built ahead it stops the evaluation with causeImpure, so
// the caller must return without an effect; its result does not matter.
func (r *realm) effect() bool {
	if r.act == nil {
		r.ctl.stop(causeImpure)
		return false
	}
	return !r.ended()
}

// now is the clock of Date. Reading it counts as an effect.
func (r *realm) now() time.Time {
	r.effect()
	return time.Now()
}

// rejection keeps the promises that are rejected without a handler, until one is added
// (ECMAScript, HostPromiseRejectionTracker). await ends the activation over the first that
// is left.
func (r *realm) rejection(p *goja.Promise, op goja.PromiseRejectionOperation) {
	if !r.effect() {
		return
	}
	if op == goja.PromiseRejectionReject {
		if !slices.Contains(r.act.waited, p) {
			r.act.unhandled = append(r.act.unhandled, p)
		}
		return
	}
	for i, q := range r.act.unhandled {
		if q == p {
			r.act.unhandled = append(r.act.unhandled[:i], r.act.unhandled[i+1:]...)
			return
		}
	}
	r.handledLate(p)
}

// try runs f, which touches script values from Go, and returns the exception that it threw,
// including one that scripts cannot catch.
func (r *realm) try(f func()) (err error) {
	defer func() {
		if x := recover(); x != nil {
			thrown, ok := x.(error)
			if !ok || !uncatchable(thrown) {
				panic(x)
			}
			err = thrown
		}
	}()
	if ex := r.vm.Try(f); ex != nil {
		return ex
	}
	return nil
}

// uncatchable reports whether no script may catch err: an interrupt or a stack overflow. Go
// code that calls scripts passes such an error on.
func uncatchable(err error) bool {
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	return errors.As(err, &interrupted) || errors.As(err, &overflow)
}

// must passes an error of a nested call on, by a panic: the value of an exception, so that
// the script sees what was thrown, or an uncatchable error as it is. Any other error is a
// bug of this package, and panics as it is.
func must(err error) {
	if err == nil {
		return
	}
	var ex *goja.Exception
	if errors.As(err, &ex) && !uncatchable(err) {
		panic(ex.Value())
	}
	panic(err)
}

// run is try for work of the loop: f may call scripts, and their microtasks run
// when it is done.
func (r *realm) run(f func()) error {
	call, _ := goja.AssertFunction(r.vm.ToValue(func(goja.FunctionCall) goja.Value {
		f()
		return goja.Undefined()
	}))
	_, err := call(goja.Undefined())
	return err
}

// checkStopped throws the interrupt of a script that was stopped. Go code calls it where the
// script chooses how long it runs.
func (r *realm) checkStopped() {
	if why := r.ctl.cause(); why == causeNone || why == causeEnded {
		return
	}
	noop, err := r.vm.RunString("(function () {})")
	must(err)
	call, _ := goja.AssertFunction(noop)
	_, err = call(goja.Undefined())
	must(err)
}
