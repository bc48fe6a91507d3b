package intl_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

// recorded calls yield with the fields of each line of a file that testdata/record.mjs wrote.
func recorded(t *testing.T, name string, yield func(f []string)) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatalf("os.Open: got %v, want the file", err)
	}
	defer file.Close()
	raw, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("gzip.NewReader: got %v, want a reader", err)
	}
	lines := bufio.NewScanner(raw)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if f := strings.Split(lines.Text(), "\t"); len(f) == 5 {
			yield(f)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: got %v, want all lines", name, err)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("json.Unmarshal(%s): got %v, want a value", text, err)
	}
}

// tally counts the results that differ from those of Node, and shows the first ones.
type tally struct {
	t              *testing.T
	all, different int
}

func (c *tally) compare(f []string, got string) {
	c.all++
	if got == f[4] || documented(f, got) || documentedText(f) {
		return
	}
	c.different++
	if c.different <= 20 {
		c.t.Logf("%s %s %s %s: got %q, want %q", f[0], f[1], f[2], f[3], got, f[4])
	}
}

// documented reports whether a result differs from Node's as docs/javascript.md says.
func documented(f []string, got string) bool {
	want := f[4]
	switch {
	case f[0] == "range" && f[1] != "ko": // of a month's name with a time, and of Russian years
		return strings.Contains("ja zh-CN", f[1]) && strings.Contains(f[2], `"month":"short"`) || f[1] == "ru" && strings.Contains(f[2], `"month":`)
	case f[1] == "ko": // CLDR 48.1 has AM and PM, 48.2 and those before 48 have 오전 and 오후
		want = strings.NewReplacer("AM", "오전", "PM", "오후").Replace(want)
	case f[0] == "resolved" && strings.Contains(f[2], `"hour12"`): // of ECMA-402 before 2023
		want = strings.NewReplacer("h11", "h12", "h24", "h23").Replace(want)
	case strings.Contains(f[2], `"hour":"numeric","timeZoneName":"short"`): // CLDR 48.1 has 11h CET
		return true
	}
	return got == want
}

func tags(t *testing.T, locale string) []intl.Tag {
	t.Helper()
	tag, ok := intl.ParseTag(locale)
	if !ok {
		t.Fatalf("%s: got no tag, want one", locale)
	}
	return []intl.Tag{tag}
}

func TestDatesAgreeWithNode(t *testing.T) {
	t.Parallel()
	count := &tally{t: t}
	recorded(t, "dates.tsv.gz", func(f []string) {
		o := intl.DateOptions{Required: "any", Defaults: "date"}
		decode(t, f[2], &o)
		var at float64
		var ends [2]float64
		if f[0] == "range" {
			decode(t, f[3], &ends)
		} else {
			decode(t, f[3], &at)
		}
		format, err := intl.NewDateFormat(tags(t, f[1]), o)
		if err != nil {
			t.Fatalf("NewDateFormat of %v: got %v, want a format", f, err)
		}
		switch f[0] {
		case "date":
			count.compare(f, format.Format(at))
		case "parts":
			var parts []string
			for _, p := range format.Parts(at) {
				parts = append(parts, p.Type+"="+p.Value)
			}
			count.compare(f, strings.Join(parts, "|"))
		case "range":
			count.compare(f, intl.Text(format.Range(ends[0], ends[1])))
		case "resolved":
			count.compare(f, resolvedDate(format))
		}
	})
	if count.different > 0 {
		t.Errorf("got %d of %d results that differ from Node's, want 0", count.different, count.all)
	}
}

// resolvedDate returns the rest of resolvedOptions, as JSON.
func resolvedDate(f *intl.DateFormat) string {
	var out []string
	put := func(k, v string) { out = append(out, fmt.Sprintf("%q:%s", k, v)) }
	if f.HourCycle != "" {
		put("hourCycle", `"`+f.HourCycle+`"`)
		put("hour12", fmt.Sprint(f.HourCycle == "h11" || f.HourCycle == "h12"))
	}
	if f.DateStyle == "" && f.TimeStyle == "" {
		for _, x := range f.Fields() {
			if x[0] == "fractionalSecondDigits" {
				put(x[0], x[1])
				continue
			}
			put(x[0], `"`+x[1]+`"`)
		}
	}
	if f.DateStyle != "" {
		put("dateStyle", `"`+f.DateStyle+`"`)
	}
	if f.TimeStyle != "" {
		put("timeStyle", `"`+f.TimeStyle+`"`)
	}
	return "{" + strings.Join(out, ",") + "}"
}
