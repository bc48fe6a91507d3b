package encoding

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// replacement is the name of the encoding that stands for those which are unsafe to decode.
const replacement = "replacement"

// The encodings that are decoded without x/text.
const (
	utf8Name    = "utf-8"
	utf16LEName = "utf-16le"
	utf16BEName = "utf-16be"
)

// Decoder decodes one encoding in chunks (https://encoding.spec.whatwg.org/#decoder).
type Decoder struct {
	// Name is the name of the encoding in lower case.
	Name   string
	single *charmap.Charmap // of an encoding of one byte, else nil
	legacy legacyDecoder    // of the other legacy encodings, else nil
	left   []byte           // of a character that the last chunk cut, at most a few bytes
	begun  bool             // text was decoded, so no byte order mark can follow
}

// legacyDecoder decodes a chunk. It returns the bytes that the next chunk continues; at the
// end of the text there are none. valid is false if a part was replaced by U+FFFD.
type legacyDecoder interface {
	decode(in []byte, end bool, out *strings.Builder) (left []byte, valid bool)
	reset()
}

// NewDecoder returns a decoder for a label
// (https://encoding.spec.whatwg.org/#concept-encoding-get). ok is false for an unknown
// label, and for one of the encoding replacement.
func NewDecoder(label string) (d *Decoder, ok bool) {
	label = strings.Map(lowerASCII, strings.Trim(label, "\t\n\f\r "))
	if !ascii(label) { // htmlindex would fold and trim beyond ASCII
		return nil, false
	}
	found, err := htmlindex.Get(label)
	if err != nil || strings.TrimSpace(label) != label {
		return nil, false
	}
	name, err := htmlindex.Name(found)
	if err != nil || name == replacement {
		return nil, false
	}
	d = &Decoder{Name: name}
	switch name {
	case utf8Name, utf16LEName, utf16BEName:
	case "iso-2022-jp":
		d.legacy = &iso2022JP{}
	case "iso-8859-8-i": // differs in the direction of the text, not in its characters
		d.single = charmap.ISO8859_8
	default:
		d.single, ok = found.(*charmap.Charmap)
		if !ok {
			scan := scannerOf(name)
			if scan == nil {
				return nil, false
			}
			d.legacy = &multibyte{scan: scan}
		}
	}
	return d, true
}

func lowerASCII(c rune) rune {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}

// Decode decodes the next chunk. With more, the bytes of a character that the chunk cuts
// are kept for the next call, otherwise the text ends and the decoder begins again. A byte
// order mark at the start of UTF-8 and UTF-16 is removed unless keepMark is set. Invalid
// parts become U+FFFD; valid reports that there were none.
func (d *Decoder) Decode(chunk []byte, more, keepMark bool) (text string, valid bool) {
	in := slices.Concat(d.left, chunk)
	d.left = nil
	switch {
	case d.single != nil:
		text, valid = d.bytewise(chunk)
	case d.legacy != nil:
		var b strings.Builder
		b.Grow(len(in))
		d.left, valid = d.legacy.decode(in, !more, &b)
		d.left, text = bytes.Clone(d.left), b.String()
	case d.Name == utf8Name:
		if more {
			in = d.keep(in, wholeUTF8(in))
		}
		text, valid = DecodeUTF8(in), utf8.Valid(in)
	default:
		text, valid = d.utf16(in, more)
	}
	if d.single == nil && d.legacy == nil && !d.begun && text != "" {
		d.begun = true
		if !keepMark {
			text = strings.TrimPrefix(text, "\ufeff")
		}
	}
	if !more {
		d.Reset()
	}
	return text, valid
}

// Reset forgets what earlier chunks left.
func (d *Decoder) Reset() {
	d.left, d.begun = nil, false
	if d.legacy != nil {
		d.legacy.reset()
	}
}

// keep returns in[:whole] and stores the rest for the next chunk.
func (d *Decoder) keep(in []byte, whole int) []byte {
	d.left = bytes.Clone(in[whole:])
	return in[:whole]
}

// wholeUTF8 returns the number of bytes of text that are complete characters, or invalid
// sequences that no further byte can complete.
func wholeUTF8(text []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}

// utf16 is the shared UTF-16 decoder (https://encoding.spec.whatwg.org/#shared-utf-16-decoder).
func (d *Decoder) utf16(in []byte, more bool) (text string, valid bool) {
	var order binary.ByteOrder = binary.LittleEndian
	if d.Name == utf16BEName {
		order = binary.BigEndian
	}
	whole := len(in) &^ 1
	cut := whole < len(in)
	if whole > 0 && isLead(order.Uint16(in[whole-2:])) {
		whole -= 2 // its trail may follow; at the end it is one error, with an odd byte after it
		cut = true
	}
	units := make([]uint16, 0, whole/2+1)
	for i := 0; i < whole; i += 2 {
		units = append(units, order.Uint16(in[i:]))
	}
	if cut && more {
		d.keep(in, whole)
	}
	runes := utf16.Decode(units)
	valid = slices.Equal(utf16.Encode(runes), units)
	if cut && !more {
		runes, valid = append(runes, utf8.RuneError), false
	}
	return string(runes), valid
}

func isLead(unit uint16) bool { return 0xd800 <= unit && unit < 0xdc00 }

// The bytes of the control characters C1.
const firstC1, lastC1 = 0x80, 0x9f

// bytewise is the single-byte decoder (https://encoding.spec.whatwg.org/#single-byte-decoder).
// The indexes of the standard map a C1 byte without another character to the control character of
// the same number. The tables of x/text do not.
func (d *Decoder) bytewise(in []byte) (text string, valid bool) {
	var b strings.Builder
	b.Grow(len(in))
	valid = true
	for _, c := range in {
		char := d.single.DecodeByte(c)
		if char == utf8.RuneError {
			if c >= firstC1 && c <= lastC1 {
				char = rune(c)
			} else {
				valid = false
			}
		}
		b.WriteRune(char)
	}
	return b.String(), valid
}
