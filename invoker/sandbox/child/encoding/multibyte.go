package encoding

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/transform"
)

// The decoders of x/text know the characters, and are asked for one at a time: how much of an
// invalid sequence is replaced, and that an ASCII byte never is, they decide otherwise than
// the standard.

// multibyte decodes an encoding whose characters have several bytes and no state between
// them.
type multibyte struct {
	scan scanner
	buf  [2 * utf8.UTFMax]byte // of the character that is read
}

// scanner reads the first character of in, which is not empty. It returns its text, which it
// writes to buf, and its size. An invalid sequence has no text; its size is that of the part
// that one U+FFFD replaces. The size is 0 where in ends within the character.
type scanner func(in, buf []byte) (text []byte, size int)

// decode decodes in and returns the bytes of a character that in cuts. At the end these are
// one error.
func (m *multibyte) decode(in []byte, end bool, out *strings.Builder) (left []byte, valid bool) {
	valid = true
	for len(in) > 0 {
		if in[0] < utf8.RuneSelf {
			out.WriteByte(in[0])
			in = in[1:]
			continue
		}
		text, size := m.scan(in, m.buf[:0])
		switch {
		case size == 0 && !end:
			return in, valid
		case size == 0:
			size = len(in)
		}
		if len(text) == 0 {
			text, valid = append(m.buf[:0], "\ufffd"...), false
		}
		out.Write(text)
		in = in[size:]
	}
	return nil, valid
}

func (*multibyte) reset() {}

// scannerOf returns the scanner of an encoding, nil for others. Their decoders are those of
// https://encoding.spec.whatwg.org/#legacy-multi-byte-chinese-(simplified)-encodings and the
// sections after it.
func scannerOf(name string) scanner {
	switch name {
	case "gb18030", "gbk": // https://encoding.spec.whatwg.org/#gbk-decoder
		return scanGB18030
	case "big5":
		return pairScanner(traditionalchinese.Big5.NewDecoder(), big5Pair)
	case "euc-kr":
		return pairScanner(korean.EUCKR.NewDecoder(), euckrPair)
	case "shift_jis":
		return scanShiftJIS
	case "euc-jp":
		return scanEUCJP
	case "x-user-defined":
		return func(in, buf []byte) ([]byte, int) { return utf8.AppendRune(buf, 0xf780+rune(in[0])-0x80), 1 }
	}
	return nil
}

func within(b, low, high byte) bool { return low <= b && b <= high }

// character returns the character of a whole sequence, nil if there is none. The decoders of
// x/text for these encodings have no state.
func character(t transform.Transformer, sequence, buf []byte) []byte {
	n, read, err := t.Transform(buf[:cap(buf)], sequence, true)
	if r, _ := utf8.DecodeRune(buf[:n]); r == utf8.RuneError || err != nil || read != len(sequence) {
		return nil
	}
	return buf[:n]
}

// pair returns the character of the first two bytes if they are in its range. Of an invalid
// pair an ASCII byte is not replaced.
func pair(t transform.Transformer, in, buf []byte, inRange bool) (text []byte, size int) {
	if inRange {
		text = character(t, in[:2], buf)
	}
	if text == nil && in[1] < utf8.RuneSelf {
		return nil, 1
	}
	return text, 2
}

// pairScanner makes the scanner of an encoding with pairs from 81 to FE.
func pairScanner(t transform.Transformer, inRange func(trail byte) bool) scanner {
	return func(in, buf []byte) ([]byte, int) {
		switch {
		case !within(in[0], 0x81, 0xfe):
			return nil, 1
		case len(in) == 1:
			return nil, 0
		}
		return pair(t, in, buf, inRange(in[1]))
	}
}

func big5Pair(trail byte) bool  { return within(trail, 0x40, 0x7e) || within(trail, 0xa1, 0xfe) }
func euckrPair(trail byte) bool { return within(trail, 0x41, 0xfe) }

var shiftJIS = japanese.ShiftJIS.NewDecoder()

// scanShiftJIS is https://encoding.spec.whatwg.org/#shift_jis-decoder.
func scanShiftJIS(in, buf []byte) (text []byte, size int) {
	switch lead := in[0]; {
	case lead == 0x80:
		return append(buf, "\u0080"...), 1
	case within(lead, 0xa1, 0xdf):
		return utf8.AppendRune(buf, halfKatakana(lead-0xa1)), 1
	case !within(lead, 0x81, 0x9f) && !within(lead, 0xe0, 0xfc):
		return nil, 1
	case len(in) == 1:
		return nil, 0
	case within(lead, 0xf0, 0xf9) && shiftJISPair(in[1]): // characters of users, in 188 columns
		offset := byte(0x40)
		if in[1] >= 0x7f {
			offset = 0x41
		}
		return utf8.AppendRune(buf, 0xe000+rune(lead-0xf0)*188+rune(in[1]-offset)), 2
	}
	return pair(shiftJIS, in, buf, shiftJISPair(in[1]))
}

func shiftJISPair(trail byte) bool { return within(trail, 0x40, 0x7e) || within(trail, 0x80, 0xfc) }

// halfKatakana returns a character of the katakana of half width, from 0.
func halfKatakana(n byte) rune { return 0xff61 + rune(n) }

var eucJP = japanese.EUCJP.NewDecoder()

// scanEUCJP is https://encoding.spec.whatwg.org/#euc-jp-decoder. A character of JIS X 0212
// has 8F before its pair.
func scanEUCJP(in, buf []byte) (text []byte, size int) {
	lead := in[0]
	switch {
	case lead != 0x8e && lead != 0x8f && !within(lead, 0xa1, 0xfe):
		return nil, 1
	case len(in) == 1:
		return nil, 0
	case lead == 0x8e && within(in[1], 0xa1, 0xdf):
		return utf8.AppendRune(buf, halfKatakana(in[1]-0xa1)), 2
	case lead != 0x8f || !within(in[1], 0xa1, 0xfe):
		return pair(eucJP, in, buf, lead >= 0xa1 && within(in[1], 0xa1, 0xfe))
	case len(in) == 2:
		return nil, 0
	case within(in[2], 0xa1, 0xfe):
		return character(eucJP, in[:3], buf), 3
	case in[2] < utf8.RuneSelf:
		return nil, 2
	}
	return nil, 3
}
