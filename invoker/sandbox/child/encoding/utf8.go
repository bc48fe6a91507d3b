// Package encoding decodes text as the Encoding standard does
// (https://encoding.spec.whatwg.org/), which Go's packages do not: they replace each
// invalid byte, or each run of them, where the standard replaces each maximal invalid part.
package encoding

import (
	"strings"
	"unicode/utf8"
)

// DecodeUTF8 decodes text and replaces each maximal invalid part by U+FFFD
// (https://encoding.spec.whatwg.org/#utf-8-decoder). In "a", 0xe2 0x82, 0xff, "b" there are
// two, a character that is cut short and a byte that begins none: "a\ufffd\ufffdb".
func DecodeUTF8(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	var b strings.Builder
	for len(text) > 0 {
		char, size := DecodeRune(text)
		b.WriteRune(char)
		text = text[size:]
	}
	return b.String()
}

// DecodeRune is utf8.DecodeRune for text that is not empty, except that the size of invalid
// text is that of its maximal invalid part, not 1: the bytes that begin a character which
// the next byte does not continue.
func DecodeRune(text []byte) (char rune, size int) {
	char, size = utf8.DecodeRune(text)
	if char != utf8.RuneError || size != 1 {
		return char, size
	}
	for n := min(len(text), utf8.UTFMax-1); n > 1; n-- {
		if !utf8.FullRune(text[:n]) {
			return char, n
		}
	}
	return char, 1
}
