package intl

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a sandbox has no file system

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// Zone is a time zone: one of the IANA database, or a fixed offset such as +02:00.
type Zone struct {
	Name  string // as resolvedOptions has it
	place *time.Location
	fixed bool
}

// zoneNames maps the name of each zone in lower case to its name, and canonical to the name
// that CLDR has for it.
var zoneNames = sync.OnceValues(func() (byName, canonical map[string]string) {
	byName, canonical = map[string]string{}, map[string]string{}
	for _, line := range cldr.Table("zones") {
		var first string
		for name := range strings.FieldsSeq(line) {
			name = strings.TrimPrefix(name, "=")
			if first == "" {
				first = name
			}
			byName[strings.ToLower(name)] = name
			canonical[name] = first
		}
	}
	return byName, canonical
})

// LoadZone finds a zone by its name, in any case, or by its offset. ok is false if there is
// none.
func LoadZone(name string) (zone *Zone, ok bool) {
	if offset, ok := parseOffset(name); ok {
		label := offsetName(offset)
		return &Zone{label, time.FixedZone(label, offset*60), true}, true
	}
	names, canonical := zoneNames()
	found, ok := names[strings.ToLower(name)]
	if !ok {
		return nil, false
	}
	label := canonical[found]
	switch label {
	case "Etc/UTC", "Etc/GMT", "GMT":
		return &Zone{"UTC", time.UTC, false}, true
	}
	place, err := time.LoadLocation(found)
	if err != nil {
		place, err = time.LoadLocation(label)
	}
	if err != nil {
		return nil, false
	}
	return &Zone{label, place, false}, true
}

// Zones returns the canonical names of the zones, in any order.
func Zones() []string {
	_, canonical := zoneNames()
	var all []string
	for name, first := range canonical {
		if name == first && strings.Contains(name, "/") && !strings.HasPrefix(name, "Etc/") {
			all = append(all, name)
		}
	}
	return append(all, "UTC")
}

// parseOffset reads ±HH, ±HHMM or ±HH:MM as minutes.
func parseOffset(s string) (minutes int, ok bool) {
	if len(s) < 3 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	digits := s[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) == 2 {
		digits += "00"
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) != 4 || n/100 > 23 || n%100 > 59 {
		return 0, false
	}
	minutes = int(n/100*60 + n%100)
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

func offsetName(minutes int) string {
	sign := "+"
	if minutes < 0 {
		sign, minutes = "-", -minutes
	}
	return sign + pad(minutes/60, 2) + ":" + pad(minutes%60, 2)
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	if len(s) < width {
		s = strings.Repeat("0", width-len(s)) + s
	}
	return s
}

// at returns the time of a JavaScript time value in the zone.
func (z *Zone) at(ms float64) time.Time {
	return time.UnixMilli(int64(math.Trunc(ms))).In(z.place)
}

// metazone returns the metazone of a zone at an instant, "" for none.
func (z *Zone) metazone(t time.Time) string {
	uses, ok := cldr.Table("metazones")[z.Name]
	if !ok || t.Unix() < 0 { // the history of metazones begins in 1970
		return ""
	}
	now := t.UTC().Format("2006-01-02 15:04")
	for use := range strings.SplitSeq(uses, ";") {
		f := strings.Split(use, ",")
		if (f[1] == "" || f[1] <= now) && (f[2] == "" || now < f[2]) {
			return f[0]
		}
	}
	return ""
}

// summer reports whether the zone has summer time at t. The database calls the winter of some
// zones the exception, and CLDR the summer of all.
func (z *Zone) summer(t time.Time) bool {
	switch z.Name {
	case "Europe/Dublin", "Africa/Casablanca", "Africa/El_Aaiun":
		_, offset := t.Zone()
		return offset == 3600
	case "Africa/Windhoek":
		_, offset := t.Zone()
		return offset == 7200 && t.IsDST()
	}
	return t.IsDST()
}

// zoneName returns the name of the zone at t in the style of a pattern's field, as CLDR
// writes it: z, zzzz, O, OOOO, v or vvvv.
func (f *DateFormat) zoneName(field string, t time.Time) string {
	switch field {
	case "O":
		return f.offset(t, false)
	case "OOOO":
		return f.offset(t, true)
	}
	width := "short"
	if len(field) == 4 {
		width = "long"
	}
	data := cldr.Of("zone", f.data)
	kind := "standard"
	if f.zone.summer(t) {
		kind = "daylight"
	}
	if field[0] == 'v' {
		kind = "generic"
	}
	if !f.zone.fixed {
		if name := f.specific(data, width, kind, t); name != "" {
			return name
		}
	}
	if field[0] == 'v' && !f.zone.fixed {
		if name := f.location(data); name != "" {
			return name
		}
	}
	return f.offset(t, width == "long")
}

// specific returns the name that the zone or its metazone has in the locale.
func (f *DateFormat) specific(data *cldr.Section, width, kind string, t time.Time) string {
	id := f.zone.Name
	if id == "UTC" {
		id = "Etc/UTC"
	}
	mz := f.zone.metazone(t)
	for _, k := range []string{"zone/" + id, "metazone/" + mz} {
		if name := data.Get(k + "/" + width + "/" + kind); name != "" {
			return name
		}
	}
	if kind == "generic" && !observes(f.zone.place, t) {
		// A zone without summer time has the standard name for a generic one.
		for _, k := range []string{"zone/" + id, "metazone/" + mz} {
			if name := data.Get(k + "/" + width + "/standard"); name != "" {
				return name
			}
		}
	}
	return ""
}

// observes reports whether a place has summer time within half a year of t.
func observes(place *time.Location, t time.Time) bool {
	for _, d := range []time.Duration{-184, -92, 0, 92, 184} {
		if t.Add(d * 24 * time.Hour).In(place).IsDST() {
			return true
		}
	}
	return false
}

// location returns the name of a zone by its city, such as "Berlin Time".
func (f *DateFormat) location(data *cldr.Section) string {
	city := data.Get("zone/" + f.zone.Name + "/exemplarCity")
	if city == "" {
		at := strings.LastIndexByte(f.zone.Name, '/')
		if at < 0 || strings.HasPrefix(f.zone.Name, "Etc/") {
			return ""
		}
		city = strings.ReplaceAll(f.zone.Name[at+1:], "_", " ")
	}
	return strings.Replace(data.Get("regionFormat"), "{0}", city, 1)
}

// offset writes the offset from UTC in the locale's form: GMT+1, or GMT+01:00 if long.
func (f *DateFormat) offset(t time.Time, long bool) string {
	data := cldr.Of("zone", f.data)
	_, seconds := t.Zone()
	positive, negative, _ := strings.Cut(data.Get("hourFormat"), ";")
	form := positive
	if seconds < 0 {
		form, seconds = negative, -seconds
	}
	h, m, s := seconds/3600, seconds/60%60, seconds%60
	// The form is a sign, the hours, a separator and the minutes.
	start := strings.IndexByte(form, 'H')
	end := strings.LastIndexByte(form, 'H') + 1
	minutes := strings.IndexByte(form, 'm')
	hour := strconv.Itoa(h)
	if long {
		hour = pad(h, 2)
	}
	text := form[:start] + hour
	separator := form[end:minutes]
	if long || m != 0 || s != 0 {
		text += separator + pad(m, 2)
	}
	if s != 0 {
		text += separator + pad(s, 2)
	}
	text += form[strings.LastIndexByte(form, 'm')+1:]
	return strings.Replace(data.Get("gmtFormat"), "{0}", f.digits.write(text), 1)
}
