package api

import (
	"strings"
	"unicode/utf8"
)

// TruncateText returns s if it has at most n bytes, and otherwise its first n bytes less a
// split character. A shorter text is a copy, so that it does not keep s in memory.
func TruncateText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}
