package intl

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// DateOptions are the options of Intl.DateTimeFormat, valid ones; "" is none.
type DateOptions struct {
	Calendar, NumberingSystem, HourCycle, TimeZone string
	Hour12                                         *bool

	Weekday, Era, Year, Month, Day, DayPeriod, Hour, Minute, Second, TimeZoneName string
	FractionalSecondDigits                                                        int

	DateStyle, TimeStyle string
	Required             string // the fields that a format must have, or it gets the defaults: date, time or any
	Defaults             string // the fields that it gets: date, time or all
}

// DateFormat is an Intl.DateTimeFormat.
type DateFormat struct {
	Locale, Calendar, Numbering string
	HourCycle                   string // "" for a format without hours
	DateStyle, TimeStyle        string
	options                     DateOptions
	data                        string
	zone                        *Zone
	digits                      *digitTable
	dates                       *cldr.Section
	pattern                     string
	list                        []token
}

// TimeZone returns the name of the format's time zone.
func (f *DateFormat) TimeZone() string { return f.zone.Name }

// NewDateFormat returns a format. The caller has checked that o has no style together with a
// field. Error: RangeError for an unknown time zone.
func NewDateFormat(tags []Tag, o DateOptions) (*DateFormat, error) {
	locale, data, keywords := Resolve(tags, []string{"ca", "hc", "nu"}, supportsDate, map[string]string{
		"ca": CanonicalCalendar(o.Calendar), "hc": hourKeyword(o), "nu": o.NumberingSystem,
	})
	f := &DateFormat{Locale: locale, Calendar: "gregory", Numbering: keywords["nu"], DateStyle: o.DateStyle, TimeStyle: o.TimeStyle, options: o, data: data}
	if ca := keywords["ca"]; ca != "" {
		f.Calendar = ca
	}
	if f.Numbering == "" {
		f.Numbering = defaultNumbering(data)
	}
	if o.Hour12 != nil {
		if t, ok := ParseTag(f.Locale); ok {
			t.SetKeyword("hc", "", false)
			f.Locale = t.String()
		}
	}
	zone := o.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	var ok bool
	f.zone, ok = LoadZone(zone)
	if !ok {
		return nil, RangeError("Invalid time zone specified: " + zone)
	}
	f.digits, f.dates = numbering(f.Numbering), cldr.Of("date", data)
	f.choose(keywords["hc"])
	return f, nil
}

func supportsDate(_, key, value string) bool {
	switch key {
	case "ca":
		return slices.Contains(calendars, value)
	case "hc":
		return slices.Contains([]string{"h11", "h12", "h23", "h24"}, value)
	}
	return ValidNumbering(value)
}

// calendars are those that dates are written in.
var calendars = []string{"gregory", "iso8601"}

func hourKeyword(o DateOptions) string {
	if o.Hour12 != nil {
		return ""
	}
	return o.HourCycle
}

var hourLetters = map[string]byte{"h11": 'K', "h12": 'h', "h23": 'H', "h24": 'k'}

func cycleOf(letter byte) string {
	for cycle, l := range hourLetters {
		if l == letter {
			return cycle
		}
	}
	return "h23"
}

// choose finds the format's pattern.
func (f *DateFormat) choose(keyword string) {
	base, _, _ := strings.Cut(f.Locale, "-u-")
	p := patternsOf(base, f.data)
	cycle := cycleOf(p.hour)
	switch {
	case f.options.Hour12 != nil:
		cycle = hour12Cycle(cycle, base, *f.options.Hour12)
	case keyword != "":
		cycle = keyword
	}
	if f.DateStyle != "" || f.TimeStyle != "" {
		f.pattern = f.styled(p, cycle)
	} else {
		f.pattern = f.fielded(p, cycle)
	}
	f.list = tokens(f.pattern)
	if slices.ContainsFunc(f.list, isHour) {
		f.HourCycle = cycle
	}
}

func hour12Cycle(usual, locale string, twelve bool) string {
	if twelve {
		if usual == "h11" || usual == "h12" {
			return usual
		}
		if region(locale) == "JP" {
			return "h11"
		}
		return "h12"
	}
	if usual == "h23" || usual == "h24" {
		return usual
	}
	return "h23"
}

func isHour(t token) bool { return t.field && strings.ContainsRune("hHkK", rune(t.text[0])) }

// styled returns the pattern of dateStyle and timeStyle.
func (f *DateFormat) styled(p *patterns, cycle string) string {
	date, clock := f.dates.Get("dateFormats/"+f.DateStyle), f.dates.Get("timeFormats/"+f.TimeStyle)
	pattern := date + clock
	if f.TimeStyle == "" {
		return pattern
	}
	if f.DateStyle != "" {
		pattern = fill(p.glue[slices.Index(styles, f.DateStyle)], clock, date)
	}
	list := tokens(pattern)
	at := slices.IndexFunc(list, isHour)
	if at < 0 || cycleOf(list[at].text[0]) == cycle {
		return pattern
	}
	skeleton := ""
	for _, t := range list {
		switch {
		case isHour(t):
			skeleton += strings.Repeat(string(hourLetters[cycle]), len(t.text))
		case t.field && !strings.ContainsRune("abB", rune(t.text[0])):
			skeleton += t.text
		}
	}
	return replaceHours(p.best(skeleton), cycle)
}

