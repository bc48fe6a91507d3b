package budget

import (
	"errors"
	"sort"
	"time"
)

// zoneOf returns the time zone of a name, which it reads from the machine's database. "Local" is none:
// it differs from replica to replica.
func zoneOf(name string) (*time.Location, error) {
	if name == "" || name == "Local" || len(name) > maxZoneLength {
		return nil, errors.New("budget: no such time zone")
	}
	return time.LoadLocation(name) // refuses paths that lead elsewhere
}

// Location returns the time zone of s. A zone that this machine does not know is UTC: Validate has
// refused it on the machine that accepted s.
func (s *Settings) Location() *time.Location {
	zone, err := zoneOf(s.Zone)
	if err != nil {
		return time.UTC
	}
	return zone
}

const (
	secondsPerDay = 24 * 60 * 60
	// longestDay bounds the time to the end of a day: clocks that are put back make one longer, and
	// a zone that changes its side of the date line skips a date.
	longestDay = 50 * 60 * 60 // in seconds
)

// date returns the date of a moment in zone, as days since 1970.
func date(zone *time.Location, at time.Time) int64 {
	year, month, day := at.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

// Day returns the day of a moment in zone, counted from 1970, and when the next day begins. Moments are
// Unix times in milliseconds. A day begins with the first second of its date, also where the clocks
// skip or repeat midnight.
func Day(zone *time.Location, ms int64) (day, next int64) {
	at := time.UnixMilli(ms)
	day = date(zone, at)
	seconds := sort.Search(longestDay, func(n int) bool { return date(zone, time.Unix(at.Unix()+int64(n), 0)) > day })
	return day, (at.Unix() + int64(seconds)) * 1000
}

// DateText returns a day as a date such as 2026-11-27.
func DateText(day int64) string { return time.Unix(day*secondsPerDay, 0).UTC().Format(time.DateOnly) }
