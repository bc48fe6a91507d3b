package intl

import (
	"slices"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// Locale is an Intl.Locale.
type Locale struct{ Tag Tag }

// SupportedValues returns the values of Intl.supportedValuesOf, sorted. ok is false for an
// unknown key.
func SupportedValues(key string) (values []string, ok bool) {
	switch key {
	case "calendar":
		values = slices.Clone(calendars)
	case "collation":
		values = []string{"default"}
	case "currency":
		seen := map[string]bool{}
		cldr.Of("currency", "en").Each("", func(rest, _ string) {
			code, _, _ := strings.Cut(rest, "/")
			if len(code) == 3 && !seen[code] {
				seen[code] = true
				values = append(values, code)
			}
		})
	case "numberingSystem":
		for name := range cldr.Table("digits") {
			values = append(values, name)
		}
	case "timeZone":
		values = Zones()
	case "unit":
		values = slices.Clone(Units)
	default:
		return nil, false
	}
	slices.Sort(values)
	return values, true
}

// Units are the units that ECMA-402 allows.
var Units = strings.Fields("acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit " +
	"gigabyte gram hectare hour inch kilobit kilobyte kilogram kilometer liter megabit megabyte meter microsecond mile " +
	"mile-scandinavian milliliter millimeter millisecond minute month nanosecond ounce percent petabyte pound second " +
	"stone terabit terabyte week yard year")

// HourCycles returns those of the locale's region, the preferred one first.
func (l *Locale) HourCycles() []string {
	if v, ok := l.Tag.Keyword("hc"); ok {
		return []string{v}
	}
	preferred, _ := hours(l.Tag.Base())
	return []string{cycleOf(preferred)}
}

// NumberingSystem returns the locale's usual one.
func (l *Locale) NumberingSystem() string {
	if v, ok := l.Tag.Keyword("nu"); ok {
		return v
	}
	if found, ok := Matched(l.Tag.Base()); ok {
		return defaultNumbering(dataLocale(found))
	}
	return "latn"
}

// TimeZones returns the zones of the locale's region.
func (l *Locale) TimeZones() []string {
	var out []string
	region := strings.ToLower(l.Tag.Region)
	for code, names := range cldr.Table("zones") {
		if name, _, _ := strings.Cut(names, " "); len(code) == 5 && strings.HasPrefix(code, region) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Direction returns ltr or rtl.
func (l *Locale) Direction() string {
	most := l.Tag.Maximize()
	if slices.Contains([]string{"Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg", "Samr", "Mand"}, most.Script) {
		return "rtl"
	}
	return "ltr"
}

// Week returns the first day of the week, the days of the weekend, and how many days the
// first week of a year has at least; Monday is 1.
func (l *Locale) Week() (first int, weekend []int, least int) {
	region := l.Tag.region()
	day := func(table string) int {
		t := cldr.Table("week " + table)
		name, ok := t[region]
		if !ok {
			name = t["001"]
		}
		return slices.Index([]string{"", "mon", "tue", "wed", "thu", "fri", "sat", "sun"}, name)
	}
	for d := day("weekendStart"); ; d = d%7 + 1 {
		weekend = append(weekend, d)
		if d == day("weekendEnd") || len(weekend) == 7 {
			break
		}
	}
	days := cldr.Table("week minDays")
	if n, ok := days[region]; ok {
		return day("firstDay"), weekend, int(n[0] - '0')
	}
	return day("firstDay"), weekend, int(days["001"][0] - '0')
}

// Replace returns the tag with its language, script and region replaced by those that are
// not empty. ok is false if one is not of its form.
func (t *Tag) Replace(language, script, region string) (out Tag, ok bool) {
	out = *t
	for _, p := range []struct {
		to   *string
		from string
	}{{&out.Language, language}, {&out.Script, script}, {&out.Region, region}} {
		if p.from != "" {
			*p.to = strings.ToLower(p.from)
		}
	}
	lower := strings.ToLower(language)
	switch {
	case language != "" && !alphanumeric(lower, 'a', 2, 3) && !alphanumeric(lower, 'a', 5, 8):
		return out, false
	case script != "" && !alphanumeric(strings.ToLower(script), 'a', 4, 4):
		return out, false
	case region != "" && !alphanumeric(strings.ToLower(region), 'a', 2, 2) && !alphanumeric(region, '0', 3, 3):
		return out, false
	}
	return ParseTag(out.String())
}
