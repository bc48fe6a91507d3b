package child

import (
	"errors"
	"reflect"

	"github.com/dop251/goja"
)

// deferred is a promise that Go settles: the only way in which asynchronous work answers
// a script. It is settled once, on the goroutine that runs scripts. For a function that
// makes a host call, see the example at send.
//
// newDeferred makes it pending. Afterwards exactly one of settle, resolve and reject is
// called, by the code that removed the deferred from the table in which it waited
// (loop.calls, for a host call). Go code keeps no deferred beyond its activation: a promise
// of one realm must not be settled while another realm runs.
type deferred struct {
	promise         *goja.Promise
	resolve, reject func(any) error
}

// newDeferred makes a pending promise. Until it is settled, something must keep the loop
// from being empty, a timer or a call: otherwise the activation ends as Unsettled.
func (r *realm) newDeferred() *deferred {
	d := &deferred{}
	d.promise, d.resolve, d.reject = r.vm.NewPromise()
	return d
}

// value is the promise as scripts see it.
func (d *deferred) value(r *realm) goja.Value { return r.vm.ToValue(d.promise) }

// settle resolves the promise with the result of produce, or rejects it with the exception
// that produce throws, and then runs the reactions. The error is one that no script can
// catch.
//
// produce may call scripts, and may return a thenable, which the promise then follows.
func (d *deferred) settle(r *realm, produce func() goja.Value) error {
	var v goja.Value
	err := r.try(func() { v = produce() })
	if err == nil {
		return d.resolve(v)
	}
	var ex *goja.Exception
	if errors.As(err, &ex) && !uncatchable(err) {
		return d.reject(ex.Value())
	}
	return err
}

// rejected returns a promise that is rejected with the value why. Until the script adds a
// handler to it, it counts as an unhandled rejection.
func (r *realm) rejected(why goja.Value) goja.Value {
	d := r.newDeferred()
	must(d.reject(why))
	return d.value(r)
}

// promised runs the synchronous part of an asynchronous function. An exception that start
// throws rejects the promise, as in an async function, so that a script needs one way of
// error handling:
//
//	cs.kv.get(42)                      // start throws: the key must be a string
//		.catch((e) => e.code)      // "CS_RUNTIME_INVALID_ARGUMENT"
//
// An exception that scripts cannot catch, such as that of the deadline, is passed on as a
// panic.
//
// start returns the deferred that will be settled, usually that of send.
func (r *realm) promised(start func() *deferred) goja.Value {
	var d *deferred
	err := r.try(func() { d = start() })
	if err == nil {
		return d.value(r)
	}
	var ex *goja.Exception
	if errors.As(err, &ex) && !uncatchable(err) {
		return r.rejected(ex.Value())
	}
	panic(err)
}

// isPromise reports whether obj is one of the language's own promises.
func isPromise(obj *goja.Object) bool { return obj.ExportType() == promiseType }

var promiseType = reflect.TypeFor[*goja.Promise]()
