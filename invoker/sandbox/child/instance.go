package child

import (
	"time"

	"github.com/dop251/goja"
	"github.com/google/uuid"
)

// instance is the history of a realm that serves many activations. The state of its
// modules, and globals that a script replaced, persist from one activation to the next;
// everything else belongs to one activation:
//
//	activation 1   let n = 0 is evaluated; the handler does n++, setTimeout(f, 1000)
//	               and returns: the timer is dropped, f never runs
//	activation 2   n is 1; ctx, deadline, log lines and host calls are its own
//	activation 3   leaves a rejected promise without a handler: the realm is given up
//	activation 4   runs in a new realm: n is 0
//
// Code of an ended activation may still be resumed, by a later activation that settles a
// promise that both know. It then runs without effects (see realm.effect), and the realm
// is given up.
type instance struct {
	id     string // "" until a script asks
	began  time.Time
	served int  // activations that have begun
	stray  bool // code of an ended activation ran
	// held is how many bytes the modules keep, as measured after the first activation if
	// they are many, else 0.
	held int64
}

// keep lets the realm of an ended activation serve the next one, where its state can be
// relied upon. It is given up if the activation was stopped from outside, overflowed the
// stack or left a rejection without a handler, if it is old or has served its number of
// activations, or if it holds much of the memory limit.
func (s *server) keep(a *activation, why cause, failure error) {
	r, bounds := a.realm, s.program.assign.Instance
	if bounds != nil && r != nil && r.instance.served == 1 {
		r.instance.held = s.memory.measureHeld()
		r.wasm.measureHeld()
	}
	switch {
	case bounds == nil || r == nil || r.handler == nil && r.handlers == nil:
	case why != causeNone || r.instance.stray || len(a.unhandled) > 0 || failure != nil && uncatchable(failure):
	case r.instance.served >= bounds.Activations || time.Since(r.instance.began).Milliseconds() >= bounds.AgeMS || s.memory.grown(r.instance.held) || r.wasm.grown():
	default:
		r.leave()
		s.next = r
	}
}

// asyncContext is the activation to which asynchronous code belongs. The context of code
// at the top level of modules has none: its reactions belong to the activation that
// settles their promise.
type asyncContext struct {
	act    *activation
	stores []store // of AsyncLocalStorage; never changed
}

// ended reports whether the code that runs belongs to an activation that has ended.
func (r *realm) ended() bool { return r.async != nil && r.async.act != nil && r.async.act != r.act }

// contextTracker runs each reaction of a promise in the context of the code that
// registered it (see goja.AsyncContextTracker).
type contextTracker struct{ realm *realm }

// Grab returns the context of a reaction that is being registered.
func (t contextTracker) Grab() any { return t.realm.async }

// Resumed sets the context of the reaction that runs next.
func (t contextTracker) Resumed(context any) {
	r := t.realm
	r.async, _ = context.(*asyncContext)
	r.instance.stray = r.instance.stray || r.ended()
}

// Exited ends a reaction: the loop that settles promises belongs to the activation.
func (t contextTracker) Exited() { t.realm.async = t.realm.own }

// contextInstance makes ctx.instance: the id and age of the global scope, and the number of
// activations that it served before this one.
func contextInstance(r *realm, a *activation) goja.Value {
	if r.instance.id == "" {
		r.instance.id = uuid.NewString()
	}
	out := r.vm.NewObject()
	must(out.Set("id", r.instance.id))
	must(out.Set("ageMs", max(0, a.began.Sub(r.instance.began).Milliseconds())))
	must(out.Set("activations", a.earlier))
	return out
}
