package intl

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// affixes adds the prefix and the suffix of the number.
func (f *NumberFormat) affixes(w written, sign, category string) []Part {
	o := &f.Options
	pattern := ""
	switch o.Style {
	case "percent":
		pattern = f.pattern("percentFormats", "standard")
	case "unit":
		if o.percentUnit() {
			pattern = f.pattern("percentFormats", "standard")
		}
	case "currency":
		if o.CurrencyDisplay != "name" {
			pattern = f.currencyPattern()
		}
	}
	if w.compact != "" {
		if pattern == "" || strings.Contains(w.compact, "¤") || o.Style == "decimal" {
			pattern = w.compact
		}
	}
	if pattern == "" {
		pattern = f.pattern("decimalFormats", "standard")
	}
	positive, negative, has := strings.Cut(pattern, ";")
	prefix, suffix := split(positive)
	switch {
	case sign == "-" && has && (negative != "-"+positive):
		prefix, suffix = split(negative)
		if !strings.Contains(prefix+suffix, "-") && !strings.Contains(prefix+suffix, "(") {
			prefix = "-" + prefix
		}
	case sign != "":
		prefix = sign + prefix
	}
	if sign == "+" {
		prefix, suffix = strings.Replace(prefix, "-", "+", 1), strings.Replace(suffix, "-", "+", 1)
	}
	parts := tidy(slices.Concat(f.affix(prefix, false), w.parts, f.affix(suffix, true)))
	if w.compact != "" && pattern != w.compact {
		before, after := split(w.compact)
		parts = slices.Concat(f.affix(prefix, false), f.affix(before, false), w.parts, f.affix(after, true), f.affix(suffix, true))
	}
	switch {
	case o.Style == "currency" && o.CurrencyDisplay == "name":
		form := f.pattern("currencyFormats", "unitPattern-count-"+category)
		if form == "" {
			form = f.pattern("currencyFormats", "unitPattern-count-other")
		}
		return surround(form, parts, Part{Type: "currency", Value: f.currencyName(category)})
	case o.Style == "unit" && !o.percentUnit():
		return f.unit(parts, category)
	}
	return parts
}

func (f *NumberFormat) currencyPattern() string {
	if f.Options.CurrencySign == "accounting" {
		return f.pattern("currencyFormats", "accounting")
	}
	return f.pattern("currencyFormats", "standard")
}

// tidy makes the spaces at the end of a compact number's sign literals.
func tidy(parts []Part) []Part {
	for i, p := range parts {
		if p.Type != "compact" {
			continue
		}
		if word := strings.TrimRightFunc(p.Value, unicode.IsSpace); word != p.Value {
			parts[i].Value = word
			parts = slices.Insert(parts, i+1, Part{Type: "literal", Value: p.Value[len(word):]})
		}
	}
	return parts
}

// split returns what a pattern has before and after its number.
func split(pattern string) (prefix, suffix string) {
	quoted := false
	start, end := -1, -1
	for i, c := range pattern {
		switch {
		case c == '\'':
			quoted = !quoted
		case !quoted && strings.ContainsRune("#0,.", c) && (c != '.' && c != ',' || start >= 0 && end == i):
			if start < 0 {
				start = i
			}
			end = i + 1
		}
	}
	if start < 0 {
		return pattern, ""
	}
	return pattern[:start], pattern[end:]
}

// affix writes a prefix or a suffix of a pattern.
func (f *NumberFormat) affix(text string, after bool) []Part {
	var parts []Part
	quoted := false
	add := func(kind, value string) { parts = append(parts, Part{Type: kind, Value: value}) }
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
			parts = f.text(parts, string(c))
		case c == '-':
			add("minusSign", f.symbol("minusSign"))
		case c == '+':
			add("plusSign", f.symbol("plusSign"))
		case c == '%':
			kind := "percentSign"
			if f.Options.Style == "unit" {
				kind = "unit"
			}
			add(kind, f.symbol("percentSign"))
		case c == '¤':
			s := f.currencySymbol()
			first, _ := utf8.DecodeRuneInString(s)
			last, _ := utf8.DecodeLastRuneInString(s)
			if after && i == 0 && spaced(first) {
				parts = literal(parts, "\u00a0")
			}
			add("currency", s)
			if !after && i+len("¤") == len(text) && spaced(last) {
				parts = literal(parts, "\u00a0")
			}
		default:
			parts = f.text(parts, string(c))
		}
	}
	return parts
}

