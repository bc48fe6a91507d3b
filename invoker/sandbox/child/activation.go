package child

import (
	"errors"
	"fmt"
	"time"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// activation is one run of the handler, from Invoke to Done. Only the goroutine that runs
// scripts uses it; other goroutines reach ctl alone.
type activation struct {
	server    *server
	realm     *realm
	ctl       *control
	head      wire.InvokeHead
	loop      loop
	unhandled []*goja.Promise // rejected, and without a handler so far
	// outstanding are rejected promises without a handler for which a listener prevented the
	// end of the activation. The event unhandledrejection of notifying is being dispatched.
	outstanding []*goja.Promise
	notifying   *goja.Promise
	token       *goja.Object // stands for the activation in scripts of the platform
	logs        logBudget
	began       time.Time
	order       int64           // of its last update of its job
	earlier     int             // activations that its realm served before
	waited      []*goja.Promise // given to ctx.waitUntil
	batch       *messageBatch   // of the handler queue
	steps       *steps          // nil until the function asks for one
	fetches     bool            // the handler is fetch, which returns a Response

	out            *outStream   // the answer that is streamed; nil without one
	settledHandler bool         // the handler's promise has settled
	signal         *abortSignal // of the caller; nil until a script reads it
}

// invoke runs one activation and answers it. An error is the link's, or the parent's end:
// there is no peer to answer any more, and the process ends.
//
// The clock runs from here to the end of describe. The error of a script is described only
// if nothing stopped the script: a stop decides the outcome by itself.
func (s *server) invoke(f frame) error {
	head, event, err := wire.ParseInvoke(f.payload)
	if err != nil {
		return err
	}
	a := &activation{server: s, ctl: f.control, head: head, logs: newLogBudget(), began: time.Now()}
	s.memory.reset()
	left := time.Until(time.UnixMilli(a.head.DeadlineMS))
	deadline := time.AfterFunc(left, func() { a.ctl.stop(causeDeadline) })
	body, err := a.run(event)
	if errors.Is(err, errParked) {
		err = nil
		a.realm.instance.stray = true // its promises never settle
	}
	var failure api.ActivationError
	if err != nil && a.ctl.cause() == causeNone {
		failure = a.describe(err) // which may run script code, so the clock still ticks
	}
	deadline.Stop()
	why := a.ctl.end()
	switch {
	case why == causeHangup:
		return s.hangup
	case s.link.err != nil:
		return s.link.err
	}
	done := a.done(body, failure, why)
	done.MemoryPeak = uint64(s.memory.measured())
	// From the end of the activation before: what was built ahead was for this one.
	now := cpuTime()
	done.CPUNanos, s.cpuBefore = uint64(max(0, now-s.cpuBefore)), now
	// From here on a stop finds no activation. The reader may have set the next one's control
	// already only if the parent sent an Invoke before this Done, which it does not.
	s.current.CompareAndSwap(a.ctl, nil)
	if err := s.link.send(func(dst []byte) ([]byte, error) { return wire.AppendDone(dst, done) }); err != nil {
		return err
	}
	s.keep(a, why, err) // after the answer: measuring an instance takes time
	return nil
}

// run calls the handler with the event and waits for its result. It returns the result's
// JSON, nil for undefined.
func (a *activation) run(event []byte) ([]byte, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	if a.head.Flags&wire.FlagVerify != 0 {
		return a.realm.handlerNames(), nil
	}
	a.realm.enter()
	body, err := a.handle(event)
	if len(a.waited) > 0 && !errors.Is(err, errParked) && a.ctl.cause() == causeNone && !uncatchable(err) {
		if sent := a.answerEarly(body, err != nil); sent != nil {
			return nil, sent
		}
		if stopped := a.settleWaited(); stopped != nil {
			return nil, stopped
		}
	}
	return body, err
}

// handle calls the handler and returns the JSON of its answer, nil for undefined.
func (a *activation) handle(event []byte) ([]byte, error) {
	r := a.realm
	value, err := a.callHandler(event)
	if err == nil {
		value, err = a.await(value)
	}
	if err == nil && r.handlers != nil && a.out == nil {
		value, err = r.handlers.checked(a, value)
	}
	a.settledHandler = true
	err = a.checkSteps(err)
	switch {
	case err != nil:
		return nil, err
	case a.out != nil:
		value, err = a.responded(value)
	default:
		value, err = a.answered(value)
	}
	if err != nil {
		return nil, err
	}
	return r.result(value)
}

// callHandler calls the function that is the handler, or the one of an object's handlers
// that is for this activation.
func (a *activation) callHandler(event []byte) (goja.Value, error) {
	r := a.realm
	if r.handlers != nil {
		return r.handlers.call(a, event)
	}
	if a.isBatch() {
		return nil, errors.New("the handler is a function, which takes one job at a time; a batch needs an object with a method queue")
	}
	var input goja.Value
	err := r.try(func() {
		input = r.parsed(event)
		if r.program.readsBody && a.isHTTP() {
			r.addBodyMethods(input)
		}
	})
	if err != nil {
		return nil, err
	}
	return r.callLoop(r.handler, input, r.newContext())
}

// enter sets the realm of the activation: the one built ahead, or a new one, whose modules
// are then evaluated as a part of the activation. An error is that of the modules.
func (a *activation) enter() error {
	s := a.server
	a.realm, s.next = s.next, nil
	if a.realm != nil {
		a.realm.adopt(a.ctl, a)
		return nil
	}
	a.realm = newRealm(s.program, a.ctl, a)
	if err := a.realm.evaluate(); err != nil {
		return err
	}
	if s.program.assign.Instance == nil {
		return nil
	}
	return a.settleModules()
}

// settleModules waits for the host calls that modules made when they were evaluated: an
// instance keeps their promises, and nothing would settle them after this activation.
func (a *activation) settleModules() error {
	last := a.server.calls
	for a.loop.waiting(last) {
		if a.ctl.cause() != causeNone {
			return errStopped
		}
		if err := a.turn(); err != nil {
			return err
		}
	}
	return nil
}

// errUnsettled ends an activation whose promise cannot settle. errStopped ends the waiting
// of one that was stopped; its cause decides the outcome, so the text is never shown.
var (
	errUnsettled = errors.New("the handler's promise can never settle: no timer and no host call is left")
	errStopped   = errors.New("stopped")
)

// await turns the loop until the handler's promise settles. What it leaves behind, timers
// and calls, is dropped. A promise that was rejected without a handler ends the activation
// as soon as the script has returned to the loop, as in Node; a handler that is added in
// the same turn is in time.
func (a *activation) await(value goja.Value) (goja.Value, error) {
	p, err := a.promiseOf(value)
	if p == nil || err != nil {
		return value, err
	}
	for !settled(p) {
		switch {
		case a.ctl.cause() != causeNone:
			return nil, errStopped
		case len(a.unhandled) > 0:
			p, err := a.firstUnhandled()
			if err != nil {
				return nil, err
			}
			if p != nil {
				return nil, &thrown{value: p.Result(), unhandled: true}
			}
			continue
		case a.loop.empty() && !a.steps.waiting() && !a.out.blocked() && !a.listens():
			return nil, errUnsettled
		}
		if err := a.turn(); err != nil {
			return nil, err
		}
	}
	if p.State() == goja.PromiseStateRejected {
		a.realm.rejection(p, goja.PromiseRejectionHandle)
		return nil, &thrown{value: p.Result()}
	}
	return p.Result(), nil
}

// promiseOf returns the promise that value is or becomes, nil for plain values. An object
// with a method then becomes one, as await has it (ECMAScript, PromiseResolve).
func (a *activation) promiseOf(value goja.Value) (*goja.Promise, error) {
	obj, ok := value.(*goja.Object)
	if !ok {
		return nil, nil
	}
	if isPromise(obj) {
		return obj.Export().(*goja.Promise), nil
	}
	r := a.realm
	var then goja.Value
	if err := r.try(func() { then = obj.Get("then") }); err != nil {
		return nil, err
	}
	if _, ok := goja.AssertFunction(then); !ok {
		return nil, nil
	}
	d := r.newDeferred()
	return d.promise, d.resolve(obj)
}

// done is the frame that answers an activation. Whatever the script made of
// being stopped, the stop counts.
//
// Of several reasons the first in this order counts: the deadline, the memory limit, an
// error, the value. A child whose activation was stopped asks to be replaced (FlagRetire):
// the script may have been interrupted anywhere, and its memory may be far above the limit.
func (a *activation) done(body []byte, failure api.ActivationError, why cause) wire.Done {
	d := wire.Done{Outcome: wire.OutcomeValue, Body: body}
	if a.logs.truncated {
		d.Flags |= wire.FlagLogsTruncated
	}
	switch {
	case why == causeDeadline:
		d.Outcome, d.Body = wire.OutcomeTimeout, nil
		d.Flags |= wire.FlagRetire
	case why == causeMemory:
		d.Outcome = wire.OutcomeError
		d.Body = errorJSON(api.ActivationError{
			Type:    api.ErrMemoryLimit,
			Message: fmt.Sprintf("the function used more than its %d MB of memory", a.server.program.assign.MemoryMB),
		})
		d.Flags |= wire.FlagRetire
	case failure.Type != "":
		d.Outcome = wire.OutcomeError
		d.Body = errorJSON(failure)
	case body == nil:
		d.Outcome = wire.OutcomeUndefined
	}
	return d
}
