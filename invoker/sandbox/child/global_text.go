package child

import (
	"encoding/base64"
	"reflect"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/dataurl"
)

// textEncoder is a TextEncoder (https://encoding.spec.whatwg.org/#interface-textencoder).
type textEncoder struct{}

// encoderClass describes TextEncoder.
func encoderClass() *class[textEncoder] {
	return &class[textEncoder]{
		name:      "TextEncoder",
		construct: func(*realm, goja.ConstructorCall) textEncoder { return textEncoder{} },
		members: []member[textEncoder]{
			{name: "encoding", get: func(r *realm, _ textEncoder) goja.Value { return r.vm.ToValue("utf-8") }},
			{name: "encode", call: func(r *realm, _ textEncoder, call goja.FunctionCall) goja.Value {
				text := ""
				if v := call.Argument(0); !goja.IsUndefined(v) {
					text = r.text(v).String()
				}
				return r.newBytes([]byte(text))
			}},
			{name: "encodeInto", length: 2, call: encodeInto},
		},
	}
}

// isUint8Array reports whether a value is a Uint8Array.
func isUint8Array(v goja.Value) bool { return viewName(v.(*goja.Object)) == "uint8Array" }

// viewName returns goja's name of the kind of a typed array, "" for other objects.
func viewName(obj *goja.Object) string {
	array := implementation(obj).FieldByName("typedArray")
	if !array.IsValid() {
		return ""
	}
	return array.Elem().Elem().Type().Name()
}

// encodeInto writes as many whole characters as fit, and returns {read, written}: UTF-16
// code units of the text, and bytes of the array.
func encodeInto(r *realm, _ textEncoder, call goja.FunctionCall) goja.Value {
	into, ok := bufferSource(call.Argument(1))
	if !ok || !isUint8Array(call.Argument(1)) {
		panic(r.vm.NewTypeError("encodeInto: the second argument must be a Uint8Array"))
	}
	read, written := 0, 0
	for _, char := range r.text(call.Argument(0)).String() {
		n := utf8.RuneLen(char)
		if written+n > len(into) {
			break
		}
		written += utf8.EncodeRune(into[written:], char)
		read += utf16.RuneLen(char)
	}
	result := r.vm.NewObject()
	must(result.Set("read", read))
	must(result.Set("written", written))
	return result
}

// bufferType is the type that goja exports an ArrayBuffer as.
var bufferType = reflect.TypeFor[goja.ArrayBuffer]()

// bufferSource returns the bytes of an ArrayBuffer or of a view of one, in place: none for a
// view whose buffer is detached or too short. It reads no member of the value, which a script
// may have replaced. ok is false for other values.
func bufferSource(v goja.Value) ([]byte, bool) {
	obj, ok := v.(*goja.Object)
	if !ok {
		return nil, false
	}
	if obj.ExportType() == bufferType {
		return obj.Export().(goja.ArrayBuffer).Bytes(), true
	}
	impl := implementation(obj)
	if impl.Kind() != reflect.Struct || !impl.FieldByName("viewedArrayBuf").IsValid() {
		return nil, false
	}
	buffer := field(impl, "viewedArrayBuf").Elem()
	all := field(buffer, "data").Bytes()
	offset, length := extentOf(impl)
	if field(buffer, "detached").Bool() || offset+length > len(all) {
		return []byte{}, true
	}
	return all[offset : offset+length], true
}

// newBytes makes a Uint8Array around b, which is the script's from then on.
func (r *realm) newBytes(b []byte) goja.Value {
	array, err := r.vm.New(r.vm.Get("Uint8Array"), r.vm.ToValue(r.vm.NewArrayBuffer(b)))
	must(err)
	return array
}

// btoa encodes characters up to U+00FF as base64.
//
// A character above U+00FF is an InvalidCharacterError
// (https://html.spec.whatwg.org/#dom-btoa).
func btoa(r *realm, call goja.FunctionCall) goja.Value {
	text := r.text(call.Argument(0)).String()
	raw := make([]byte, 0, len(text))
	for _, char := range text {
		if char > 0xff {
			panic(r.newDOMException("InvalidCharacterError", "btoa: the text has characters beyond Latin-1"))
		}
		raw = append(raw, byte(char))
	}
	return r.vm.ToValue(base64.StdEncoding.EncodeToString(raw))
}

// atob decodes forgiving base64 (https://infra.spec.whatwg.org/#forgiving-base64-decode).
//
// White space is ignored, and so is a missing padding. The result has one character for
// each byte.
func atob(r *realm, call goja.FunctionCall) goja.Value {
	raw, ok := dataurl.DecodeBase64(r.text(call.Argument(0)).String())
	if !ok {
		panic(r.newDOMException("InvalidCharacterError", "atob: the text is not base64"))
	}
	chars := make([]uint16, len(raw))
	for i, b := range raw {
		chars[i] = uint16(b)
	}
	return goja.StringFromUTF16(chars)
}
