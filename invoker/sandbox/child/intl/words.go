package intl

import (
	"cmp"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// resolveLocale chooses a locale for a class that has no keywords.
func resolveLocale(tags []Tag) (locale, data string) {
	locale, data, _ = Resolve(tags, nil, nil, nil)
	return locale, data
}

// PluralRules is an Intl.PluralRules.
type PluralRules struct {
	Locale string
	Type   string // cardinal or ordinal
	Digits DigitOptions
	data   string
}

// NewPluralRules makes one.
func NewPluralRules(tags []Tag, kind string, digits DigitOptions) *PluralRules {
	locale, data := resolveLocale(tags)
	return &PluralRules{locale, kind, digits, data}
}

func (p *PluralRules) table() string {
	if p.Type == "ordinal" {
		return "ordinals"
	}
	return "plurals"
}

// Select returns the category of a number.
func (p *PluralRules) Select(d Decimal) string {
	if d.nan || d.infinite {
		return "other"
	}
	r, fractions := p.Digits.rounded(d)
	return pluralOf(p.data, p.table(), operandsOf(r.plain(p.Digits.MinimumInteger, fractions), 0))
}

// SelectRange returns the category of a range of numbers.
func (p *PluralRules) SelectRange(a, b Decimal) string {
	from, to := p.Select(a), p.Select(b)
	for l := p.data; l != "und"; l = cldr.Parent(l) {
		for rule := range strings.FieldsSeq(cldr.Table("pluralRanges")[l]) {
			if category, ok := strings.CutPrefix(rule, from+"+"+to+"="); ok {
				return category
			}
		}
	}
	return to
}

// Categories returns those of the locale.
func (p *PluralRules) Categories() []string { return PluralCategories(p.data, p.table()) }

// ListFormat is an Intl.ListFormat.
type ListFormat struct {
	Locale, Type, Style string
	data                string
}

// NewListFormat makes one.
func NewListFormat(tags []Tag, kind, style string) *ListFormat {
	locale, data := resolveLocale(tags)
	return &ListFormat{locale, kind, style, data}
}

// Parts writes a list.
func (f *ListFormat) Parts(items []string) []Part {
	kind := map[string]string{"conjunction": "standard", "disjunction": "or", "unit": "unit"}[f.Type]
	if f.Style != "long" {
		kind += "-" + f.Style
	}
	pattern := func(at string) string {
		return cldr.Of("list", f.data).Get("listPattern-type-" + kind + "/" + at)
	}
	element := func(s string) []Part { return []Part{{Type: "element", Value: s}} }
	join := func(form string, a, b []Part) []Part {
		var out []Part
		for _, t := range placeholders(form) {
			switch t {
			case "{0}":
				out = append(out, a...)
			case "{1}":
				out = append(out, b...)
			default:
				out = literal(out, t)
			}
		}
		return out
	}
	last := func(at string, next string) string { return f.euphonic(pattern(at), next) }
	switch n := len(items); n {
	case 0:
		return nil
	case 1:
		return element(items[0])
	case 2:
		return join(last("2", items[1]), element(items[0]), element(items[1]))
	default:
		out := join(last("end", items[n-1]), element(items[n-2]), element(items[n-1]))
		for i := n - 3; i > 0; i-- {
			out = join(pattern("middle"), element(items[i]), out)
		}
		return join(pattern("start"), element(items[0]), out)
	}
}

// euphonic changes the Spanish "y" to "e" before the sound of i, and "o" to "u" before that
// of o.
func (f *ListFormat) euphonic(pattern, next string) string {
	if f.data != "es" && !strings.HasPrefix(f.data, "es-") {
		return pattern
	}
	s := strings.ToLower(next)
	switch f.Type {
	case "conjunction":
		if strings.HasPrefix(s, "i") || strings.HasPrefix(s, "hi") && !strings.HasPrefix(s, "hie") && !strings.HasPrefix(s, "hia") {
			return strings.Replace(pattern, " y ", " e ", 1)
		}
	case "disjunction":
		if strings.HasPrefix(s, "o") || strings.HasPrefix(s, "ho") || strings.HasPrefix(s, "8") || s == "11" || strings.HasPrefix(s, "11 ") {
			return strings.Replace(pattern, " o ", " u ", 1)
		}
	}
	return pattern
}

// RelativeTimeFormat is an Intl.RelativeTimeFormat.
type RelativeTimeFormat struct {
	Locale, Style, Numeric string
	Number                 *NumberFormat
	data                   string
}

// NewRelativeTimeFormat makes one.
func NewRelativeTimeFormat(tags []Tag, style, numeric, numberingSystem string) *RelativeTimeFormat {
	o := NumberOptions{NumberingSystem: numberingSystem}
	o.Defaults()
	o.Digits, _ = (&RawDigits{}).Resolve("standard", 0, 3)
	n := NewNumberFormat(tags, o)
	return &RelativeTimeFormat{n.Locale, style, numeric, n, n.data}
}

// Parts writes a number of units from now. ok is false if unit is none.
func (f *RelativeTimeFormat) Parts(value float64, unit string) (parts []Part, ok bool) {
	unit = strings.TrimSuffix(unit, "s")
	switch unit {
	case "second", "minute", "hour", "day", "week", "month", "quarter", "year":
	default:
		return nil, false
	}
	key := "relative/" + unit
	if f.Style != "long" {
		key += "-" + f.Style
	}
	fields := cldr.Of("list", f.data)
	d := NewDecimal(value)
	if f.Numeric == "auto" && value == float64(int(value)) && !(d.negative && d.zero()) {
		if word := fields.Get(key + "/relative-type-" + strings.TrimSuffix(numberKey(value), ".0")); word != "" {
			return literal(nil, word), true
		}
	}
	if f.Numeric == "auto" && d.zero() {
		if word := fields.Get(key + "/relative-type-0"); word != "" {
			return literal(nil, word), true
		}
	}
	side := "future"
	if d.negative {
		side = "past"
	}
	d.negative = false
	number, category := f.Number.write(d)
	pattern := ""
	for _, c := range []string{category, "other"} {
		if pattern == "" {
			pattern = fields.Get(key + "/relativeTime-type-" + side + "/relativeTimePattern-count-" + c)
		}
	}
	for _, t := range placeholders(pattern) {
		if t == "{0}" {
			for _, p := range number {
				p.Unit = unit
				parts = append(parts, p)
			}
			continue
		}
		parts = literal(parts, t)
	}
	return parts, true
}

// numberKey returns an integer as it is written in the keys of the data.
func numberKey(n float64) string {
	d := NewDecimal(n)
	s := d.plain(1, 0)
	if d.negative && !d.zero() {
		s = "-" + s
	}
	return s
}

// DisplayNames is an Intl.DisplayNames.
type DisplayNames struct {
	Locale, Type, Style, Fallback, LanguageDisplay string
	data                                           string
}

// NewDisplayNames makes one.
func NewDisplayNames(tags []Tag, d DisplayNames) *DisplayNames {
	d.Locale, d.data = resolveLocale(tags)
	return &d
}

// Of returns the name of a code, "" if there is none. A code that is not of the type's form
// is a RangeError.
func (d *DisplayNames) Of(code string) (string, error) {
	bad := RangeError("Invalid argument to Intl.DisplayNames.prototype.of")
	names := cldr.Of("name", d.data)
	narrow := func(key string) string {
		if d.Style != "long" {
			if s := names.Get(key + "-alt-short"); s != "" {
				return s
			}
		}
		return names.Get(key)
	}
	lower := strings.ToLower(code)
	switch d.Type {
	case "language":
		t, ok := ParseTag(code)
		if !ok || len(t.Keywords)+len(t.other)+len(t.attributes) > 0 {
			return "", bad
		}
		return d.language(names, &t, narrow), nil
	case "region":
		if !alphanumeric(lower, 'a', 2, 2) && !alphanumeric(lower, '0', 3, 3) {
			return "", bad
		}
		return d.or(narrow("region/"+strings.ToUpper(code)), strings.ToUpper(code)), nil
	case "script":
		if !alphanumeric(lower, 'a', 4, 4) {
			return "", bad
		}
		code = strings.ToUpper(lower[:1]) + lower[1:]
		name := names.Get("script/" + code + "-alt-stand-alone")
		if name == "" {
			name = narrow("script/" + code)
		}
		return d.or(name, code), nil
	case "currency":
		if !alphanumeric(lower, 'a', 3, 3) {
			return "", bad
		}
		return d.currency(strings.ToUpper(code)), nil
	case "calendar":
		key := map[string]string{"gregory": "gregorian", "ethioaa": "ethiopic-amete-alem"}[lower]
		return d.or(names.Get("calendar/"+cmp.Or(key, lower)), lower), nil
	}
	key := map[string]string{"weekOfYear": "week", "dayPeriod": "dayperiod", "timeZoneName": "zone"}[code]
	switch code {
	case "era", "year", "quarter", "month", "weekOfYear", "weekday", "day", "dayPeriod", "hour", "minute", "second", "timeZoneName":
	default:
		return "", bad
	}
	key = "name/" + cmp.Or(key, code)
	if d.Style != "long" {
		key += "-" + d.Style
	}
	return d.or(cldr.Of("date", d.data).Get(key), code), nil
}

// currency returns the name or the symbol of a currency.
func (d *DisplayNames) currency(code string) string {
	key := "/displayName"
	switch d.Style {
	case "short":
		key = "/symbol"
	case "narrow":
		key = "/symbol-alt-narrow"
	}
	name := cldr.Of("currency", d.data).Get(code + key)
	if name == "" && d.Style == "narrow" {
		name = cldr.Of("currency", d.data).Get(code + "/symbol")
	}
	return d.or(name, code)
}

func (d *DisplayNames) or(name, code string) string {
	if name == "" && d.Fallback == "code" {
		return code
	}
	return name
}

// language writes the name of a language with its script and region.
func (d *DisplayNames) language(names *cldr.Section, t *Tag, name func(string) string) string {
	base := t.Base()
	rest := []string{}
	found := ""
	if d.LanguageDisplay == "dialect" {
		found = name("language/" + base)
		if found == "" && t.Script != "" && t.Region != "" {
			found = name("language/" + t.Language + "-" + t.Script)
			kind, code := "region/", t.Region
			if found == "" {
				found = name("language/" + t.Language + "-" + t.Region)
				kind, code = "script/", t.Script
			}
			if found != "" {
				rest = append(rest, d.or(name(kind+code), code))
			}
		}
	}
	if found == "" {
		found = name("language/" + t.Language)
		if found == "" {
			return d.or("", base)
		}
		if t.Script != "" {
			rest = append(rest, d.or(name("script/"+t.Script), t.Script))
		}
		if t.Region != "" {
			rest = append(rest, d.or(name("region/"+t.Region), t.Region))
		}
	}
	for _, v := range t.Variants {
		if !strings.Contains(base, v) || len(rest) > 0 || found != base {
			rest = append(rest, strings.ToUpper(v))
		}
	}
	if len(rest) == 0 {
		return found
	}
	inner := rest[0]
	for _, r := range rest[1:] {
		inner = fill(cmp.Or(names.Get("pattern/localeSeparator"), "{0}, {1}"), inner, r)
	}
	inner = strings.NewReplacer("(", "[", ")", "]").Replace(inner)
	return fill(cmp.Or(names.Get("pattern/localePattern"), "{0} ({1})"), found, inner)
}
