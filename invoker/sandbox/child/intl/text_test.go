package intl_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

func newCollator(t *testing.T, locale, options string) *intl.Collator {
	t.Helper()
	var o struct {
		Usage, Sensitivity, CaseFirst string
		IgnorePunctuation             bool
		Numeric                       *bool
	}
	decode(t, options, &o)
	c := intl.Collator{Usage: o.Usage, Sensitivity: o.Sensitivity, CaseFirst: o.CaseFirst, IgnorePunctuation: o.IgnorePunctuation}
	if c.Sensitivity == "" {
		c.Sensitivity = "variant"
	}
	return intl.NewCollator(tags(t, locale), c, o.Numeric)
}

func TestTextsAgreeWithNode(t *testing.T) {
	t.Parallel()
	count := &tally{t: t}
	recorded(t, "texts.tsv.gz", func(f []string) {
		switch f[0] {
		case "sort":
			var list []string
			decode(t, f[3], &list)
			slices.SortStableFunc(list, newCollator(t, f[1], f[2]).Compare)
			count.compare(f, strings.Join(list, "|"))
		case "compare":
			var pair [2]string
			decode(t, f[3], &pair)
			count.compare(f, strconv.Itoa(newCollator(t, f[1], f[2]).Compare(pair[0], pair[1])))
		case "segment":
			var o struct{ Granularity string }
			decode(t, f[2], &o)
			var text string
			decode(t, f[3], &text)
			parts := []string{}
			for _, s := range intl.NewSegmenter(tags(t, f[1]), o.Granularity).Split(text) {
				part := strconv.Itoa(s.From)
				if s.WordLike && o.Granularity == "word" {
					part += "w"
				}
				parts = append(parts, part)
			}
			got, err := json.Marshal(parts)
			if err != nil {
				t.Fatalf("json.Marshal: got %v, want text", err)
			}
			count.compare(f, string(got))
		}
	})
	if count.different > 0 {
		t.Errorf("got %d of %d results that differ from Node's, want 0", count.different, count.all)
	}
}

// documentedText reports whether a text is sorted or split in another way than by Node, as
// docs/javascript.md says.
func documentedText(f []string) bool {
	has := func(scripts ...*unicode.RangeTable) bool {
		return strings.ContainsFunc(f[3], func(c rune) bool { return unicode.In(c, scripts...) })
	}
	switch f[0] {
	case "segment":
		if strings.Contains(f[2], "word") { // dictionaries
			return has(unicode.Han, unicode.Hiragana, unicode.Thai, unicode.Khmer) || strings.Contains(f[3], "ㄱ")
		}
		return strings.Contains(f[2], "grapheme") && has(unicode.Devanagari, unicode.Khmer) // conjuncts
	case "sort", "compare":
		base, _, named := strings.Cut(f[1], "-u-co-")
		switch {
		case strings.Contains(f[2], "search"), named && base != "sv":
			return true
		case strings.Contains("ja ru zh-CN", f[1]) && has(unicode.Cyrillic, unicode.Han, unicode.Hiragana): // their own script comes first
			return true
		}
		return (strings.Contains(f[2], "numeric") || strings.Contains(f[1], "-kn")) && strings.Contains(f[3], "½")
	}
	return false
}
