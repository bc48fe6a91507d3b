package intl

import (
	"strings"
	"time"
)

// rangeFields are the fields in which two times may differ, the largest first, with the
// letters that show them.
var rangeFields = []struct {
	name, letters string
	of            func(t time.Time) int
}{
	{"G", "G", func(t time.Time) int { return int(era(t)[0]) }},
	{"y", "yYur", func(t time.Time) int { return t.Year() }},
	{"M", "ML", func(t time.Time) int { return int(t.Month()) }},
	{"d", "dEc", func(t time.Time) int { return t.Day() }},
	{"a", "ahKHkB", func(t time.Time) int { return t.Hour() / 12 }},
	{"h", "hKHkB", func(t time.Time) int { return t.Hour() }},
	{"m", "m", func(t time.Time) int { return t.Minute() }},
	{"s", "s", func(t time.Time) int { return t.Second() }},
	{"S", "S", func(t time.Time) int { return t.Nanosecond() / 1e6 }},
}

// difference returns the largest field in which two times differ, and whether the format
// shows it or a larger one's part.
func (f *DateFormat) difference(a, b time.Time) (field string, shown bool) {
	for i, r := range rangeFields {
		if r.of(a) == r.of(b) {
			continue
		}
		field = r.name
		for _, smaller := range rangeFields[i:] {
			if f.shows(smaller.letters) {
				return field, true
			}
		}
		return field, f.shows(rangeFields[i].letters)
	}
	return "", false
}

func (f *DateFormat) shows(letters string) bool {
	for _, t := range f.list {
		if t.field && strings.ContainsRune(letters, rune(t.text[0])) {
			return true
		}
	}
	return false
}

// Range writes the time from one time value to another, in parts.
func (f *DateFormat) Range(from, to float64) []Part {
	a, b := f.zone.at(from), f.zone.at(to)
	field, shown := f.difference(a, b)
	if !shown {
		parts := f.write(f.list, a)
		for i := range parts {
			parts[i].Value = strings.ReplaceAll(parts[i].Value, "\u202f", " ")
		}
		return sourced(parts, "shared")
	}
	if list := f.extended(field); list != nil {
		if pattern, ok := f.interval(field, list); ok && f.shows("yMLdEc") {
			return f.span(pattern, a, b)
		}
		return f.both(list, a, b)
	}
	date, clock := f.halves()
	if pattern, ok := f.interval(field, f.list); ok {
		return f.span(pattern, a, b)
	}
	if date != nil && clock != nil && clockField(field) {
		// The date is the same: it is written once.
		var out []Part
		times, ok := f.interval(field, clock)
		var inner []Part
		if ok {
			inner = f.span(times, a, b)
		} else {
			inner = f.both(clock, a, b)
		}
		for _, t := range placeholders(f.dates.Get("dateTimeFormats/medium")) {
			switch t {
			case "{0}":
				out = append(out, inner...)
			case "{1}":
				out = append(out, sourced(f.write(date, a), "shared")...)
			default:
				out = append(out, sourced(literal(nil, Text(f.write(tokens(t), a))), "shared")...)
			}
		}
		return merged(out)
	}
	return f.both(f.list, a, b)
}

// extended returns the format's fields with those that tell two times apart which the format
// lacks: the date for times of different days, or the year or month. It returns nil if it
// lacks none.
func (f *DateFormat) extended(field string) []token {
	letters := map[string]string{"y": "yYur", "M": "ML", "d": "dEc"}[field]
	if letters == "" || f.shows(letters) {
		return nil
	}
	more := field
	if !f.shows("yYurMLdEc") {
		more = "yMd"
	}
	skeleton := more
	for _, t := range f.list {
		if t.field {
			skeleton += t.text
		}
	}
	base, _, _ := strings.Cut(f.Locale, "-u-")
	pattern := patternsOf(base, f.data).best(skeleton)
	if f.HourCycle != "" {
		pattern = replaceHours(pattern, f.HourCycle)
	}
	return tokens(pattern)
}

// clockField reports whether a field of a pattern is one of the time of day.
func clockField(field string) bool {
	switch field {
	case "a", "h", "m", "s", "S":
		return true
	}
	return false
}

// both writes two times whole, with the locale's sign of a range between.
func (f *DateFormat) both(list []token, a, b time.Time) []Part {
	var out []Part
	for _, t := range placeholders(f.dates.Get("dateTimeFormats/intervalFormats/intervalFormatFallback")) {
		switch t {
		case "{0}":
			out = append(out, sourced(f.write(list, a), "startRange")...)
		case "{1}":
			out = append(out, sourced(f.write(list, b), "endRange")...)
		default:
			out = append(out, sourced(literal(nil, t), "shared")...)
		}
	}
	return merged(out)
}

// placeholders splits a pattern at {0}, {1} and so on.
func placeholders(pattern string) []string {
	var out []string
	for {
		at := strings.IndexByte(pattern, '{')
		if at < 0 || at+3 > len(pattern) || pattern[at+2] != '}' {
			if pattern != "" {
				out = append(out, pattern)
			}
			return out
		}
		if at > 0 {
			out = append(out, pattern[:at])
		}
		out = append(out, pattern[at:at+3])
		pattern = pattern[at+3:]
	}
}

func sourced(parts []Part, source string) []Part {
	for i := range parts {
		parts[i].Source = source
	}
	return parts
}