// replaceHours writes the hours of a pattern with the letter of a cycle.
func replaceHours(pattern, cycle string) string {
	list := tokens(pattern)
	for i, t := range list {
		if isHour(t) {
			list[i].text = strings.Repeat(string(hourLetters[cycle]), len(t.text))
		}
	}
	return join(list)
}

// fieldLetters are the letters of a skeleton for the values of an option.
var fieldLetters = []struct {
	option string
	letter byte
	widths map[string]int
}{
	{"weekday", 'E', map[string]int{"narrow": 5, "long": 4, "short": 3}},
	{"era", 'G', map[string]int{"narrow": 5, "long": 4, "short": 3}},
	{"year", 'y', map[string]int{"2-digit": 2, "numeric": 1}},
	{"month", 'M', map[string]int{"narrow": 5, "long": 4, "short": 3, "2-digit": 2, "numeric": 1}},
	{"day", 'd', map[string]int{"2-digit": 2, "numeric": 1}},
	{"dayPeriod", 'B', map[string]int{"narrow": 5, "long": 4, "short": 1}},
	{"hour", 'j', map[string]int{"2-digit": 2, "numeric": 1}},
	{"minute", 'm', map[string]int{"2-digit": 2, "numeric": 1}},
	{"second", 's', map[string]int{"2-digit": 2, "numeric": 1}},
}

var zoneLetters = map[string]string{
	"long": "zzzz", "short": "z", "longOffset": "OOOO", "shortOffset": "O", "longGeneric": "vvvv", "shortGeneric": "v",
}

func (o *DateOptions) field(name string) *string {
	return map[string]*string{
		"weekday": &o.Weekday, "era": &o.Era, "year": &o.Year, "month": &o.Month, "day": &o.Day, "dayPeriod": &o.DayPeriod,
		"hour": &o.Hour, "minute": &o.Minute, "second": &o.Second,
	}[name]
}

// setDefaults adds the fields that a format without any gets.
func (o *DateOptions) setDefaults() {
	date := o.Weekday+o.Year+o.Month+o.Day != ""
	clock := o.DayPeriod+o.Hour+o.Minute+o.Second != "" || o.FractionalSecondDigits > 0
	if (o.Required == "date" || o.Required == "any") && date || (o.Required == "time" || o.Required == "any") && clock {
		return
	}
	if o.Defaults == "date" || o.Defaults == "all" {
		o.Year, o.Month, o.Day = "numeric", "numeric", "numeric"
	}
	if o.Defaults == "time" || o.Defaults == "all" {
		o.Hour, o.Minute, o.Second = "numeric", "numeric", "numeric"
	}
}

// fielded returns the pattern of the options for single fields.
func (f *DateFormat) fielded(p *patterns, cycle string) string {
	f.options.setDefaults()
	skeleton := ""
	for _, l := range fieldLetters {
		value := *f.options.field(l.option)
		if value == "" {
			continue
		}
		letter := l.letter
		if letter == 'j' {
			letter = hourLetters[cycle]
		}
		skeleton += strings.Repeat(string(letter), l.widths[value])
	}
	skeleton += strings.Repeat("S", f.options.FractionalSecondDigits) + zoneLetters[f.options.TimeZoneName]
	return replaceHours(p.best(skeleton), cycle)
}

// Fields returns the options that the format's pattern shows, in order, as resolvedOptions
// has them: name and value.
func (f *DateFormat) Fields() [][2]string {
	var out [][2]string
	for _, l := range fieldLetters {
		for _, t := range f.list {
			if !t.field || !sameOption(l.letter, t.text[0]) {
				continue
			}
			for value, width := range l.widths {
				if width == len(t.text) || l.letter == 'B' && width == 1 && len(t.text) < 4 || l.letter == 'G' && width == 3 && len(t.text) < 4 || l.letter == 'E' && width == 3 && len(t.text) < 4 {
					out = append(out, [2]string{l.option, value})
				}
			}
			break
		}
	}
	for _, t := range f.list {
		if t.field && t.text[0] == 'S' {
			out = append(out, [2]string{"fractionalSecondDigits", strconv.Itoa(len(t.text))})
		}
	}
	for _, t := range f.list {
		for value, letters := range zoneLetters {
			if t.field && letters == t.text {
				out = append(out, [2]string{"timeZoneName", value})
			}
		}
	}
	return out
}

func sameOption(option, letter byte) bool {
	switch option {
	case 'E':
		return letter == 'E' || letter == 'c'
	case 'M':
		return letter == 'M' || letter == 'L'
	case 'j':
		return strings.ContainsRune("hHkK", rune(letter))
	}
	return option == letter
}

