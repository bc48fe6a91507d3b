package child

import (
	"bytes"
	"reflect"
	"weak"

	"github.com/dop251/goja"
)

// bufferOf returns the ArrayBuffer that is the first argument.
func (r *realm) bufferOf(call goja.FunctionCall) goja.ArrayBuffer {
	// Export of another object would copy all that it holds, without a bound on the depth.
	if obj, ok := call.Argument(0).(*goja.Object); ok && obj.ExportType() == bufferType {
		return obj.Export().(goja.ArrayBuffer)
	}
	panic(r.vm.NewTypeError("the receiver is not an ArrayBuffer"))
}

func bufferDetached(r *realm, call goja.FunctionCall) goja.Value {
	return r.vm.ToValue(r.bufferOf(call).Detached())
}

// maxBufferBytes bounds a buffer that additions make; goja's own are bounded by memory.
const maxBufferBytes = 1 << 31

// bufferTransfer detaches a buffer and returns one of the given length with its bytes.
func bufferTransfer(r *realm, call goja.FunctionCall) goja.Value {
	b := r.bufferOf(call)
	if _, ok := stateOf[wasmBuffer](call.Argument(0)); ok {
		panic(r.vm.NewTypeError("the buffer of a WebAssembly.Memory cannot be detached"))
	}
	size := call.Argument(1).ToInteger()
	if size > maxBufferBytes {
		panic(r.errorOf("RangeError", "Array buffer allocation failed"))
	}
	data := b.Bytes()
	if _, ok := stateOf[*resizable](call.Argument(0)); ok {
		data = bytes.Clone(data) // the views may still write beyond the length
	}
	if int64(len(data)) != size {
		resized := make([]byte, size)
		copy(resized, data)
		data = resized
	}
	detach(call.Argument(0).(*goja.Object))
	return r.vm.ToValue(r.vm.NewArrayBuffer(data))
}

// detach detaches a buffer, but leaves its memory where it is. goja's own Detach sets the
// bytes to nil; but goja's methods go on to read and write at an index, without a check,
// after a callback of the script that detaches. With nil that is an address of the script's
// choice. The memory lives as long as the views, whose lengths goja takes for 0 only where
// the bytes are nil: additions/buffers.js replaces the getters.
func detach(buffer *goja.Object) {
	impl := implementation(buffer)
	data := field(impl, "data")
	data.SetBytes(data.Bytes()[:0])
	field(impl, "detached").SetBool(true)
}

// viewDetached reports whether an object views a detached buffer, or a resizable one that
// is too small.
func viewDetached(r *realm, call goja.FunctionCall) goja.Value {
	object, ok := call.Argument(0).(*goja.Object)
	if !ok {
		return r.vm.ToValue(false)
	}
	impl := implementation(object)
	if impl.Kind() != reflect.Struct || !impl.FieldByName("viewedArrayBuf").IsValid() {
		return r.vm.ToValue(false)
	}
	return r.vm.ToValue(impl.FieldByName("viewedArrayBuf").Elem().FieldByName("detached").Bool())
}

// weakMake returns a handle that does not keep its object alive.
func weakMake(r *realm, call goja.FunctionCall) goja.Value {
	target, ok := call.Argument(0).(*goja.Object)
	if !ok {
		panic(r.vm.NewTypeError("the target is not an object"))
	}
	return r.vm.NewDynamicObject(&holder{state: weak.Make(target)})
}

// weakGet returns the object of a handle, undefined once it was collected.
func weakGet(_ *realm, call goja.FunctionCall) goja.Value {
	if handle, ok := call.Argument(0).(*goja.Object); ok {
		if h, ok := handle.Export().(*holder); ok {
			if target := h.state.(weak.Pointer[goja.Object]).Value(); target != nil {
				return target
			}
		}
	}
	return goja.Undefined()
}
