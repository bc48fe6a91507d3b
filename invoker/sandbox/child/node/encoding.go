package node

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
)

func bufferNatives() map[string]native {
	return map[string]native{
		"decode":     decodeText,
		"encode":     encodeBytes,
		"byteLength": byteLength,
		"whole":      wholeUTF8,
		"compare": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return vm.ToValue(bytes.Compare(bytesOf(vm, call.Argument(0)), bytesOf(vm, call.Argument(1))))
		},
		"indexOf": indexOf,
		"fill":    fill,
		"copy": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			into, from := bytesOf(vm, call.Argument(0)), bytesOf(vm, call.Argument(1))
			return vm.ToValue(copy(into[integer(call, 2):], from[integer(call, 3):integer(call, 4)]))
		},
		"concat": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			into, at := bytesOf(vm, call.Argument(0)), 0
			vm.ForOf(call.Argument(1), func(part goja.Value) bool {
				at += copy(into[at:], bytesOf(vm, part))
				return at < len(into)
			})
			return goja.Undefined()
		},
		"swap":      swap,
		"readFloat": readFloat, "writeFloat": writeFloat,
		"readBig": readBig, "writeBig": writeBig,
		"isUtf8": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return vm.ToValue(utf8.Valid(bytesOf(vm, call.Argument(0))))
		},
		"isAscii": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return vm.ToValue(!slices.ContainsFunc(bytesOf(vm, call.Argument(0)), func(b byte) bool { return b > 0x7f }))
		},
	}
}

func stringOf(v goja.Value) goja.String { s, _ := v.ToString().(goja.String); return s }

// encodeBytes is (string, encoding): the bytes of a text, as an ArrayBuffer.
func encodeBytes(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	return vm.ToValue(vm.NewArrayBuffer(encode(stringOf(call.Argument(0)), text(call, 1))))
}

func encode(s goja.String, encoding string) []byte {
	switch encoding {
	case "utf16le":
		out := make([]byte, 0, s.Length()*2)
		for i := range s.Length() {
			out = binary.LittleEndian.AppendUint16(out, s.CharAt(i))
		}
		return out
	case "latin1", "ascii":
		out := make([]byte, s.Length())
		for i := range out {
			out[i] = byte(s.CharAt(i))
		}
		return out
	case "hex":
		text := s.String()
		out := make([]byte, len(text)/2)
		n, err := hex.Decode(out, []byte(text[:len(text)&^1]))
		if err != nil { // as in Node, the first wrong digit ends it
			return out[:n]
		}
		return out
	case "base64", "base64url":
		return decodeBase64(s.String())
	}
	return []byte(s.String())
}

// decodeBase64 reads both alphabets, skips other characters, and ends at padding.
func decodeBase64(text string) []byte {
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
		return raw
	}
	text, _, _ = strings.Cut(text, "=")
	text = strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			return c
		case c == '-':
			return '+'
		case c == '_':
			return '/'
		}
		return -1
	}, text)
	if len(text)%4 == 1 {
		text = text[:len(text)-1]
	}
	raw, _ := base64.RawStdEncoding.DecodeString(text) // all that can be wrong are bits beyond the last byte
	return raw
}

// decodeText is (view, encoding, start, end): the text of bytes.
func decodeText(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b := bytesOf(vm, call.Argument(0))
	start, end := integer(call, 2), integer(call, 3)
	return decode(vm, b[start:end], text(call, 1))
}

func decode(vm *goja.Runtime, b []byte, form string) goja.Value {
	switch form {
	case "utf16le":
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		return goja.StringFromUTF16(units)
	case "latin1", "ascii":
		units := make([]uint16, len(b))
		for i, c := range b {
			if form == "ascii" {
				c &= 0x7f
			}
			units[i] = uint16(c)
		}
		return goja.StringFromUTF16(units)
	case "hex":
		return vm.ToValue(hex.EncodeToString(b))
	case "base64":
		return vm.ToValue(base64.StdEncoding.EncodeToString(b))
	case "base64url":
		return vm.ToValue(base64.RawURLEncoding.EncodeToString(b))
	}
	return vm.ToValue(encoding.DecodeUTF8(b))
}