// Format writes a time value of JavaScript, which must be finite. A narrow no-break space
// becomes a space, as engines have it since programs failed on the other one.
func (f *DateFormat) Format(ms float64) string {
	return strings.ReplaceAll(Text(f.Parts(ms)), "\u202f", " ")
}

// Parts writes a time value of JavaScript in parts.
func (f *DateFormat) Parts(ms float64) []Part { return f.write(f.list, f.zone.at(ms)) }

// write fills the fields of a pattern.
func (f *DateFormat) write(list []token, t time.Time) []Part {
	var parts []Part
	for _, k := range list {
		if !k.field {
			parts = literal(parts, k.text)
			continue
		}
		kind, value := f.value(k.text, t)
		parts = append(parts, Part{Type: kind, Value: value})
	}
	return parts
}

// value writes one field of the pattern.
func (f *DateFormat) value(field string, t time.Time) (kind, text string) {
	n := len(field)
	switch field[0] {
	case 'G':
		return "era", f.dates.Get("eras/" + [6]string{0: "", 1: "eraAbbr", 2: "eraAbbr", 3: "eraAbbr", 4: "eraNames", 5: "eraNarrow"}[min(n, 5)] + "/" + era(t))
	case 'y', 'u', 'Y', 'r':
		year := t.Year()
		if year <= 0 && field[0] == 'y' {
			year = 1 - year
		}
		if n == 2 {
			return "year", f.number(year%100, 2)
		}
		return "year", f.number(year, n)
	case 'M', 'L':
		return "month", f.name("months", field, strconv.Itoa(int(t.Month())), int(t.Month()))
	case 'd':
		return "day", f.number(t.Day(), n)
	case 'E', 'c', 'e':
		day := [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}[t.Weekday()]
		if n < 3 {
			field = field[:1] + field[:1] + field[:1]
		}
		return "weekday", f.name("days", field, day, 0)
	case 'a', 'b', 'B':
		return "dayPeriod", f.period(field, t)
	case 'h':
		return "hour", f.number((t.Hour()+11)%12+1, n)
	case 'K':
		return "hour", f.number(t.Hour()%12, n)
	case 'H':
		return "hour", f.number(t.Hour(), n)
	case 'k':
		return "hour", f.number((t.Hour()+23)%24+1, n)
	case 'm':
		return "minute", f.number(t.Minute(), n)
	case 's':
		return "second", f.number(t.Second(), n)
	case 'S':
		return "fractionalSecond", f.digits.write(pad(t.Nanosecond()/1e6, 3)[:min(n, 3)])
	case 'z', 'v', 'O':
		return "timeZoneName", f.zoneName(field, t)
	}
	return "unknown", field
}

func era(t time.Time) string {
	if t.Year() <= 0 {
		return "0"
	}
	return "1"
}

func (f *DateFormat) number(n, width int) string { return f.digits.write(pad(n, width)) }

// name writes a month or a day of the week.
func (f *DateFormat) name(kind, field, key string, number int) string {
	if len(field) < 3 {
		return f.number(number, len(field))
	}
	form := "/format/"
	if field[0] == 'L' || field[0] == 'c' {
		form = "/stand-alone/"
	}
	width := [...]string{"abbreviated", "wide", "narrow", "short"}[len(field)-3]
	return f.dates.Get(kind + form + width + "/" + key)
}

// period writes the part of the day: am or pm, or with B a longer part, which the locale's
// rules have.
func (f *DateFormat) period(field string, t time.Time) string {
	width := "abbreviated"
	switch {
	case len(field) == 5:
		width = "narrow"
	case len(field) == 4:
		width = "wide"
	}
	key := "am"
	if t.Hour() >= 12 {
		key = "pm"
	}
	if field[0] == 'B' {
		if p := f.partOfDay(t); p != "" {
			if name := f.dates.Get("dayPeriods/format/" + width + "/" + p); name != "" {
				return name
			}
		}
	}
	return f.dates.Get("dayPeriods/format/" + width + "/" + key)
}

// partOfDay finds the rule of the locale for t.
func (f *DateFormat) partOfDay(t time.Time) string {
	rules := ""
	for locale := f.data; locale != "und" && rules == ""; locale = cldr.Parent(locale) {
		rules = cldr.Table("periods")[locale]
	}
	now := pad(t.Hour(), 2) + ":" + pad(t.Minute(), 2)
	shows := slices.ContainsFunc(f.list, func(k token) bool { return k.field && k.text[0] == 'm' })
	found := ""
	for rule := range strings.FieldsSeq(rules) {
		name, times, _ := strings.Cut(rule, "=")
		from, before, spans := strings.Cut(times, "-")
		if !spans {
			if exact := from == now || !shows && from[:2] == now[:2]; exact && (t.Second() == 0 || !shows) {
				return name
			}
			continue
		}
		if from < before && from <= now && now < before || from > before && (from <= now || now < before) {
			found = name
		}
	}
	return found
}
