package node

import (
	"reflect"
	"runtime"

	"github.com/dop251/goja"
)

// native is a function in Go that a module is made with. An exception is thrown by panic
// with a value of the script.
type native func(vm *goja.Runtime, call goja.FunctionCall) goja.Value

// Natives makes the object of the functions in Go of a module, nil if it has none.
func Natives(vm *goja.Runtime, module string) *goja.Object {
	var functions map[string]native
	switch module {
	case "internal/bytes":
		functions = bufferNatives()
	case "crypto":
		functions = cryptoNatives()
	case "zlib":
		functions = zlibNatives()
	case "internal/compression":
		functions = compressionNatives()
	case "internal/types":
		functions = kindNatives()
	case "internal/callsites":
		functions = map[string]native{"frames": stackFrames}
	default:
		return nil
	}
	out := vm.NewObject()
	for name, f := range functions {
		must(out.DefineDataProperty(name, vm.ToValue(func(call goja.FunctionCall) goja.Value {
			defer outOfBounds(vm)
			return f(vm, call)
		}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
	return out
}

// outOfBounds throws a panic of an index as an exception. The modules check what they pass,
// but a script that replaces built-in functions may get around that.
func outOfBounds(vm *goja.Runtime) {
	x := recover()
	if _, bounds := x.(runtime.Error); bounds {
		panic(failure(vm, "RangeError", "ERR_OUT_OF_RANGE", "an argument is out of range"))
	}
	if x != nil {
		panic(x)
	}
}

// must passes on what a call of the script's runtime threw.
func must(err error) {
	if err == nil {
		return
	}
	if ex, ok := err.(*goja.Exception); ok { //nolint:errorlint // goja returns it unwrapped
		panic(ex.Value())
	}
	panic(err)
}

// handle keeps a Go value in an object of a script, out of the script's reach.
type handle struct{ of any }

func keep(vm *goja.Runtime, of any) goja.Value { return vm.ToValue(&handle{of}) }

// kept returns the Go value that an object keeps.
func kept[T any](vm *goja.Runtime, v goja.Value) T {
	if v != nil {
		if h, ok := v.Export().(*handle); ok {
			if of, ok := h.of.(T); ok {
				return of
			}
		}
	}
	panic(vm.NewTypeError("Illegal invocation"))
}

// failure makes an Error with a code.
func failure(vm *goja.Runtime, class, code, message string) *goja.Object {
	made, err := vm.New(vm.Get(class), vm.ToValue(message))
	must(err)
	if code != "" {
		must(made.Set("code", code))
	}
	return made
}

// bytesOf returns the bytes of a buffer or of a view of one, in place. goja's own export of an
// empty view makes a pointer behind the end of the buffer, which Go does not allow.
func bytesOf(vm *goja.Runtime, v goja.Value) []byte {
	obj, ok := v.(*goja.Object)
	if !ok {
		panic(vm.NewTypeError("the data must be a buffer or a view of one"))
	}
	of, whole := obj, obj.ExportType() == bufferType
	if !whole {
		of, _ = obj.Get("buffer").(*goja.Object)
	}
	if of == nil || of.ExportType() != bufferType {
		panic(vm.NewTypeError("the data must be a buffer or a view of one"))
	}
	buffer, _ := of.Export().(goja.ArrayBuffer)
	all := buffer.Bytes()
	start, size := int64(0), int64(len(all))
	if !whole {
		start, size = member(obj, "byteOffset"), member(obj, "byteLength")
	}
	if buffer.Detached() || start < 0 || size < 0 || start > int64(len(all)) || size > int64(len(all))-start {
		panic(vm.NewTypeError("the data must be a buffer that is not detached, or a view of one"))
	}
	return all[start : start+size]
}

// bufferType is what an ArrayBuffer exports to.
var bufferType = reflect.TypeFor[goja.ArrayBuffer]()

// member returns a member as an integer, -1 if it is missing.
func member(obj *goja.Object, name string) int64 {
	if v := obj.Get(name); v != nil {
		return v.ToInteger()
	}
	return -1
}

// integer reads an argument that the module has checked.
func integer(call goja.FunctionCall, i int) int { return int(call.Argument(i).ToInteger()) }

func text(call goja.FunctionCall, i int) string { return call.Argument(i).String() }

// given reports whether an argument is neither undefined nor null.
func given(call goja.FunctionCall, i int) bool {
	v := call.Argument(i)
	return !goja.IsUndefined(v) && !goja.IsNull(v)
}

// stackFrames returns the script's frames of the stack: [function, file, line, column].
func stackFrames(vm *goja.Runtime, _ goja.FunctionCall) goja.Value {
	var out []any
	for _, f := range vm.CaptureCallStack(0, nil) {
		place := f.Position()
		if f.SrcName() == "<native>" || place.Filename == "" || place.Filename == "bundle.js" {
			continue
		}
		name := f.FuncName()
		if name == "<anonymous>" {
			name = ""
		}
		out = append(out, vm.NewArray(name, place.Filename, place.Line, place.Column))
	}
	return vm.NewArray(out...)
}
