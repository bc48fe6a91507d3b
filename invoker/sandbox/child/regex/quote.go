package regex

import "fmt"

// Escape returns a pattern that matches the text (RegExp.escape).
func Escape(text []uint16) []uint16 {
	var out []uint16
	add := func(s string) {
		for _, c := range s {
			out = append(out, uint16(c))
		}
	}
	controls := map[rune]string{'\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`}
	runes := decode(text)
	for i, c := range runes {
		switch short, control := controls[c]; {
		case i == 0 && (letter(c) || c >= '0' && c <= '9'):
			add(fmt.Sprintf(`\x%02x`, c))
		case syntaxCharacter(c) || c == '/':
			add(`\` + string(c))
		case control:
			add(short)
		case punctuator(c) || spaces.Has(c) || isHigh(c) || isLow(c):
			if c < 256 {
				add(fmt.Sprintf(`\x%02x`, c))
			} else {
				add(fmt.Sprintf(`\u%04x`, c))
			}
		case c > 0xFFFF:
			c -= 0x10000
			out = append(out, uint16(0xD800+c>>10), uint16(0xDC00+c&0x3FF))
		default:
			out = append(out, uint16(c))
		}
	}
	return out
}

// punctuator is any of the other punctuators that have a meaning somewhere in a pattern.
func punctuator(c rune) bool {
	switch c {
	case ',', '-', '=', '<', '>', '#', '&', '!', '%', ':', ';', '@', '~', '\'', '`', '"':
		return true
	}
	return false
}
