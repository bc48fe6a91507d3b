package child

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
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
					text = v.String()
				}
				return r.newBytes([]byte(text))
			}},
			{name: "encodeInto", length: 2, call: encodeInto},
		},
	}
}

// encodeInto writes as many whole characters as fit, and returns {read, written}: UTF-16
// code units of the text, and bytes of the array.
func encodeInto(r *realm, _ textEncoder, call goja.FunctionCall) goja.Value {
	into, ok := bufferSource(call.Argument(1))
	if !ok {
		panic(r.vm.NewTypeError("encodeInto: the second argument must be a Uint8Array"))
	}
	read, written := 0, 0
	for _, char := range call.Argument(0).String() {
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

// textDecoder is a TextDecoder for UTF-8 and UTF-16LE
// (https://encoding.spec.whatwg.org/#interface-textdecoder).
type textDecoder struct {
	encoding  string
	fatal     bool
	ignoreBOM bool
	left      []byte // of a character that the last chunk cut, while streaming
}

// decoderClass describes TextDecoder. An unknown label is a RangeError.
func decoderClass() *class[*textDecoder] {
	return &class[*textDecoder]{
		name: "TextDecoder",
		construct: func(r *realm, call goja.ConstructorCall) *textDecoder {
			d := &textDecoder{encoding: "utf-8"}
			if v := call.Argument(0); !goja.IsUndefined(v) {
				label := strings.ToLower(strings.TrimSpace(v.String()))
				switch label {
				case "utf-8", "utf8", "unicode-1-1-utf-8":
				case "utf-16le", "utf-16", "ucs-2":
					d.encoding = "utf-16le"
				default:
					panic(r.newNamedError("RangeError", "TextDecoder: the encoding "+label+" is not supported"))
				}
			}
			if options, ok := call.Argument(1).(*goja.Object); ok {
				d.fatal, d.ignoreBOM = truthy(options, "fatal"), truthy(options, "ignoreBOM")
			}
			return d
		},
		members: []member[*textDecoder]{
			{name: "encoding", get: func(r *realm, d *textDecoder) goja.Value { return r.vm.ToValue(d.encoding) }},
			{name: "fatal", get: func(r *realm, d *textDecoder) goja.Value { return r.vm.ToValue(d.fatal) }},
			{name: "ignoreBOM", get: func(r *realm, d *textDecoder) goja.Value { return r.vm.ToValue(d.ignoreBOM) }},
			{name: "decode", call: decodeText},
		},
	}
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
	var chunk []byte
	if v := call.Argument(0); !goja.IsUndefined(v) {
		var ok bool
		chunk, ok = bufferSource(v)
		if !ok {
			panic(r.vm.NewTypeError("TextDecoder.decode: the argument must be an ArrayBuffer or a view of one"))
		}
	}
	text := slices.Concat(d.left, chunk)
	d.left = nil
	if options, ok := call.Argument(1).(*goja.Object); ok && truthy(options, "stream") {
		whole := d.whole(text)
		text, d.left = text[:whole], bytes.Clone(text[whole:])
	}
	if d.encoding == "utf-16le" {
		return d.utf16(r, text)
	}
	if !d.ignoreBOM {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	if d.fatal && !utf8.Valid(text) {
		panic(r.vm.NewTypeError("The encoded data was not valid for encoding utf-8"))
	}
	return r.vm.ToValue(encoding.DecodeUTF8(text))
}

// whole returns the number of bytes of text that are complete characters, or wrong ones
// that no further byte completes.
func (d *textDecoder) whole(text []byte) int {
	if d.encoding == "utf-16le" {
		return len(text) &^ 1
	}
	for back := 1; back <= min(3, len(text)); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}

// utf16 decodes UTF-16LE; an odd last byte becomes U+FFFD, or a TypeError if the decoder is
// fatal.
func (d *textDecoder) utf16(r *realm, text []byte) goja.Value {
	units := make([]uint16, 0, len(text)/2+1)
	for len(text) >= 2 {
		units = append(units, binary.LittleEndian.Uint16(text))
		text = text[2:]
	}
	if len(text) == 1 {
		if d.fatal {
			panic(r.vm.NewTypeError("The encoded data was not valid for encoding utf-16le"))
		}
		units = append(units, utf8.RuneError)
	}
	if !d.ignoreBOM && len(units) > 0 && units[0] == 0xfeff {
		units = units[1:]
	}
	return r.vm.ToValue(string(utf16.Decode(units)))
}

// bufferType is the type that goja exports an ArrayBuffer as.
var bufferType = reflect.TypeFor[goja.ArrayBuffer]()

// bufferSource returns the bytes of an ArrayBuffer or of a view of one, in place.
//
// ok is false for other values, and for a view whose offset and length do not lie within
// its buffer.
func bufferSource(v goja.Value) ([]byte, bool) {
	obj, ok := v.(*goja.Object)
	if !ok {
		return nil, false
	}
	if obj.ExportType() == bufferType {
		return obj.Export().(goja.ArrayBuffer).Bytes(), true
	}
	buffer, ok := obj.Get("buffer").(*goja.Object)
	if !ok || buffer.ExportType() != bufferType {
		return nil, false
	}
	all := buffer.Export().(goja.ArrayBuffer).Bytes()
	start, size := integerProperty(obj, "byteOffset"), integerProperty(obj, "byteLength")
	if start < 0 || size < 0 || start > int64(len(all)) || size > int64(len(all))-start {
		return nil, false
	}
	return all[start : start+size], true
}

// integerProperty returns a property as an integer, -1 if it is missing.
func integerProperty(obj *goja.Object, name string) int64 {
	v := obj.Get(name)
	if v == nil {
		return -1
	}
	return v.ToInteger()
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
	text := call.Argument(0).String()
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
	text := strings.Map(func(c rune) rune {
		if strings.ContainsRune("\t\n\f\r ", c) {
			return -1
		}
		return c
	}, call.Argument(0).String())
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	}
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		panic(r.newDOMException("InvalidCharacterError", "atob: the text is not base64"))
	}
	chars := make([]uint16, len(raw))
	for i, b := range raw {
		chars[i] = uint16(b)
	}
	return goja.StringFromUTF16(chars)
}
