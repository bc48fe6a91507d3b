package child

import (
	"bytes"
	"weak"

	"github.com/dop251/goja"
)

// bufferOf returns the ArrayBuffer that is the first argument.
func (r *realm) bufferOf(call goja.FunctionCall) goja.ArrayBuffer {
	if obj, ok := call.Argument(0).(*goja.Object); ok {
		if b, ok := obj.Export().(goja.ArrayBuffer); ok {
			return b
		}
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
	b.Detach()
	return r.vm.ToValue(r.vm.NewArrayBuffer(data))
}

// weakMake returns a handle that does not keep its object alive.
func weakMake(r *realm, call goja.FunctionCall) goja.Value {
	target, ok := call.Argument(0).(*goja.Object)
	if !ok {
		panic(r.vm.NewTypeError("the target is not an object"))
	}
	return r.vm.NewDynamicObject(&holder{weak.Make(target)})
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