// merged joins literals of one source that follow each other.
func merged(parts []Part) []Part {
	var out []Part
	for _, p := range parts {
		if n := len(out); n > 0 && p.Type == "literal" && out[n-1].Type == "literal" && out[n-1].Source == p.Source {
			out[n-1].Value += p.Value
			continue
		}
		out = append(out, p)
	}
	return out
}

// halves returns the fields of the format's date and of its time, nil if it has not both.
func (f *DateFormat) halves() (date, clock []token) {
	base, _, _ := strings.Cut(f.Locale, "-u-")
	p := patternsOf(base, f.data)
	s := ""
	for _, t := range f.list {
		if t.field {
			s += t.text
		}
	}
	k := newSkeleton(s)
	days, hours := p.appended(k, k.mask()&dateMask), p.appended(k, k.mask()&timeMask)
	if days == "" || hours == "" {
		return nil, nil
	}
	if f.HourCycle != "" {
		hours = replaceHours(hours, f.HourCycle)
	}
	return tokens(days), tokens(hours)
}

// interval returns the locale's pattern for a range that differs in field, for the fields
// of list.
func (f *DateFormat) interval(field string, list []token) ([]token, bool) {
	wanted := ""
	for _, t := range list {
		if t.field && t.text[0] != 'a' {
			text := t.text
			switch text[0] {
			case 'L':
				text = strings.Repeat("M", len(text))
			case 'c':
				text = strings.Repeat("E", len(text))
			case 'K':
				text = strings.Repeat("h", len(text))
			case 'k':
				text = strings.Repeat("H", len(text))
			case 'z':
				text = "v"
			}
			wanted += text
		}
	}
	s := newSkeleton(wanted)
	s.addedPeriod = false
	best, least := "", 1<<30
	seen := map[string]bool{}
	f.dates.Each("dateTimeFormats/intervalFormats/", func(rest, _ string) {
		key, _, ok := strings.Cut(rest, "/")
		if !ok || seen[key] {
			return
		}
		seen[key] = true
		if d, missing, extra := s.distance(newSkeleton(key), -1); missing == 0 && extra == 0 && d < least && d < 0x80+0x300 {
			best, least = key, d
		}
	})
	if best == "" {
		return nil, false
	}
	names := []string{field}
	if field == "a" {
		names = []string{"a", "B"}
	}
	if s.char[fieldHour] == 'H' {
		names = map[string][]string{"a": {"H"}, "h": {"H"}}[field]
		if names == nil {
			names = []string{field}
		}
	}
	for _, name := range names {
		if pattern := f.dates.Get("dateTimeFormats/intervalFormats/" + best + "/" + name); pattern != "" {
			return f.widened(tokens(pattern), newSkeleton(best), s, list), true
		}
	}
	return nil, false
}

// widened sets the widths of an interval pattern's fields that differ from those asked for.
func (f *DateFormat) widened(pattern []token, has, wants *skeleton, list []token) []token {
	for i, t := range pattern {
		if !t.field {
			continue
		}
		l := findLetter(t.text)
		if l == nil {
			continue
		}
		if l.field == fieldHour {
			if f.HourCycle != "" {
				pattern[i].text = strings.Repeat(string(hourLetters[f.HourCycle]), len(t.text))
			}
			continue
		}
		if l.field == fieldZone {
			for _, own := range list {
				if own.field && strings.ContainsRune("zvO", rune(own.text[0])) {
					pattern[i].text = own.text
				}
			}
			continue
		}
		if own, want := has.length[l.field], wants.length[l.field]; want > 0 && own != want && l.field <= fieldDay && own == len(t.text) || want > 2 && own > 2 && len(t.text) > 2 && own != want {
			pattern[i].text = strings.Repeat(t.text[:1], want)
		}
	}
	return pattern
}

// span writes an interval pattern: the fields of the first time until one comes again, then
// those of the second.
func (f *DateFormat) span(pattern []token, a, b time.Time) []Part {
	seen := map[int]bool{}
	cut := len(pattern)
	for i, t := range pattern {
		if !t.field {
			continue
		}
		if l := findLetter(t.text); l != nil {
			if seen[l.field] {
				cut = i
				break
			}
			seen[l.field] = true
		}
	}
	// A field that one half alone has is shared by both.
	count := map[int]int{}
	for _, t := range pattern {
		if l := fieldOf(t); l >= 0 {
			count[l]++
		}
	}
	var out []Part
	// The first and the last of the fields that come twice, in each half.
	ends := [2][2]int{{-1, -1}, {-1, -1}}
	for i, t := range pattern {
		if l := fieldOf(t); l >= 0 && count[l] > 1 {
			half := 0
			if i >= cut {
				half = 1
			}
			if ends[half][0] < 0 {
				ends[half][0] = i
			}
			ends[half][1] = i
		}
	}
	for i, t := range pattern {
		at, source := a, "shared"
		if i >= cut {
			at = b
		}
		switch {
		case i >= ends[0][0] && i <= ends[0][1]:
			source = "startRange"
		case i >= ends[1][0] && i <= ends[1][1]:
			source = "endRange"
		}
		out = append(out, sourced(f.write([]token{t}, at), source)...)
	}
	return merged(out)
}

func fieldOf(t token) int {
	if !t.field {
		return -1
	}
	if l := findLetter(t.text); l != nil {
		return l.field
	}
	return -1
}
