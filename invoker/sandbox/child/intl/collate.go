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
	loose                                 *collate.Collator // ignores case, for caseFirst
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
	tag := language.Make(data)
	if t, ok := ParseTag(data); ok && t.Language == "nb" {
		tag = language.Norwegian
	}
	var list []collate.Option
	if c.Numeric {
		list = append(list, collate.Numeric)
	}
	switch c.Sensitivity {
	case "base":
		list = append(list, collate.Loose)
	case "accent":
		list = append(list, collate.IgnoreCase, collate.IgnoreWidth)
	}
	c.order = collate.New(tag, list...)
	if c.CaseFirst == "upper" && (c.Sensitivity == "variant" || c.Sensitivity == "case") {
		c.loose = collate.New(tag, append(list, collate.IgnoreCase)...)
	}
	return &c
}

// Compare returns -1, 0 or 1.
func (c *Collator) Compare(a, b string) int {
	if c.IgnorePunctuation {
		a, b = withoutPunctuation(a), withoutPunctuation(b)
	}
	if c.Sensitivity == "case" {
		a, b = withoutMarks(a), withoutMarks(b)
	}
	result := c.order.CompareString(a, b)
	if c.loose != nil && result != 0 && c.loose.CompareString(a, b) == 0 {
		return -result
	}
	return result
}

func withoutPunctuation(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPunct(c) || unicode.IsSpace(c) {
			return -1
		}
		return c
	}, s)
}

func withoutMarks(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) {
			return -1
		}
		return c
	}, norm.NFD.String(s))
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