// text appends the text of a pattern: spaces are literals, the rest is the sign of a compact
// number where there is one.
func (f *NumberFormat) text(parts []Part, s string) []Part {
	if f.Options.Notation != "compact" || strings.TrimSpace(s) == "" && (len(parts) == 0 || parts[len(parts)-1].Type != "compact") || strings.ContainsAny(s, "()\u200f\u200e\u061c") {
		return literal(parts, s)
	}
	if n := len(parts); n > 0 && parts[n-1].Type == "compact" {
		parts[n-1].Value += s
		return parts
	}
	return append(parts, Part{Type: "compact", Value: s})
}

// spaced reports whether a space stands between a currency that begins or ends with c and
// the number.
func spaced(c rune) bool { return !unicode.IsSymbol(c) && !unicode.Is(unicode.Z, c) }

func (f *NumberFormat) currencySymbol() string {
	code := f.Options.Currency
	names := cldr.Of("currency", f.data)
	switch f.Options.CurrencyDisplay {
	case "code":
		return code
	case "narrowSymbol":
		if s := names.Get(code + "/symbol-alt-narrow"); s != "" {
			return s
		}
	}
	if s := names.Get(code + "/symbol"); s != "" {
		return s
	}
	return code
}

func (f *NumberFormat) currencyName(category string) string {
	names := cldr.Of("currency", f.data)
	for _, k := range []string{"/displayName-count-" + category, "/displayName-count-other", "/displayName"} {
		if s := names.Get(f.Options.Currency + k); s != "" {
			return s
		}
	}
	return f.Options.Currency
}

// surround fills a pattern: {0} is the number and {1} the word; other text becomes literals.
func surround(pattern string, number []Part, word Part) []Part {
	var out []Part
	for _, t := range placeholders(pattern) {
		switch {
		case t == "{0}":
			out = append(out, number...)
		case t == "{1}":
			out = append(out, word)
		default:
			out = literal(out, t)
		}
	}
	return out
}

// unit writes the unit of a number.
func (f *NumberFormat) unit(number []Part, category string) []Part {
	units := cldr.Of("unit", f.data)
	width := f.Options.UnitDisplay
	form := func(name string) string {
		for _, c := range []string{category, "other"} {
			if p := units.Get(width + "/" + name + "/" + c); p != "" {
				return p
			}
		}
		return ""
	}
	pattern := form(f.Options.Unit)
	if one, per, ok := strings.Cut(f.Options.Unit, "-per-"); ok && pattern == "" {
		pattern = form(one)
		if p := units.Get(width + "/" + per + "/per"); p != "" {
			pattern = strings.Replace(p, "{0}", pattern, 1)
		} else {
			below := units.Get(width + "/" + per + "/one")
			if below == "" {
				below = units.Get(width + "/" + per + "/other")
			}
			below = strings.TrimSpace(strings.ReplaceAll(below, "{0}", ""))
			pattern = fill(strings.Replace(units.Get(width+"/per"), "{1}", below, 1), pattern)
		}
	}
	var out []Part
	for _, t := range placeholders(pattern) {
		if t == "{0}" {
			out = append(out, number...)
			continue
		}
		word := strings.TrimFunc(t, unicode.IsSpace)
		at := strings.Index(t, word)
		out = literal(out, t[:at])
		if word != "" {
			out = append(out, Part{Type: "unit", Value: word})
		}
		out = literal(out, t[at+len(word):])
	}
	return out
}
