package child

import (
	"reflect"
	"unsafe"
	"weak"

	"github.com/dop251/goja"
)

// goja has no resizable buffers. Here a buffer is resized by setting the fields of goja's
// own objects, which goja does not export: data of a buffer, and length of its views. The
// bytes are allocated for the maximum once, so that an access with a length of before a
// shrinking stays within them. A view that is out of bounds views a detached twin of its
// buffer: all methods of goja check for that.
//
// TestResizableFields fails if another version of goja has other fields.

// resizable is the state of a resizable buffer.
type resizable struct {
	bytes []byte // of the maximum length
	views []view
}

// view is a typed array or a DataView of a resizable buffer.
type view struct {
	object   weak.Pointer[goja.Object]
	tracking bool // its length follows the buffer's
	offset   int  // in bytes
	length   int  // in bytes, where it does not track
}

// field returns a field of goja's implementation of an object, which is a struct, so that
// it can be set.
func field(impl reflect.Value, name string) reflect.Value {
	f := impl.FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() //nolint:gosec // see above
}

// implementation returns the struct behind an object.
func implementation(o *goja.Object) reflect.Value {
	return field(reflect.ValueOf(o).Elem(), "self").Elem().Elem()
}

// maxResizable bounds the maximum of a resizable buffer, which is allocated at once.
const maxResizable = 1 << 30

// bufferMake makes a buffer with the length and the maximum that are its second and third
// argument resizable.
func bufferMake(r *realm, call goja.FunctionCall) goja.Value {
	b := r.bufferOf(call)
	length, most := call.Argument(1).ToInteger(), call.Argument(2).ToInteger()
	if length > most || most > maxResizable {
		panic(r.errorOf("RangeError", "Array buffer allocation failed"))
	}
	obj := call.Argument(0).(*goja.Object)
	state := &resizable{bytes: make([]byte, most)}
	copy(state.bytes, b.Bytes())
	field(implementation(obj), "data").SetBytes(state.bytes[:length])
	r.attach(obj, state)
	return obj
}

// bufferMost returns the maximum of a resizable buffer, undefined for another one.
func bufferMost(r *realm, call goja.FunctionCall) goja.Value {
	b := r.bufferOf(call)
	state, ok := stateOf[*resizable](call.Argument(0))
	switch {
	case !ok:
		return goja.Undefined()
	case b.Detached():
		return r.vm.ToValue(0)
	}
	return r.vm.ToValue(len(state.bytes))
}

// bufferResize resizes a buffer and its views.
func bufferResize(r *realm, call goja.FunctionCall) goja.Value {
	b := r.bufferOf(call)
	state, ok := stateOf[*resizable](call.Argument(0))
	if !ok || b.Detached() {
		panic(r.vm.NewTypeError("the ArrayBuffer is not resizable, or detached"))
	}
	length := int(call.Argument(1).ToInteger())
	if length < 0 || length > len(state.bytes) {
		panic(r.errorOf("RangeError", "the length is greater than the maximum"))
	}
	clear(state.bytes[min(length, len(b.Bytes())):])
	field(implementation(call.Argument(0).(*goja.Object)), "data").SetBytes(state.bytes[:length])
	kept := state.views[:0]
	for _, v := range state.views {
		if object := v.object.Value(); object != nil {
			v.follow(object, call.Argument(0).(*goja.Object), length)
			kept = append(kept, v)
		}
	}
	state.views = kept
	return goja.Undefined()
}

// bufferView records that the object that is its second argument views a resizable buffer;
// the third argument is true if it tracks the buffer's length.
func bufferView(r *realm, call goja.FunctionCall) goja.Value {
	b := r.bufferOf(call)
	state, ok := stateOf[*resizable](call.Argument(0))
	object, isObject := call.Argument(1).(*goja.Object)
	if !ok || !isObject || b.Detached() {
		return goja.Undefined()
	}
	v := view{object: weak.Make(object), tracking: call.Argument(2).ToBoolean()}
	v.offset, v.length = extentOf(implementation(object))
	state.views = append(state.views, v)
	v.follow(object, call.Argument(0).(*goja.Object), len(b.Bytes()))
	return goja.Undefined()
}

// extentOf returns where goja's implementation of a view begins in its buffer, and its length,
// in bytes.
func extentOf(impl reflect.Value) (offset, length int) {
	if size := impl.FieldByName("elemSize"); size.IsValid() {
		return int(impl.FieldByName("offset").Int() * size.Int()), int(impl.FieldByName("length").Int() * size.Int())
	}
	return int(impl.FieldByName("byteOffset").Int()), int(impl.FieldByName("byteLen").Int())
}

// follow sets the length of a view for a buffer of the given length.
func (v view) follow(object, buffer *goja.Object, length int) {
	impl := implementation(object)
	target := implementation(buffer)
	if v.offset > length || !v.tracking && v.offset+v.length > length {
		twin := reflect.New(target.Type())
		twin.Elem().Set(reflect.NewAt(target.Type(), unsafe.Pointer(target.UnsafeAddr())).Elem()) //nolint:gosec // see above
		field(twin.Elem(), "detached").SetBool(true)
		field(twin.Elem(), "data").SetBytes(nil)
		field(impl, "viewedArrayBuf").Set(twin)
		v.setLength(impl, 0)
		return
	}
	field(impl, "viewedArrayBuf").Set(target.Addr())
	if v.tracking {
		v.setLength(impl, length-v.offset)
	} else {
		v.setLength(impl, v.length)
	}
}

func (v view) setLength(impl reflect.Value, n int) {
	if size := impl.FieldByName("elemSize"); size.IsValid() {
		field(impl, "length").SetInt(int64(n) / size.Int())
		return
	}
	field(impl, "byteLen").SetInt(int64(n))
}
