package node

import (
	"math/big"
	"reflect"

	"github.com/dop251/goja"
)

// kindNatives are the functions that report the internal kind of an object, whatever its
// prototype.
func kindNatives() map[string]native {
	return map[string]native{
		"kind": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			if obj, ok := call.Argument(0).(*goja.Object); ok {
				return vm.ToValue(kindOf(obj))
			}
			return goja.Undefined()
		},
		// promise is (promise): [state, result].
		"promise": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			p, ok := call.Argument(0).Export().(*goja.Promise)
			if !ok {
				return goja.Undefined()
			}
			return vm.NewArray([]string{"pending", "fulfilled", "rejected"}[p.State()], p.Result())
		},
	}
}

// kindOf returns the kind of an object, "Object" for most and for those that show their kind
// in no way: weak collections and views.
func kindOf(obj *goja.Object) string {
	class := obj.ClassName()
	switch obj.ExportType() {
	case reflect.TypeFor[goja.Proxy]():
		return "Proxy"
	case reflect.TypeFor[*goja.Promise]():
		return "Promise"
	case reflect.TypeFor[goja.ArrayBuffer]():
		return "ArrayBuffer"
	case reflect.TypeFor[[][2]any]():
		return "Map"
	case reflect.TypeFor[[]any]():
		if class == "Object" {
			return "Set"
		}
	case reflect.TypeFor[*big.Int]():
		return "BigInt"
	case reflect.TypeFor[string]():
		if class == "Object" { // a symbol is exported as its text
			return "Symbol"
		}
	}
	return class
}
