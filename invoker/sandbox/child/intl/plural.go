package intl

import (
	"strconv"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// operands are those of plural rules
// (https://www.unicode.org/reports/tr35/tr35-numbers.html#Operands).
type operands struct {
	n          float64
	i, f, t, c int64
	v, w       int
}

// operandsOf reads the operands of a number as it is written, in ASCII without groups.
func operandsOf(text string, exponent int) operands {
	text = strings.TrimPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	o := operands{c: int64(exponent), v: len(fraction)}
	o.n, _ = strconv.ParseFloat(text, 64)
	if len(whole) > 18 {
		whole = whole[len(whole)-18:]
	}
	o.i, _ = strconv.ParseInt(whole, 10, 64)
	if len(fraction) > 18 {
		fraction = fraction[:18]
	}
	o.f, _ = strconv.ParseInt("0"+fraction, 10, 64)
	trimmed := strings.TrimRight(fraction, "0")
	o.w = len(trimmed)
	o.t, _ = strconv.ParseInt("0"+trimmed, 10, 64)
	return o
}

func (o operands) value(name byte) float64 {
	switch name {
	case 'n':
		return o.n
	case 'i':
		return float64(o.i)
	case 'f':
		return float64(o.f)
	case 't':
		return float64(o.t)
	case 'v':
		return float64(o.v)
	case 'w':
		return float64(o.w)
	}
	return float64(o.c)
}

// pluralTable returns the rules of a locale's language: CATEGORY:CONDITION, with semicolons.
func pluralTable(data, kind string) string {
	for l := data; l != "und"; l = cldr.Parent(l) {
		if rules, ok := cldr.Table(kind)[l]; ok {
			return rules
		}
	}
	return ""
}

// pluralOf returns the category of a number as it is written.
func pluralOf(data, kind string, o operands) string {
	for rule := range strings.SplitSeq(pluralTable(data, kind), ";") {
		category, condition, ok := strings.Cut(rule, ":")
		if ok && holds(condition, o) {
			return category
		}
	}
	return "other"
}

// PluralCategories returns the categories of a locale, in the order of CLDR.
func PluralCategories(data, kind string) []string {
	rules := pluralTable(data, kind)
	var out []string
	for _, c := range []string{"few", "many", "one", "two", "zero"} {
		if strings.Contains(";"+rules, ";"+c+":") {
			out = append(out, c)
		}
	}
	return append(out, "other")
}

// holds evaluates a condition: relations with "and" and "or" between.
func holds(condition string, o operands) bool {
	for or := range strings.SplitSeq(condition, " or ") {
		all := true
		for and := range strings.SplitSeq(or, " and ") {
			if !relation(and, o) {
				all = false
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}

// relation evaluates one relation, such as n % 100 = 3..10,13.
func relation(text string, o operands) bool {
	left, right, unequal := strings.Cut(text, "!=")
	if !unequal {
		left, right, _ = strings.Cut(text, "=")
	}
	name, mod, modulo := strings.Cut(left, "%")
	name = strings.TrimSpace(name)
	if name == "" {
		return false
	}
	n := o.value(name[0])
	if modulo {
		m, _ := strconv.ParseFloat(strings.TrimSpace(mod), 64)
		n -= m * float64(int64(n/m))
	}
	for part := range strings.SplitSeq(right, ",") {
		from, to, span := strings.Cut(strings.TrimSpace(part), "..")
		if !span {
			to = from
		}
		a, _ := strconv.ParseFloat(from, 64)
		b, _ := strconv.ParseFloat(to, 64)
		if n >= a && n <= b && n == float64(int64(n)) {
			return !unequal
		}
	}
	return unequal
}
