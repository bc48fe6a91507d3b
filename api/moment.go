package api

import (
	"encoding/json"
	"time"
)

// momentLayout is RFC 3339 with three digits of a second, which is also what Date.toISOString
// of JavaScript returns.
const momentLayout = "2006-01-02T15:04:05.000Z07:00"

// Moment is a time as the document storage writes it: in UTC, with milliseconds and always the
// same number of digits, so that texts sort as the times do. It reads every time of RFC 3339.
type Moment struct{ time.Time }

// NewMoment returns the moment of a Unix time in milliseconds.
func NewMoment(ms int64) Moment { return Moment{time.UnixMilli(ms).UTC()} }

// MarshalJSON writes "2026-10-08T19:00:00.000Z".
func (m Moment) MarshalJSON() ([]byte, error) {
	return json.Marshal(m.UTC().Format(momentLayout))
}
