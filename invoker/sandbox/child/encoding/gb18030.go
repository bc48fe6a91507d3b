package encoding

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

var gb18030 = simplifiedchinese.GB18030.NewDecoder()

// replacementSequence is U+FFFD in gb18030, the only legacy encoding that has the character.
const replacementSequence = "\x84\x31\xa4\x37"

// scanGB18030 is the decoder of gb18030, with characters of two and four bytes
// (https://encoding.spec.whatwg.org/#gb18030-decoder).
func scanGB18030(in, buf []byte) (text []byte, size int) {
	switch {
	case in[0] == 0x80:
		return append(buf, "€"...), 1
	case in[0] == 0xff:
		return nil, 1
	case len(in) == 1:
		return nil, 0
	case !within(in[1], '0', '9'):
		return gb18030Pair(in, buf)
	case len(in) == 2:
		return nil, 0
	case !within(in[2], 0x81, 0xfe):
		return nil, 1
	case len(in) == 3:
		return nil, 0
	case !within(in[3], '0', '9'):
		return nil, 1
	}
	switch string(in[:4]) {
	case replacementSequence:
		return append(buf, "\ufffd"...), 4
	case "\x81\x35\xf4\x37": // which x/text has with the character of A8BC
		return append(buf, "\ue7c7"...), 4
	}
	return character(gb18030, in[:4], buf), 4
}

// gb18030Pair reads a character of two bytes. x/text lacks those that the standard maps to
// the private use area, and those that have left it since.
func gb18030Pair(in, buf []byte) (text []byte, size int) {
	text, size = pair(gb18030, in, buf, within(in[1], 0x40, 0x7e) || within(in[1], 0x80, 0xfe))
	if text == nil {
		if c := gb18030Missing(in[0], in[1]); c != 0 {
			return utf8.AppendRune(buf, c), 2
		}
	}
	return text, size
}

// gb18030Missing returns a character that x/text lacks, 0 for none: in one of the three
// areas for characters of users, or in one of the ranges.
func gb18030Missing(lead, trail byte) rune {
	switch {
	case within(lead, 0xaa, 0xaf) && within(trail, 0xa1, 0xfe):
		return 0xe000 + rune(lead-0xaa)*94 + rune(trail-0xa1)
	case within(lead, 0xf8, 0xfe) && within(trail, 0xa1, 0xfe):
		return 0xe234 + rune(lead-0xf8)*94 + rune(trail-0xa1)
	case within(lead, 0xa1, 0xa7) && within(trail, 0x40, 0x7e):
		return 0xe4c6 + rune(lead-0xa1)*96 + rune(trail-0x40)
	case within(lead, 0xa1, 0xa7) && within(trail, 0x80, 0xa0):
		return 0xe4c6 + rune(lead-0xa1)*96 + rune(trail-0x41)
	}
	code := uint16(lead)<<8 | uint16(trail)
	for _, r := range gb18030Ranges {
		if r.first <= code && code <= r.last {
			return r.to + rune(code-r.first)
		}
	}
	return 0
}

// gb18030Ranges are pairs from first to last, whose characters begin at to, of the index of
// 18 September 2024 (https://encoding.spec.whatwg.org/#index-gb18030).
var gb18030Ranges = []struct {
	first, last uint16
	to          rune
}{
	{0xa2ab, 0xa2b0, 0xe766}, {0xa2e4, 0xa2e4, 0xe76d}, {0xa2ef, 0xa2f0, 0xe76e}, {0xa2fd, 0xa2fe, 0xe770},
	{0xa4f4, 0xa4fe, 0xe772}, {0xa5f7, 0xa5fe, 0xe77d}, {0xa6b9, 0xa6c0, 0xe785}, {0xa6d9, 0xa6d9, 0xfe10},
	{0xa6da, 0xa6da, 0xfe12}, {0xa6db, 0xa6db, 0xfe11}, {0xa6dc, 0xa6df, 0xfe13}, {0xa6ec, 0xa6ed, 0xfe17},
	{0xa6f3, 0xa6f3, 0xfe19}, {0xa6f6, 0xa6fe, 0xe797}, {0xa7c2, 0xa7d0, 0xe7a0}, {0xa7f2, 0xa7fe, 0xe7af},
	{0xa896, 0xa8a0, 0xe7bc}, {0xa8bc, 0xa8bc, 0x1e3f}, {0xa8c1, 0xa8c4, 0xe7c9}, {0xa8ea, 0xa8fe, 0xe7cd},
	{0xa958, 0xa958, 0xe7e2}, {0xa95b, 0xa95b, 0xe7e3}, {0xa95d, 0xa95f, 0xe7e4}, {0xa997, 0xa9a3, 0xe7f4},
	{0xa9f0, 0xa9fe, 0xe801}, {0xd7fa, 0xd7fe, 0xe810}, {0xfe51, 0xfe53, 0xe816}, {0xfe59, 0xfe59, 0x9fb4},
	{0xfe61, 0xfe61, 0x9fb5}, {0xfe66, 0xfe67, 0x9fb6}, {0xfe6c, 0xfe6c, 0xe831}, {0xfe6d, 0xfe6d, 0x9fb8},
	{0xfe76, 0xfe76, 0xe83b}, {0xfe7e, 0xfe7e, 0x9fb9}, {0xfe90, 0xfe90, 0x9fba}, {0xfe91, 0xfe91, 0xe855},
	{0xfea0, 0xfea0, 0x9fbb},
}
