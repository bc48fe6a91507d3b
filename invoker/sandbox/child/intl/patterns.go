package intl

import (
	"strings"
	"sync"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

var styles = []string{"full", "long", "medium", "short"}

// patternsMade caches patternsOf.
var patternsMade sync.Map

// patternsOf returns the patterns of a locale.
func patternsOf(locale, data string) *patterns {
	key := locale + " " + data
	if p, ok := patternsMade.Load(key); ok {
		return p.(*patterns)
	}
	s := cldr.Of("date", data)
	p := &patterns{decimal: symbol(data, defaultNumbering(data), "decimal")}
	p.hour, p.allowed = hours(locale)
	for _, c := range []string{"G", "y", "Q", "M", "w", "W", "E", "D", "F", "d", "a", "H", "m", "s", "S", "v"} {
		p.addPattern(c, "")
	}
	for _, style := range styles {
		p.addPattern(s.Get("dateFormats/"+style), "")
		p.addPattern(s.Get("timeFormats/"+style), "")
	}
	s.Each("dateTimeFormats/availableFormats/", func(skeleton, pattern string) {
		p.addPattern(pattern, skeleton)
	})
	p.order()
	for i, style := range styles {
		p.glue[i] = s.Get("dateTimeFormats-atTime/standard/" + style)
	}
	for i, name := range map[int]string{
		fieldEra: "Era era", fieldYear: "Year year", fieldQuarter: "Quarter quarter", fieldMonth: "Month month",
		fieldWeekOfYear: "Week week", fieldWeekday: "Day-Of-Week weekday", fieldDay: "Day day",
		fieldHour: "Hour hour", fieldMinute: "Minute minute", fieldSecond: "Second second", fieldZone: "Timezone zone",
	} {
		item, field, _ := strings.Cut(name, " ")
		p.appendItem[i] = s.Get("dateTimeFormats/appendItems/" + item)
		p.appendName[i] = s.Get("name/" + field)
	}
	for i := range p.appendItem {
		if p.appendItem[i] == "" {
			p.appendItem[i] = "{0} \u251c{2}: {1}\u2524"
		}
	}
	kept, _ := patternsMade.LoadOrStore(key, p)
	return kept.(*patterns)
}

// hours returns the letter of the hours that a locale's region prefers, and those that it
// allows.
func hours(locale string) (preferred byte, allowed string) {
	t, _ := ParseTag(locale)
	table := cldr.Table("hours")
	most := t.Maximize()
	for _, key := range []string{most.Language + "-" + most.Region, most.Region, "001"} {
		if v, ok := table[key]; ok {
			first, rest, _ := strings.Cut(v, " ")
			return first[0], rest
		}
	}
	return 'H', "H"
}

// symbol returns a symbol of the numbers of a locale.
func symbol(data, numbering, name string) string {
	s := cldr.Of("number", data)
	for _, ns := range []string{numbering, defaultNumbering(data), "latn"} {
		if v := s.Get("symbols-" + ns + "/" + name); v != "" {
			return v
		}
	}
	return cldr.Of("number", "und").Get("symbols-latn/" + name)
}
