package child

import (
	"errors"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// maxWaited bounds the promises that one activation passes to ctx.waitUntil.
const maxWaited = 1000

// waitUntil makes ctx.waitUntil(promise): the activation ends when the promise has settled,
// although its answer goes out before. A value that is no promise has settled. It throws a
// TypeError once the activation has ended, and a RangeError for too many promises.
func waitUntil(r *realm, a *activation) goja.Value {
	return r.newFunction("waitUntil", 1, func(call goja.FunctionCall) goja.Value {
		if !r.effect() || r.act != a {
			panic(r.vm.NewTypeError("waitUntil: the activation has ended"))
		}
		if len(a.waited) >= maxWaited {
			panic(r.newNamedError("RangeError", "waitUntil: more than 1000 promises"))
		}
		p, err := a.promiseOf(call.Argument(0))
		must(err)
		if p != nil {
			a.waited = append(a.waited, p)
			r.rejection(p, goja.PromiseRejectionHandle)
		}
		return goja.Undefined()
	})
}

// answerEarly sends the handler's answer before the promises of waitUntil have settled, if the
// parent takes it then. An error is the link's. A failure waits for Done: the caller learns of
// it together with what it left behind.
func (a *activation) answerEarly(body []byte, failed bool) error {
	if failed || a.out != nil && !a.out.collect || a.head.Flags&wire.FlagEarly == 0 {
		return nil
	}
	outcome := wire.OutcomeValue
	if body == nil {
		outcome = wire.OutcomeUndefined
	}
	return a.server.link.send(func(dst []byte) ([]byte, error) { return wire.AppendAnswer(dst, outcome, body) })
}

// settleWaited turns the loop until every promise of waitUntil has settled, also those that
// are added meanwhile. Their errors are logged, as are rejections without a handler. Errors:
// errStopped, and what ends the process.
func (a *activation) settleWaited() error {
	for i := 0; i < len(a.waited); i++ {
		p := a.waited[i]
		for !settled(p) && (!a.loop.empty() || a.steps.waiting() || a.out.blocked() || a.listens()) {
			if a.ctl.cause() != causeNone {
				return errStopped
			}
			if err := a.turn(); err != nil {
				return err
			}
			a.logUnhandled()
		}
		switch {
		case a.ctl.cause() != causeNone:
			return errStopped
		case !settled(p):
			a.logFailure("waitUntil: ", errNeverSettles)
		case p.State() == goja.PromiseStateRejected:
			a.logFailure("waitUntil: ", &thrown{value: p.Result()})
		}
	}
	a.logUnhandled()
	return nil
}

var errNeverSettles = errors.New("the promise can never settle: no timer and no host call is left")

// logUnhandled logs the rejections without a handler that come after the answer. The realm is
// given up, as if they had come before.
func (a *activation) logUnhandled() {
	for len(a.unhandled) > 0 && a.ctl.cause() == causeNone {
		p, err := a.firstUnhandled()
		if err != nil {
			a.logFailure("", err)
			continue
		}
		if p == nil {
			return
		}
		a.unhandled = a.unhandled[1:]
		a.realm.instance.stray = true
		a.logFailure("", &thrown{value: p.Result(), unhandled: true})
	}
}

// logFailure logs an error that does not fail the activation.
func (a *activation) logFailure(what string, err error) {
	e := a.describe(err)
	text := e.Message
	if e.Stack != "" {
		text = e.Stack
	}
	a.realm.log(levelError, false, []byte(api.TruncateText(what+text, api.MaxErrorMessageBytes)))
}
