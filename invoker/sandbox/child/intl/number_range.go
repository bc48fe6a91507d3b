package intl

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Range writes a range of numbers. Affixes that both have are written once.
func (f *NumberFormat) Range(a, b Decimal) []Part {
	from, to := f.Parts(a), f.Parts(b)
	misc := func(key string) string { return cmp.Or(f.pattern("miscPatterns", key), "{0}–{1}") }
	if Text(from) == Text(to) {
		sign := strings.Replace(misc("approximately"), "{0}", "", 1)
		return append([]Part{{Type: "approximatelySign", Value: sign, Source: "shared"}}, sourced(from, "shared")...)
	}
	// An affix of one character is written twice.
	i := 0
	for i < len(from)-1 && i < len(to)-1 && shareable(from[i], to[i]) {
		i++
	}
	if utf8.RuneCountInString(Text(from[:i])) < 2 {
		i = 0
	}
	j := 0
	for j < len(from)-1-i && j < len(to)-1-i && shareable(from[len(from)-1-j], to[len(to)-1-j]) {
		j++
	}
	if utf8.RuneCountInString(Text(from[len(from)-j:])) < 2 {
		j = 0
	}
	before, after := from[:i], from[len(from)-j:]
	from, to = from[i:len(from)-j], to[i:len(to)-j]
	out := sourced(before, "shared")
	pattern := misc("range")
	if len(from) > 0 && !digitsOnly(from) || !digitsOnly(to) {
		pattern = strings.NewReplacer("{0}–", "{0} – ", "{0}-", "{0} - ").Replace(pattern)
	}
	for _, t := range placeholders(pattern) {
		switch t {
		case "{0}":
			out = append(out, sourced(from, "startRange")...)
		case "{1}":
			out = append(out, sourced(to, "endRange")...)
		default:
			out = append(out, Part{Type: "literal", Value: t, Source: "shared"})
		}
	}
	return append(out, sourced(after, "shared")...)
}

func shareable(a, b Part) bool {
	switch a.Type {
	case "currency", "unit", "percentSign", "literal", "compact", "minusSign", "plusSign":
		return a == b
	}
	return false
}

func digitsOnly(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool {
		switch p.Type {
		case "integer", "group", "decimal", "fraction":
			return false
		}
		return true
	})
}
