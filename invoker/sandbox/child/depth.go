package child

import (
	"reflect"

	"github.com/dop251/goja"
)

// depthFunction makes a function that returns how deep the calls of scripts nest. It reads
// a field of goja's machine: goja's API reports the depth only by listing all calls.
func (r *realm) depthFunction() goja.Value {
	machine := field(reflect.ValueOf(r.vm).Elem(), "vm").Elem()
	calls := field(machine, "callStack")
	return r.vm.ToValue(func(goja.FunctionCall) goja.Value { return r.vm.ToValue(calls.Len()) })
}
