package intl_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

// numberFormat makes a format of the options of a recorded line.
func numberFormat(t *testing.T, locale, options string) *intl.NumberFormat {
	t.Helper()
	var o struct {
		intl.NumberOptions
		UseGrouping any
		intl.RawDigits
	}
	decode(t, options, &o)
	n := o.NumberOptions
	n.Defaults()
	switch v := o.UseGrouping.(type) {
	case bool:
		n.UseGrouping = map[bool]string{true: "always", false: "false"}[v]
	case string:
		n.UseGrouping = v
	}
	least, most := n.UsualDigits()
	digits, err := o.RawDigits.Resolve(n.Notation, least, most)
	if err != nil {
		t.Fatalf("Resolve of %s: got %v, want digits", options, err)
	}
	n.Digits = digits
	return intl.NewNumberFormat(tags(t, locale), n)
}

func TestNumbersAgreeWithNode(t *testing.T) {
	t.Parallel()
	count := &tally{t: t}
	recorded(t, "numbers.tsv.gz", func(f []string) {
		switch f[0] {
		case "number", "parts":
			var n float64
			decode(t, f[3], &n)
			format := numberFormat(t, f[1], f[2])
			if f[0] == "number" {
				count.compare(f, format.Format(intl.NewDecimal(n)))
				return
			}
			var parts []string
			for _, p := range format.Parts(intl.NewDecimal(n)) {
				parts = append(parts, p.Type+"="+p.Value)
			}
			count.compare(f, strings.Join(parts, "|"))
		case "plural":
			var n float64
			decode(t, f[3], &n)
			var o struct{ Type string }
			decode(t, f[2], &o)
			digits, _ := (&intl.RawDigits{}).Resolve("standard", 0, 3)
			count.compare(f, intl.NewPluralRules(tags(t, f[1]), o.Type, digits).Select(intl.NewDecimal(n)))
		case "list":
			var o struct{ Type, Style string }
			decode(t, f[2], &o)
			var items []string
			decode(t, f[3], &items)
			count.compare(f, intl.Text(intl.NewListFormat(tags(t, f[1]), o.Type, o.Style).Parts(items)))
		case "relative":
			var o struct{ Numeric, Style string }
			decode(t, f[2], &o)
			var args []any
			decode(t, f[3], &args)
			parts, _ := intl.NewRelativeTimeFormat(tags(t, f[1]), o.Style, o.Numeric, "").Parts(args[0].(float64), args[1].(string))
			count.compare(f, intl.Text(parts))
		case "name":
			o := intl.DisplayNames{Style: "long", Fallback: "code", LanguageDisplay: "dialect"}
			decode(t, f[2], &o)
			name, err := intl.NewDisplayNames(tags(t, f[1]), o).Of(f[3])
			if err != nil {
				t.Fatalf("Of of %v: got %v, want a name", f, err)
			}
			count.compare(f, name)
		}
	})
	if count.different > 0 {
		t.Errorf("got %d of %d results that differ from Node's, want 0", count.different, count.all)
	}
}
