package urlpattern

import (
	"strings"
	"unicode/utf8"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
)

// generateRegexp returns the regular expression of parts, and the names of its groups
// (https://urlpattern.spec.whatwg.org/#converting-part-lists-to-regular-expressions).
func generateRegexp(parts []part, o *options) (expression string, names []string) {
	var b strings.Builder
	write := func(texts ...string) {
		for _, t := range texts {
			b.WriteString(t)
		}
	}
	write("^")
	for i := range parts {
		p := &parts[i]
		if p.kind == fixedText {
			if p.modifier == "" {
				write(escapeRegexp(p.value))
			} else {
				write("(?:", escapeRegexp(p.value), ")", p.modifier)
			}
			continue
		}
		names = append(names, p.name)
		value := p.value
		switch p.kind {
		case segmentWildcard:
			value = o.segmentRegexp()
		case fullWildcard:
			value = fullWildcardRegexp
		}
		repeats := p.modifier == "*" || p.modifier == "+"
		prefix, suffix := escapeRegexp(p.prefix), escapeRegexp(p.suffix)
		switch {
		case prefix == "" && suffix == "" && !repeats:
			write("(", value, ")", p.modifier)
		case prefix == "" && suffix == "":
			write("((?:", value, ")", p.modifier, ")")
		case !repeats:
			write("(?:", prefix, "(", value, ")", suffix, ")", p.modifier)
		default:
			write("(?:", prefix, "((?:", value, ")(?:", suffix, prefix, "(?:", value, "))*)", suffix, ")")
			if p.modifier == "*" {
				write("?")
			}
		}
	}
	write("$")
	return b.String(), names
}

// generatePattern returns the normalized pattern string of parts
// (https://urlpattern.spec.whatwg.org/#converting-part-lists-to-pattern-strings).
func generatePattern(parts []part, o *options) string {
	var b strings.Builder
	for i := range parts {
		p := &parts[i]
		if p.kind == fixedText {
			if p.modifier == "" {
				b.WriteString(escapePattern(p.value))
			} else {
				b.WriteString("{" + escapePattern(p.value) + "}" + p.modifier)
			}
			continue
		}
		var previous, next *part
		if i > 0 {
			previous = &parts[i-1]
		}
		if i < len(parts)-1 {
			next = &parts[i+1]
		}
		grouped := needsGrouping(p, previous, next, o)
		if grouped {
			b.WriteString("{")
		}
		b.WriteString(escapePattern(p.prefix))
		b.WriteString(p.matcher(previous, grouped, o))
		b.WriteString(escapePattern(p.suffix))
		if grouped {
			b.WriteString("}")
		}
		b.WriteString(p.modifier)
	}
	return b.String()
}

// matcher returns the name and the expression of a group, without its prefix and suffix.
func (p *part) matcher(previous *part, grouped bool, o *options) string {
	text := ""
	if !p.numbered() {
		text = ":" + p.name
	}
	switch p.kind {
	case regexpGroup:
		text += "(" + p.value + ")"
	case segmentWildcard:
		if p.numbered() {
			text += "(" + o.segmentRegexp() + ")"
		} else if continuesName(p.suffix) {
			text += `\`
		}
	case fullWildcard:
		plain := previous == nil || previous.kind == fixedText || previous.modifier != "" || grouped || p.prefix != ""
		if p.numbered() && plain {
			text += "*"
		} else {
			text += "(" + fullWildcardRegexp + ")"
		}
	}
	return text
}

// needsGrouping reports whether a group needs braces to be read again as it is.
func needsGrouping(p, previous, next *part, o *options) bool {
	if p.suffix != "" || p.prefix != "" && p.prefix != o.prefix {
		return true
	}
	if !p.numbered() && p.kind == segmentWildcard && p.modifier == "" &&
		next != nil && next.prefix == "" && next.suffix == "" {
		if next.kind == fixedText && continuesName(next.value) || next.kind != fixedText && next.numbered() {
			return true
		}
	}
	return p.prefix == "" && o.prefix != "" && previous != nil && previous.kind == fixedText &&
		strings.HasSuffix(previous.value, o.prefix)
}

// continuesName reports whether text after a name would belong to it.
func continuesName(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	return size > 0 && regex.Identifier(c, true)
}

// Characters with a meaning in regular expressions, and in patterns.
const (
	regexpSyntax  = `.+*?^${}()[]|/\`
	patternSyntax = `+*?:{}()\`
)

func escapeRegexp(text string) string  { return escape(text, regexpSyntax) }
func escapePattern(text string) string { return escape(text, patternSyntax) }

// escape puts a backslash before the characters of a set.
func escape(text, set string) string {
	if !strings.ContainsAny(text, set) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if strings.ContainsRune(set, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