// byteLength is (string, encoding).
func byteLength(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	s := stringOf(call.Argument(0))
	switch encoding := text(call, 1); encoding {
	case "utf8":
		return vm.ToValue(len(s.String()))
	case "utf16le":
		return vm.ToValue(2 * s.Length())
	case "latin1", "ascii":
		return vm.ToValue(s.Length())
	default:
		return vm.ToValue(len(encode(s, encoding)))
	}
}

// wholeUTF8 is (view, length): how many of the first bytes are whole characters.
func wholeUTF8(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b := bytesOf(vm, call.Argument(0))[:integer(call, 1)]
	for back := 1; back <= min(3, len(b)); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return vm.ToValue(at)
			}
			break
		}
	}
	return vm.ToValue(len(b))
}

// indexOf is (view, what, from, backwards, step): the place of what, which is a number or
// a view. Units of a step of 2 begin at even places.
func indexOf(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b, from, step := bytesOf(vm, call.Argument(0)), integer(call, 2), max(1, integer(call, 4))
	var what []byte
	if _, ok := call.Argument(1).(*goja.Object); ok {
		what = bytesOf(vm, call.Argument(1))
	} else {
		what = []byte{byte(call.Argument(1).ToInteger())}
	}
	if call.Argument(3).ToBoolean() {
		for at := min(from, len(b)-len(what)); at >= 0; at-- {
			if at%step == 0 && bytes.HasPrefix(b[at:], what) {
				return vm.ToValue(at)
			}
		}
		return vm.ToValue(-1)
	}
	for from <= len(b) {
		at := bytes.Index(b[from:], what)
		if at < 0 {
			break
		}
		if (from+at)%step == 0 {
			return vm.ToValue(from + at)
		}
		from += at + 1
	}
	return vm.ToValue(-1)
}

// fill is (view, pattern, start, end). The pattern is a view that is not empty.
func fill(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b, what := bytesOf(vm, call.Argument(0))[integer(call, 2):integer(call, 3)], bytesOf(vm, call.Argument(1))
	if len(what) > 0 {
		n := copy(b, what)
		for n > 0 && n < len(b) {
			n += copy(b[n:], b[:n])
		}
	}
	return goja.Undefined()
}

// swap is (view, size): it reverses the bytes of each unit.
func swap(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b, size := bytesOf(vm, call.Argument(0)), integer(call, 1)
	for at := 0; at+size <= len(b); at += size {
		slices.Reverse(b[at : at+size])
	}
	return goja.Undefined()
}

func order(call goja.FunctionCall, i int) binary.ByteOrder {
	if call.Argument(i).ToBoolean() {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// readFloat is (view, offset, size, little).
func readFloat(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b := bytesOf(vm, call.Argument(0))[integer(call, 1):]
	if integer(call, 2) == 4 {
		return vm.ToValue(float64(math.Float32frombits(order(call, 3).Uint32(b))))
	}
	return vm.ToValue(math.Float64frombits(order(call, 3).Uint64(b)))
}

// writeFloat is (view, offset, size, little, number).
func writeFloat(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	b, n := bytesOf(vm, call.Argument(0))[integer(call, 1):], call.Argument(4).ToFloat()
	if integer(call, 2) == 4 {
		order(call, 3).PutUint32(b, math.Float32bits(float32(n)))
	} else {
		order(call, 3).PutUint64(b, math.Float64bits(n))
	}
	return goja.Undefined()
}

// readBig is (view, offset, little, signed).
func readBig(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	n := order(call, 2).Uint64(bytesOf(vm, call.Argument(0))[integer(call, 1):])
	if call.Argument(3).ToBoolean() {
		return vm.ToValue(big.NewInt(int64(n)))
	}
	return vm.ToValue(new(big.Int).SetUint64(n))
}

// writeBig is (view, offset, little, number): the low 64 bits of a BigInt.
func writeBig(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	n, ok := call.Argument(3).Export().(*big.Int)
	if !ok {
		panic(vm.NewTypeError(`The "value" argument must be of type bigint`))
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	order(call, 2).PutUint64(bytesOf(vm, call.Argument(0))[integer(call, 1):], low.Uint64())
	return goja.Undefined()
}
