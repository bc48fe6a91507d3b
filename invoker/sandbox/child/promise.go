package child

import (
	"errors"
	"reflect"

	"github.com/dop251/goja"
)

// deferred is a promise that Go settles: the only way in which asynchronous work
// answers a script. It is settled once, on the goroutine that runs scripts.
type deferred struct {
	promise         *goja.Promise
	resolve, reject func(any) error
}

func (r *realm) newDeferred() *deferred {
	d := &deferred{}
	d.promise, d.resolve, d.reject = r.vm.NewPromise()
	return d
}

// value is the promise as scripts see it.
func (d *deferred) value(r *realm) goja.Value { return r.vm.ToValue(d.promise) }

// settle resolves the promise with what produce gives, or rejects it with what produce
// throws, and then runs the reactions. The error is one that no script can catch.
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

// rejected is a promise that failed at once; why is the error value.
func (r *realm) rejected(why goja.Value) goja.Value {
	d := r.newDeferred()
	must(d.reject(why))
	return d.value(r)
}

// promised runs an asynchronous function's synchronous part, so that what it
// throws rejects the promise, as in an async function.
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

// isPromise says whether obj is one of the language's own promises.
func isPromise(obj *goja.Object) bool { return obj.ExportType() == promiseType }

var promiseType = reflect.TypeFor[*goja.Promise]()
