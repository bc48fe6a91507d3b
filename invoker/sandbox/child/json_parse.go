package child

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
)

// maxJSONDepth bounds nesting: a parser and an encoder that recurse must not run
// into the end of the stack. encoding/json has the same bound.
const maxJSONDepth = 10_000

// parseJSON makes script values of JSON text (RFC 8259), as JSON.parse does: "__proto__" is
// a member like any other, numbers are doubles, lone surrogates stay in strings (in member
// names they become U+FFFD). Short strings are shared among activations (words). It runs no
// script code. The text of an error is for people, as that of JSON.parse: Unexpected token '}'
// in JSON at position 5.
func (r *realm) parseJSON(text []byte) (goja.Value, error) {
	p := jsonParser{vm: r.vm, words: &r.program.words, text: text}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(text) {
		return nil, p.unexpected()
	}
	return v, nil
}

// parsed is parseJSON that throws a SyntaxError.
func (r *realm) parsed(text []byte) goja.Value {
	v, err := r.parseJSON(text)
	if err != nil {
		panic(r.newNamedError("SyntaxError", err.Error()))
	}
	return v
}

// jsonParser is a recursive descent parser. at is the offset of the next byte to read.
type jsonParser struct {
	vm    *goja.Runtime
	words *words
	text  []byte
	at    int
}

// unexpected returns the error for the byte at p.at.
func (p *jsonParser) unexpected() error {
	if p.at >= len(p.text) {
		return errors.New("Unexpected end of JSON input")
	}
	c, _ := utf8.DecodeRune(p.text[p.at:])
	return fmt.Errorf("Unexpected token %q in JSON at position %d", c, p.at)
}

// space skips white space.
func (p *jsonParser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// value reads a value that begins at p.at; depth is the number of objects and arrays around
// it.
func (p *jsonParser) value(depth int) (goja.Value, error) {
	if p.at >= len(p.text) {
		return nil, p.unexpected()
	}
	switch c := p.text[p.at]; c {
	case '{':
		return p.object(depth + 1)
	case '[':
		return p.array(depth + 1)
	case '"':
		return p.string()
	case 't':
		return p.literal("true", p.vm.ToValue(true))
	case 'f':
		return p.literal("false", p.vm.ToValue(false))
	case 'n':
		return p.literal("null", goja.Null())
	default:
		return p.number()
	}
}

// literal reads text, which is true, false or null, and returns v.
func (p *jsonParser) literal(text string, v goja.Value) (goja.Value, error) {
	for i := range len(text) {
		if p.at >= len(p.text) || p.text[p.at] != text[i] {
			return nil, p.unexpected()
		}
		p.at++
	}
	return v, nil
}

// object reads an object, at its opening brace. A later member replaces an earlier one of the
// same name.
func (p *jsonParser) object(depth int) (goja.Value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("JSON nested deeper than %d", maxJSONDepth)
	}
	obj := p.vm.NewObject()
	p.at++
	p.space()
	if p.take('}') {
		return obj, nil
	}
	for {
		if p.at >= len(p.text) || p.text[p.at] != '"' {
			return nil, p.unexpected()
		}
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.take(':') {
			return nil, p.unexpected()
		}
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		if err := define(obj, key, v); err != nil {
			return nil, err
		}
		p.space()
		if p.take('}') {
			return obj, nil
		}
		if !p.take(',') {
			return nil, p.unexpected()
		}
		p.space()
	}
}

// define makes an own data property, even where a prototype has a setter of that name.
func define(obj *goja.Object, key string, v goja.Value) error {
	return obj.DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
}

// array reads an array.
func (p *jsonParser) array(depth int) (goja.Value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("JSON nested deeper than %d", maxJSONDepth)
	}
	var items []any
	p.at++
	p.space()
	if p.take(']') {
		return p.vm.NewArray(), nil
	}
	for {
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		p.space()
		if p.take(']') {
			return p.vm.NewArray(items...), nil
		}
		if !p.take(',') {
			return nil, p.unexpected()
		}
	}
}

