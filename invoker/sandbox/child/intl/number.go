package intl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// NumberOptions are the options of Intl.NumberFormat, valid ones. Digits are resolved.
type NumberOptions struct {
	NumberingSystem string
	Style           string // decimal, percent, currency or unit
	Currency        string
	CurrencyDisplay string
	CurrencySign    string
	Unit            string
	UnitDisplay     string
	Notation        string // standard, scientific, engineering or compact
	CompactDisplay  string
	UseGrouping     string // always, auto, min2 or false
	SignDisplay     string
	Digits          DigitOptions
}

// DigitOptions are the rounding options of a number.
type DigitOptions struct {
	MinimumInteger                         int
	MinimumFraction, MaximumFraction       int // -1 for none
	MinimumSignificant, MaximumSignificant int // 0 for none
	Rounding                               string
	Mode                                   string
	Priority                               string // auto, morePrecision or lessPrecision
	Increment                              int
	TrailingZeros                          string
}

// NumberFormat is an Intl.NumberFormat.
type NumberFormat struct {
	Locale, Numbering string
	Options           NumberOptions
	data              string
	digits            *digitTable
	numbers           *cldr.Section
}

// NewNumberFormat makes a format.
func NewNumberFormat(tags []Tag, o NumberOptions) *NumberFormat {
	locale, data, keywords := Resolve(tags, []string{"nu"}, func(_, _, value string) bool { return ValidNumbering(value) },
		map[string]string{"nu": o.NumberingSystem})
	f := &NumberFormat{Locale: locale, Numbering: keywords["nu"], Options: o, data: data, numbers: cldr.Of("number", data)}
	if f.Numbering == "" {
		f.Numbering = defaultNumbering(data)
	}
	f.digits = numbering(f.Numbering)
	return f
}

// CurrencyDigits returns the number of digits after the decimal point of a currency.
func CurrencyDigits(code string) int {
	if n, ok := cldr.Table("fractions")[code]; ok {
		return int(n[0] - '0')
	}
	return 2
}

// pattern returns a pattern of the numbering system, or of latn if it has none.
func (f *NumberFormat) pattern(kind, key string) string {
	for _, ns := range []string{f.Numbering, "latn"} {
		if p := f.numbers.Get(kind + "-" + ns + "/" + key); p != "" {
			return p
		}
	}
	return ""
}

func (f *NumberFormat) symbol(name string) string { return symbol(f.data, f.Numbering, name) }

// rounded rounds a number as the options say, and returns how many digits after the decimal
// point are shown at least.
func (o *DigitOptions) rounded(d Decimal) (out Decimal, fractions int) {
	bySignificant := func() (Decimal, int, int) {
		places := o.MaximumSignificant - 1 - d.magnitude()
		r := d.round(places, 1, o.Mode)
		least := o.MinimumSignificant - 1 - r.magnitude()
		return r, max(least, 0), places
	}
	byFraction := func() (Decimal, int, int) {
		return d.round(o.MaximumFraction, o.Increment, o.Mode), o.MinimumFraction, o.MaximumFraction
	}
	switch {
	case o.Rounding == "significant":
		out, fractions, _ = bySignificant()
	case o.Rounding == "fraction":
		out, fractions, _ = byFraction()
	default:
		s, sFractions, sPlaces := bySignificant()
		fr, fFractions, fPlaces := byFraction()
		if (sPlaces > fPlaces) == (o.Priority == "morePrecision") {
			out, fractions = s, sFractions
		} else {
			out, fractions = fr, fFractions
		}
	}
	if o.TrailingZeros == "stripIfInteger" && out.exp >= len(out.digits) {
		fractions = 0
	}
	return out, fractions
}

// Parts writes a number in parts.
func (f *NumberFormat) Parts(d Decimal) []Part {
	parts, _ := f.write(d)
	return parts
}

// Format writes a number.
func (f *NumberFormat) Format(d Decimal) string { return Text(f.Parts(d)) }

// written is a number without affixes.
type written struct {
	parts    []Part
	plain    string // its digits, for plural rules
	exponent int
	compact  string // the pattern around it, "" for none
}

func (f *NumberFormat) write(d Decimal) (parts []Part, category string) {
	if f.Options.Style == "percent" && !d.zero() {
		d.exp += 2
	}
	w, rounded := f.number(d)
	category = pluralOf(f.data, "plurals", operandsOf(w.plain, w.exponent))
	return f.affixes(w, f.sign(&d, &rounded), category), category
}

// sign returns "-", "+" or "" for signDisplay.
func (f *NumberFormat) sign(d, rounded *Decimal) string {
	isZero := rounded.zero() || rounded.nan
	negative := d.negative && !d.nan
	switch f.Options.SignDisplay {
	case "never":
		return ""
	case "always":
		if negative {
			return "-"
		}
		return "+"
	case "exceptZero":
		if isZero {
			return ""
		}
		if negative {
			return "-"
		}
		return "+"
	case "negative":
		if isZero {
			return ""
		}
	}
	if negative {
		return "-"
	}
	return ""
}

