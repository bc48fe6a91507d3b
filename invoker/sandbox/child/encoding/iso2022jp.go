package encoding

import (
	"strings"
	"unicode/utf8"
)

// iso2022JP is the decoder of ISO-2022-JP, whose escape sequences change the meaning of the
// bytes that follow (https://encoding.spec.whatwg.org/#iso-2022-jp-decoder).
type iso2022JP struct {
	state, output iso2022State // output is the state that the last escape sequence chose
	lead          byte
	escaped       bool // since the last character an escape sequence was read
	out           *strings.Builder
	valid         bool
	pair          [2]byte               // of the character that is read, as EUC-JP has it
	buf           [2 * utf8.UTFMax]byte // its text
}

type iso2022State uint8

const (
	stateASCII iso2022State = iota
	stateRoman
	stateKatakana
	stateLead
	stateTrail
	stateEscapeStart
	stateEscape
)

const escapeByte = 0x1b

func (d *iso2022JP) reset() { *d = iso2022JP{} }

// decode keeps a character that in cuts in its state, so nothing is left.
func (d *iso2022JP) decode(in []byte, end bool, out *strings.Builder) (left []byte, valid bool) {
	d.out, d.valid = out, true
	for _, b := range in {
		d.next(b)
	}
	if end {
		d.finish()
	}
	d.out = nil
	return nil, d.valid
}

// character writes a character, fail an error. Both follow the last escape sequence.
func (d *iso2022JP) character(c rune) {
	d.out.WriteRune(c)
	d.escaped = false
}

func (d *iso2022JP) fail() {
	d.character(utf8.RuneError)
	d.valid = false
}

// next reads a byte.
func (d *iso2022JP) next(b byte) {
	if b == escapeByte && d.state <= stateTrail {
		if d.state == stateTrail {
			escaped := d.escaped
			d.fail()
			d.escaped = escaped
		}
		d.state = stateEscapeStart
		return
	}
	switch d.state {
	case stateASCII, stateRoman:
		d.single(b)
	case stateKatakana:
		if within(b, 0x21, 0x5f) {
			d.character(halfKatakana(b - 0x21))
		} else {
			d.fail()
		}
	case stateLead:
		if within(b, 0x21, 0x7e) {
			d.escaped, d.lead, d.state = false, b, stateTrail
		} else {
			d.fail()
		}
	case stateTrail:
		d.state = stateLead
		c := utf8.RuneError
		if within(b, 0x21, 0x7e) {
			d.pair = [2]byte{d.lead | 0x80, b | 0x80}
			c, _ = utf8.DecodeRune(character(eucJP, d.pair[:], d.buf[:0]))
		}
		if c == utf8.RuneError {
			d.fail()
		} else {
			d.character(c)
		}
	case stateEscapeStart:
		if b == '$' || b == '(' {
			d.lead, d.state = b, stateEscape
			return
		}
		d.state = d.output
		d.fail()
		d.next(b)
	case stateEscape:
		d.escape(b)
	}
}

// single reads a byte of ASCII or of JIS X 0201, which differ in two characters.
func (d *iso2022JP) single(b byte) {
	switch {
	case b >= utf8.RuneSelf || b == 0x0e || b == 0x0f:
		d.fail()
	case d.state == stateRoman && b == '\\':
		d.character('¥')
	case d.state == stateRoman && b == '~':
		d.character('‾')
	default:
		d.character(rune(b))
	}
}

// escape reads the last byte of an escape sequence. An escape sequence directly after
// another one is an error, and so is an unknown one, whose bytes are read again.
func (d *iso2022JP) escape(b byte) {
	switch string([]byte{d.lead, b}) {
	case "(B":
		d.output = stateASCII
	case "(J":
		d.output = stateRoman
	case "(I":
		d.output = stateKatakana
	case "$@", "$B":
		d.output = stateLead
	default:
		d.unknownEscape()
		d.next(b)
		return
	}
	d.state = d.output
	if d.escaped {
		d.fail()
	}
	d.escaped = true
}

func (d *iso2022JP) unknownEscape() {
	d.state = d.output
	d.fail()
	d.next(d.lead)
}

// finish reads the end of the text.
func (d *iso2022JP) finish() {
	switch d.state {
	case stateEscapeStart:
		d.fail()
	case stateEscape:
		d.unknownEscape()
		d.finish() // the byte that was read again may be the first of a pair
	case stateTrail:
		d.fail()
	}
}