// take skips c if it is the next byte, and reports whether it was.
func (p *jsonParser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// plain reads a string that needs no decoding, at its opening quote, and returns its text.
//
// ok is false for a string with escapes, control characters or invalid UTF-8, or without a
// closing quote; p.at is unchanged then, and units reads the string.
func (p *jsonParser) plain() ([]byte, bool) {
	for i := p.at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			s := p.text[p.at+1 : i]
			if !utf8.Valid(s) {
				return nil, false
			}
			p.at = i + 1
			return s, true
		case c == '\\' || c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

// key reads a member's name.
func (p *jsonParser) key() (string, error) {
	if s, ok := p.plain(); ok {
		return p.words.find(p.vm, s).text, nil
	}
	units, err := p.units()
	return string(utf16.Decode(units)), err
}

// string reads a string value.
func (p *jsonParser) string() (goja.Value, error) {
	if s, ok := p.plain(); ok {
		return p.words.find(p.vm, s).value, nil
	}
	units, err := p.units()
	if err != nil {
		return nil, err
	}
	return goja.StringFromUTF16(units), nil
}

// units decodes a string, at its opening quote, as UTF-16 code units. Each maximal invalid
// part of its UTF-8 becomes U+FFFD.
func (p *jsonParser) units() ([]uint16, error) {
	var units []uint16
	for p.at++; p.at < len(p.text); {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return units, nil
		case c < 0x20:
			return nil, p.unexpected()
		case c == '\\':
			u, err := p.escape()
			if err != nil {
				return nil, err
			}
			units = append(units, u)
		case c < utf8.RuneSelf:
			units = append(units, uint16(c))
			p.at++
		default:
			char, size := encoding.DecodeRune(p.text[p.at:])
			units = utf16.AppendRune(units, char)
			p.at += size
		}
	}
	return nil, p.unexpected()
}

// escape reads an escape, at its backslash, as one code unit. A pair of surrogates is two
// escapes.
func (p *jsonParser) escape() (uint16, error) {
	p.at++
	if p.at >= len(p.text) {
		return 0, p.unexpected()
	}
	c := p.text[p.at]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		if p.at+5 > len(p.text) {
			p.at = len(p.text)
			return 0, p.unexpected()
		}
		u, err := strconv.ParseUint(string(p.text[p.at+1:p.at+5]), 16, 16)
		if err != nil {
			return 0, p.unexpected()
		}
		p.at += 5
		return uint16(u), nil
	default:
		return 0, p.unexpected()
	}
	p.at++
	return uint16(c), nil
}

// number reads a number by RFC 8259's grammar, which is narrower than Go's.
//
// A number of at most maxExactDigits digits becomes an integer of goja, which is exact and
// cheaper; -0 and all others become doubles.
func (p *jsonParser) number() (goja.Value, error) {
	start := p.at
	negative := p.take('-')
	integer := int64(0)
	digits := p.at
	for p.digit() {
		if p.at-digits < maxExactDigits {
			integer = integer*10 + int64(p.text[p.at]-'0')
		}
		p.at++
	}
	n := p.at - digits
	if n == 0 || n > 1 && p.text[digits] == '0' {
		return nil, p.unexpected()
	}
	whole := true
	if p.take('.') {
		whole = false
		if !p.digit() {
			return nil, p.unexpected()
		}
		for p.digit() {
			p.at++
		}
	}
	if p.take('e') || p.take('E') {
		whole = false
		if !p.take('+') {
			p.take('-')
		}
		if !p.digit() {
			return nil, p.unexpected()
		}
		for p.digit() {
			p.at++
		}
	}
	if whole && n <= maxExactDigits && (!negative || integer != 0) {
		if negative {
			integer = -integer
		}
		return p.vm.ToValue(integer), nil
	}
	f, err := strconv.ParseFloat(string(p.text[start:p.at]), 64)
	if err != nil && !math.IsInf(f, 0) { // out of range is ±Infinity, as in JSON.parse
		return nil, err
	}
	return p.vm.ToValue(f), nil
}

// maxExactDigits is the number of digits up to which a double represents every integer
// exactly: 10^15 is less than 2^53.
const maxExactDigits = 15

// digit reports whether the next byte is a digit.
func (p *jsonParser) digit() bool {
	return p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9'
}