// number writes the digits.
func (f *NumberFormat) number(d Decimal) (written, Decimal) {
	switch {
	case d.nan:
		return written{parts: []Part{{Type: "nan", Value: f.symbol("nan")}}, plain: "0"}, d
	case d.infinite:
		return written{parts: []Part{{Type: "infinity", Value: f.symbol("infinity")}}, plain: "0"}, d
	}
	o := &f.Options.Digits
	switch f.Options.Notation {
	case "scientific", "engineering":
		return f.scientific(d)
	case "compact":
		return f.compact(d)
	}
	r, fractions := o.rounded(d)
	plain := r.plain(o.MinimumInteger, fractions)
	return written{parts: f.grouped(plain), plain: plain}, r
}

func (f *NumberFormat) scientific(d Decimal) (written, Decimal) {
	o := &f.Options.Digits
	exponent := d.magnitude()
	step := func(m int) int {
		if f.Options.Notation == "engineering" {
			return m - ((m%3)+3)%3
		}
		return m
	}
	exponent = step(exponent)
	scaled := d
	scaled.exp -= exponent
	r, fractions := o.rounded(scaled)
	if next := step(r.magnitude() + exponent); next != exponent && !r.zero() {
		exponent = next
		scaled = d
		scaled.exp -= exponent
		r, fractions = o.rounded(scaled)
	}
	if d.zero() {
		exponent = 0
	}
	plain := r.plain(o.MinimumInteger, fractions)
	parts := f.grouped(plain)
	parts = append(parts, Part{Type: "exponentSeparator", Value: f.symbol("exponential")})
	e := exponent
	if e < 0 {
		parts = append(parts, Part{Type: "exponentMinusSign", Value: f.symbol("minusSign")})
		e = -e
	}
	parts = append(parts, Part{Type: "exponentInteger", Value: f.digits.write(strconv.Itoa(e))})
	return written{parts: parts, plain: plain, exponent: exponent}, r
}

// compact writes a number as 1.2K.
func (f *NumberFormat) compact(d Decimal) (written, Decimal) {
	o := &f.Options.Digits
	shift := f.compactShift(d.magnitude())
	scaled := d
	if !d.zero() {
		scaled.exp -= shift
	}
	r, fractions := o.rounded(scaled)
	if again := f.compactShift(r.magnitude() + shift); again != shift && !r.zero() {
		shift = again
		scaled.exp = d.exp - shift
		r, fractions = o.rounded(scaled)
	}
	plain := r.plain(o.MinimumInteger, fractions)
	w := written{parts: f.grouped(plain), plain: plain, exponent: shift}
	if magnitude := r.magnitude() + shift; !r.zero() && magnitude >= 3 {
		category := pluralOf(f.data, "plurals", operandsOf(plain, shift))
		if plain == "1" {
			w.compact = f.compactPattern(magnitude, "1")
		}
		if w.compact == "" {
			w.compact = f.compactPattern(magnitude, category)
		}
		if w.compact != "" && !strings.Contains(unquoted(w.compact), "0") {
			w.parts = nil // such as the word for a thousand
		}
	}
	return w, r
}

// compactPattern returns the pattern of a power of ten, "" if such numbers are written whole.
func (f *NumberFormat) compactPattern(magnitude int, category string) string {
	key := "1" + strings.Repeat("0", f.compactKey(magnitude)) + "-count-"
	kind, form := "decimalFormats", f.Options.CompactDisplay+"/decimalFormat/"
	if f.Options.Style == "currency" && f.Options.CurrencyDisplay != "name" && f.Options.CompactDisplay == "short" {
		kind, form = "currencyFormats", "short/standard/"
	}
	p := f.pattern(kind, form+key+category)
	if p == "" && category != "1" {
		p = f.pattern(kind, form+key+"other")
	}
	if strings.Trim(p, "0¤\u00a0 ") == "" {
		return ""
	}
	return p
}

// compactShift returns by which power of ten numbers of a magnitude are divided.
func (f *NumberFormat) compactShift(magnitude int) int {
	if magnitude < 3 {
		return 0
	}
	p := f.compactPattern(magnitude, "other")
	zeros := strings.Count(unquoted(p), "0")
	if zeros == 0 {
		return 0
	}
	return f.compactKey(magnitude) - zeros + 1
}

// compactKey returns the power of ten of the pattern for a magnitude: the largest that the
// locale has.
func (f *NumberFormat) compactKey(magnitude int) int {
	m := min(magnitude, 20)
	for m > 3 && f.pattern("decimalFormats", f.Options.CompactDisplay+"/decimalFormat/1"+strings.Repeat("0", m)+"-count-other") == "" {
		m--
	}
	return m
}

