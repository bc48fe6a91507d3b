package api

import (
	"slices"
	"strconv"
	"strings"
)

// InvalidRange returns the CodeInvalid error of a number that is not from least to most. path
// names its field.
func InvalidRange(path string, least, most int64) *Error {
	return InvalidField(path, RangeRule(path, least, most))
}

// RangeRule says what the number of a field must be:
//
//	max_attempts   must be from 1 to 1,000
//	lease_ms       must be from 1,000 ms (1 s) to 43,200,000 ms (12 h)
func RangeRule(path string, least, most int64) string {
	if least == 0 {
		return "must be from 0 to " + AmountText(path, most)
	}
	return "must be from " + AmountText(path, least) + " to " + AmountText(path, most)
}

// AmountText returns the number of a field as people write it, with the unit that the name of
// the field ends with, and in a larger unit if it is a whole number of these:
//
//	limits.memoryMb   4,096 MiB (4 GiB)
//	timeout_ms        900,000 ms (15 min)
func AmountText(path string, n int64) string {
	text := GroupDigits(n)
	switch {
	case endsWith(path, "_ms", "Ms"):
		return text + " ms" + inLarger(n, []unit{{1, "ms"}, {1000, "s"}, {60, "min"}, {60, "h"}, {24, "d"}})
	case endsWith(path, "_seconds", "Seconds"):
		return text + " s" + inLarger(n, []unit{{1, "s"}, {60, "min"}, {60, "h"}, {24, "d"}})
	case endsWith(path, "_mb", "Mb"):
		return text + " MiB" + inLarger(n, []unit{{1, "MiB"}, {1024, "GiB"}})
	case endsWith(path, "_bytes", "Bytes"):
		return text + " B" + inLarger(n, []unit{{1, "B"}, {1024, "KiB"}, {1024, "MiB"}, {1024, "GiB"}})
	}
	return text
}

func endsWith(s string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(s, end) })
}

// A unit is a number of the unit before it.
type unit struct {
	of   int64
	name string
}

// inLarger returns an amount of the first unit in larger ones: " (1 h 30 min)". It returns ""
// if more than two units were necessary, or none larger.
func inLarger(n int64, units []unit) string {
	var parts []string
	for i, u := range units {
		rest := n
		if i+1 < len(units) {
			rest, n = n%units[i+1].of, n/units[i+1].of
		}
		if rest > 0 {
			parts = append([]string{strconv.FormatInt(rest, 10) + " " + u.name}, parts...)
			if i == 0 && n == 0 {
				return ""
			}
		}
		if n == 0 {
			break
		}
	}
	if len(parts) == 0 || len(parts) > 2 {
		return ""
	}
	return " (" + strings.Join(parts, " ") + ")"
}

// GroupDigits returns n with a comma between thousands: 5,000,000.
func GroupDigits(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}
