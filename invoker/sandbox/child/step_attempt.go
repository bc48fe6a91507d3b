package child

import (
	"errors"
	"time"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
)

// execute makes an attempt of a step: it calls the function of the step with {attempt}. What an
// attempt does after its timeout is not seen.
func (a *activation) execute(c *stepCall) error {
	r := a.realm
	c.Attempts++
	attempt, over, timer := c.Attempts, false, int64(0)
	once := func(then func()) {
		if over {
			return
		}
		over = true
		a.loop.clear(timer)
		then()
	}
	if c.timeout > 0 {
		timer = r.after("cs.step", c.timeout, 0, func() error {
			return r.run(func() {
				once(func() {
					a.failed(c, &step.Failure{Name: "TimeoutError", Code: string(api.CodeHostStepTimeout), Message: "the step " + c.Label() + " took longer than " + c.timeout.String()}, false)
				})
			})
		})
	}
	info := r.vm.NewObject()
	must(info.Set("attempt", attempt))
	value, err := r.callLoop(c.fn, info)
	if err != nil {
		return a.threw(err, func(v goja.Value) { once(func() { a.failedWith(c, v) }) })
	}
	p, err := a.promiseOf(value)
	if err != nil {
		return a.threw(err, func(v goja.Value) { once(func() { a.failedWith(c, v) }) })
	}
	if p == nil {
		return r.run(func() { once(func() { a.fulfilled(c, value) }) })
	}
	return r.run(func() {
		r.follow(p, func(v goja.Value) { once(func() { a.fulfilled(c, v) }) }, func(v goja.Value) { once(func() { a.failedWith(c, v) }) })
	})
}

// threw handles an exception of a step. An error that no script can catch is returned.
func (a *activation) threw(err error, f func(goja.Value)) error {
	var ex *goja.Exception
	if !errors.As(err, &ex) || uncatchable(err) {
		return err
	}
	return a.realm.run(func() { f(ex.Value()) })
}

// fulfilled ends a step with a result. One that cannot be recorded fails the step for good.
func (a *activation) fulfilled(c *stepCall, v goja.Value) {
	text, ok, err := a.realm.encodeJSON(v, step.MaxResultBytes)
	var long tooLong
	switch {
	case err == nil && !ok:
		a.end(c, step.StatusCompleted, nil)
	case err == nil:
		a.end(c, step.StatusCompleted, text)
	case errors.As(err, &long):
		a.failed(c, &step.Failure{Code: string(api.CodeHostStepLimit), Message: "the result of the step " + c.Label() + " is more than 256 KiB as JSON"}, true)
	case uncatchable(err):
		panic(err)
	default:
		a.failed(c, &step.Failure{Code: string(api.CodeHostInvalidArgument), Message: "the result of the step " + c.Label() + " is not JSON: " + err.Error()}, true)
	}
}

// failedWith ends an attempt that threw v. A property noRetry that is true makes it the last one.
func (a *activation) failedWith(c *stepCall, v goja.Value) {
	described := a.exception(v, nil, false)
	e, final := &step.Failure{Message: described.Message, Code: described.Code}, false
	err := a.realm.try(func() {
		obj, ok := v.(*goja.Object)
		if !ok {
			return
		}
		final = orUndefined(obj.Get("noRetry")).ToBoolean()
		if message, ok := stringProperty(obj, "message"); ok {
			e.Message = message
			e.Name, _ = stringProperty(obj, "name")
		}
	})
	if uncatchable(err) {
		panic(err)
	}
	e.Message = api.TruncateText(e.Message, step.MaxErrorBytes)
	e.Name = api.TruncateText(e.Name, step.MaxNameBytes)
	a.failed(c, e, final)
}

// failed ends an attempt of a step: with another one after a backoff, or the step as failed.
func (a *activation) failed(c *stepCall, e *step.Failure, final bool) {
	c.Error = e
	if final || c.Attempts >= c.most {
		a.end(c, step.StatusFailed, nil)
		return
	}
	delay := c.backoff
	for n := 1; n < c.Attempts && delay < c.maxBackoff; n++ {
		delay *= 2
	}
	delay = min(delay, c.maxBackoff)
	c.Status, c.DueAtMS = step.StatusRetrying, a.steps.now()+max(1, int64(delay/time.Millisecond))
	a.note(c)
}
