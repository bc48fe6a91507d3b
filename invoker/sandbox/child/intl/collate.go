package intl

import (
	"cmp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Collator is an Intl.Collator. It serves one goroutine at a time.
type Collator struct {
	Locale, Usage, Sensitivity, CaseFirst string
	IgnorePunctuation, Numeric            bool
	order                                 *collate.Collator
	loose                                 *collate.Collator // ignores case; nil where cases do not matter
}

// NewCollator makes one. numeric is nil if the option is not set.
func NewCollator(tags []Tag, c Collator, numeric *bool) *Collator {
	options := map[string]string{"kf": c.CaseFirst}
	if numeric != nil {
		options["kn"] = map[bool]string{true: "true", false: "false"}[*numeric]
	}
	locale, data, keywords := Resolve(tags, []string{"kf", "kn"}, func(_, key, value string) bool {
		if key == "kn" {
			return value == "true" || value == "false"
		}
		return value == "upper" || value == "lower" || value == "false"
	}, options)
	c.Locale, c.Numeric, c.CaseFirst = locale, keywords["kn"] == "true", cmp.Or(keywords["kf"], "false")
	if t, ok := ParseTag(data); ok && keywords["kf"] == "" && c.Usage != "search" && (t.Language == "da" || t.Language == "mt") {
		c.CaseFirst = "upper" // the order of these languages
	}
	tag := language.Make(data)
	if t, ok := ParseTag(data); ok && t.Language == "nb" {
		tag = language.Norwegian
	}
	var list []collate.Option
	if c.Numeric {
		list = append(list, collate.Numeric)
	}
	loose := collate.New(tag, append(list, collate.Loose)...)
	switch c.Sensitivity {
	case "base":
		c.order = loose
	case "accent":
		c.order = collate.New(tag, append(list, collate.IgnoreCase, collate.IgnoreWidth)...)
	case "case":
		c.order, c.loose = loose, loose
	default:
		c.order = collate.New(tag, list...)
		if c.CaseFirst != "false" {
			c.loose = collate.New(tag, append(list, collate.IgnoreCase, collate.IgnoreWidth)...)
		}
	}
	return &c
}

// Compare returns -1, 0 or 1.
func (c *Collator) Compare(a, b string) int {
	if c.IgnorePunctuation {
		a, b = withoutPunctuation(a), withoutPunctuation(b)
	}
	result := c.order.CompareString(a, b)
	if c.loose == nil || c.loose.CompareString(a, b) != 0 {
		return result
	}
	if byCase := compareCase(a, b); byCase != 0 {
		if c.CaseFirst == "upper" {
			return -byCase
		}
		return byCase
	}
	return result
}

// compareCase compares the cases of the letters of two texts: the first letter that is in
// lower case in one of them alone makes that one the lesser.
func compareCase(a, b string) int {
	x, y := casesOf(a), casesOf(b)
	return strings.Compare(x[:min(len(x), len(y))], y[:min(len(x), len(y))])
}

// smallKana are in lower case for the order, and other kana in upper case.
const smallKana = "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿ"

// casesOf returns a letter for each letter of a text that has a case: l or u.
func casesOf(s string) string {
	var b strings.Builder
	for _, c := range norm.NFKD.String(s) {
		switch {
		case strings.ContainsRune(smallKana, c):
			b.WriteByte('l')
		case unicode.IsUpper(c) || unicode.In(c, unicode.Hiragana, unicode.Katakana):
			b.WriteByte('u')
		case unicode.IsLower(c):
			b.WriteByte('l')
		}
	}
	return b.String()
}

func withoutPunctuation(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPunct(c) || unicode.IsSpace(c) {
			return -1
		}
		return c
	}, s)
}

// Case maps a string to upper or lower case by the rules of the first of the locales.
func Case(tags []Tag, s string, upper bool) string {
	tag := language.Und
	if len(tags) > 0 {
		tag = language.Make(tags[0].Language)
	}
	if upper {
		return cases.Upper(tag).String(s)
	}
	return cases.Lower(tag).String(s)
}
