package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
)

// textDecoder is a TextDecoder (https://encoding.spec.whatwg.org/#interface-textdecoder).
type textDecoder struct {
	*encoding.Decoder
	fatal     bool
	ignoreBOM bool
}

// decoderClass describes TextDecoder. An unknown label is a RangeError.
func decoderClass() *class[*textDecoder] {
	return &class[*textDecoder]{
		name: "TextDecoder",
		construct: func(r *realm, call goja.ConstructorCall) *textDecoder {
			label := "utf-8"
			if v := call.Argument(0); !goja.IsUndefined(v) {
				label = r.text(v).String()
			}
			options := r.decoderOptions(call.Argument(1))
			decoder, ok := encoding.NewDecoder(label)
			if !ok {
				panic(r.newNamedError("RangeError", "TextDecoder: the encoding "+label+" is not supported"))
			}
			d := &textDecoder{Decoder: decoder}
			if options != nil {
				d.fatal, d.ignoreBOM = truthy(options, "fatal"), truthy(options, "ignoreBOM")
			}
			return d
		},
		members: []member[*textDecoder]{
			{name: "encoding", get: func(r *realm, d *textDecoder) goja.Value { return r.vm.ToValue(d.Name) }},
			{name: "fatal", get: func(r *realm, d *textDecoder) goja.Value { return r.vm.ToValue(d.fatal) }},
			{name: "ignoreBOM", get: func(r *realm, d *textDecoder) goja.Value { return r.vm.ToValue(d.ignoreBOM) }},
			{name: "decode", call: decodeText},
		},
	}
}

// decoderOptions returns an argument that is a dictionary, nil for undefined and null. Any
// other value is a TypeError.
func (r *realm) decoderOptions(v goja.Value) *goja.Object {
	if goja.IsUndefined(v) || goja.IsNull(v) {
		return nil
	}
	options, ok := v.(*goja.Object)
	if !ok {
		panic(r.vm.NewTypeError("TextDecoder: the options must be an object"))
	}
	return options
}

// truthy reports whether an option is set to a value that JavaScript counts as true.
func truthy(obj *goja.Object, name string) bool {
	v := obj.Get(name)
	return v != nil && v.ToBoolean()
}

// decodeText is TextDecoder.decode(input, {stream}). With stream, the bytes of a character
// that input cuts are kept for the next call:
//
//	d.decode(Uint8Array.of(0xc3), {stream: true})   ""
//	d.decode(Uint8Array.of(0xbc))                   "ü"
func decodeText(r *realm, d *textDecoder, call goja.FunctionCall) goja.Value {
	options := r.decoderOptions(call.Argument(1))
	more := options != nil && truthy(options, "stream")
	var chunk []byte // read after the options, whose getters may change it
	if v := call.Argument(0); !goja.IsUndefined(v) {
		var ok bool
		chunk, ok = bufferSource(v)
		if !ok {
			panic(r.vm.NewTypeError("TextDecoder.decode: the argument must be an ArrayBuffer or a view of one"))
		}
	}
	text, valid := d.Decode(chunk, more, d.ignoreBOM)
	if d.fatal && !valid {
		d.Reset()
		panic(r.vm.NewTypeError("The encoded data was not valid for encoding " + d.Name))
	}
	return r.vm.ToValue(text)
}