// unquoted removes the text between quotes of a pattern.
func unquoted(p string) string {
	var b strings.Builder
	quoted := false
	for _, c := range p {
		if c == '\'' {
			quoted = !quoted
			continue
		}
		if !quoted {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// grouped writes digits with the locale's groups and decimal point.
func (f *NumberFormat) grouped(plain string) []Part {
	whole, fraction, _ := strings.Cut(plain, ".")
	var parts []Part
	first, rest := f.groupSizes()
	digits := len(whole)
	cuts := map[int]bool{}
	if first > 0 && digits > first {
		for at := digits - first; at > 0; at -= rest {
			cuts[at] = true
		}
	}
	group := f.symbol("group")
	if f.Options.Style == "currency" {
		if s := f.numbers.Get("symbols-" + f.Numbering + "/currencyGroup"); s != "" {
			group = s
		}
	}
	start := 0
	for i := 1; i <= digits; i++ {
		if i == digits || cuts[i] {
			parts = append(parts, Part{Type: "integer", Value: f.digits.write(whole[start:i])})
			if i < digits {
				parts = append(parts, Part{Type: "group", Value: group})
			}
			start = i
		}
	}
	if fraction != "" {
		point := f.symbol("decimal")
		if f.Options.Style == "currency" {
			if s := f.numbers.Get("symbols-" + f.Numbering + "/currencyDecimal"); s != "" {
				point = s
			}
		}
		parts = append(parts, Part{Type: "decimal", Value: point}, Part{Type: "fraction", Value: f.digits.write(fraction)})
	}
	return f.grouping(parts, digits, first)
}

// grouping joins the groups again where the number is too short for them.
func (f *NumberFormat) grouping(parts []Part, digits, first int) []Part {
	least := 1
	switch f.Options.UseGrouping {
	case "false":
		least = 1 << 30
	case "always":
	case "min2":
		least = 2
	default:
		if n, err := strconv.Atoi(f.numbers.Get("minimumGroupingDigits")); err == nil {
			least = n
		}
	}
	if digits >= first+least {
		return parts
	}
	var out []Part
	for _, p := range parts {
		switch n := len(out); {
		case p.Type == "group":
		case p.Type == "integer" && n > 0:
			out[n-1].Value += p.Value
		default:
			out = append(out, p)
		}
	}
	return out
}

// groupSizes returns the sizes of the last group and of those before it, 0 for no groups.
func (f *NumberFormat) groupSizes() (first, rest int) {
	p := f.pattern("decimalFormats", "standard")
	if f.Options.Style == "currency" && f.Options.CurrencyDisplay != "name" {
		p = f.currencyPattern()
	}
	p, _, _ = strings.Cut(p, ";")
	whole, _, _ := strings.Cut(p, ".")
	groups := strings.Split(whole, ",")
	n := len(groups)
	if n < 2 {
		return 0, 0
	}
	first = strings.Count(groups[n-1], "#") + strings.Count(groups[n-1], "0")
	rest = first
	if n > 2 {
		rest = len(groups[n-2])
	}
	return first, rest
}

// percentUnit reports whether the unit is written as a sign, as style percent has it.
func (o *NumberOptions) percentUnit() bool { return o.Unit == "percent" && o.UnitDisplay != "long" }

// Defaults sets the options that are not set.
func (o *NumberOptions) Defaults() {
	o.Style = cmp.Or(o.Style, "decimal")
	o.CurrencyDisplay = cmp.Or(o.CurrencyDisplay, "symbol")
	o.CurrencySign = cmp.Or(o.CurrencySign, "standard")
	o.UnitDisplay = cmp.Or(o.UnitDisplay, "short")
	o.Notation = cmp.Or(o.Notation, "standard")
	o.CompactDisplay = cmp.Or(o.CompactDisplay, "short")
	o.SignDisplay = cmp.Or(o.SignDisplay, "auto")
	if o.UseGrouping == "" {
		o.UseGrouping = "auto"
		if o.Notation == "compact" {
			o.UseGrouping = "min2"
		}
	}
}

// UsualDigits returns how many digits numbers of the style have after the decimal point.
func (o *NumberOptions) UsualDigits() (least, most int) {
	switch {
	case o.Style == "currency" && o.Notation == "standard":
		n := CurrencyDigits(o.Currency)
		return n, n
	case o.Style == "percent":
		return 0, 0
	}
	return 0, 3
}

// ValidUnit reports whether a unit is one of ECMA-402, or one of them per another.
func ValidUnit(unit string) bool {
	one, per, compound := strings.Cut(unit, "-per-")
	return slices.Contains(Units, one) && (!compound || slices.Contains(Units, per))
}
