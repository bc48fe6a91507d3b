package intl

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Decimal is a number to be written: 0.DIGITS times ten to the power of exp, which has no
// digits if it is zero.
type Decimal struct {
	negative, nan, infinite bool
	digits                  []byte // '0' to '9', the first and the last are not '0'
	exp                     int
}

// NewDecimal returns the decimal number that JavaScript shows for a Number.
func NewDecimal(n float64) Decimal {
	switch {
	case math.IsNaN(n):
		return Decimal{nan: true}
	case math.IsInf(n, 0):
		return Decimal{infinite: true, negative: n < 0}
	}
	d, _ := ParseDecimal(strconv.FormatFloat(n, 'e', -1, 64))
	return d
}

// ParseDecimal reads a decimal number, such as that of a BigInt.
func ParseDecimal(s string) (Decimal, bool) {
	d := Decimal{}
	s = strings.TrimPrefix(s, "+")
	if strings.HasPrefix(s, "-") {
		d.negative, s = true, s[1:]
	}
	mantissa, e, scientific := strings.Cut(strings.ToLower(s), "e")
	if scientific {
		n, err := strconv.Atoi(e)
		if err != nil {
			return d, false
		}
		d.exp = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return d, false
	}
	d.digits, d.exp = []byte(whole+fraction), d.exp+len(whole)
	d.trim()
	return d, true
}

// trim removes zeros at either end.
func (d *Decimal) trim() {
	for len(d.digits) > 0 && d.digits[0] == '0' {
		d.digits = d.digits[1:]
		d.exp--
	}
	for len(d.digits) > 0 && d.digits[len(d.digits)-1] == '0' {
		d.digits = d.digits[:len(d.digits)-1]
	}
	if len(d.digits) == 0 {
		d.exp = 0
	}
}

func (d *Decimal) zero() bool { return len(d.digits) == 0 && !d.nan && !d.infinite }

// magnitude is the power of ten of the first digit.
func (d *Decimal) magnitude() int {
	if d.zero() {
		return 0
	}
	return d.exp - 1
}

// round returns d rounded to places after the decimal point, which may be negative. The
// increment is in units of the last place.
func (d Decimal) round(places, increment int, mode string) Decimal {
	keep := d.exp + places
	if increment > 1 {
		return d.roundTo(places, increment, mode)
	}
	if keep >= len(d.digits) {
		return d
	}
	out := d
	var half int // how the rest compares with a half
	var rest []byte
	if keep < 0 {
		half = -1
		out.digits = nil
	} else {
		rest = d.digits[keep:]
		half = compareHalf(rest)
		out.digits = slices.Clone(d.digits[:keep])
	}
	odd := len(out.digits) > 0 && (out.digits[len(out.digits)-1]-'0')%2 == 1
	if len(d.digits) > 0 && roundsUp(mode, d.negative, half, odd) {
		out.increase(places)
	}
	out.trim()
	return out
}

// compareHalf compares a fraction's digits with a half: -1, 0 or 1.
func compareHalf(rest []byte) int {
	switch {
	case rest[0] > '5':
		return 1
	case rest[0] < '5':
		return -1
	case len(rest) > 1:
		return 1
	}
	return 0
}

func roundsUp(mode string, negative bool, half int, odd bool) bool {
	switch mode {
	case "ceil":
		return !negative
	case "floor":
		return negative
	case "expand":
		return true
	case "trunc":
		return false
	}
	if half != 0 {
		return half > 0
	}
	switch mode {
	case "halfCeil":
		return !negative
	case "halfFloor":
		return negative
	case "halfTrunc":
		return false
	case "halfEven":
		return odd
	}
	return true
}

// increase adds one in the last of the places after the decimal point.
func (d *Decimal) increase(places int) {
	for i := len(d.digits) - 1; i >= 0; i-- {
		if d.digits[i] < '9' {
			d.digits[i]++
			return
		}
		d.digits[i] = '0'
	}
	if len(d.digits) == 0 {
		d.exp = 1 - places
		d.digits = []byte{'1'}
		return
	}
	d.digits = append([]byte{'1'}, d.digits...)
	d.exp++
}

// roundTo rounds to a multiple of an increment.
func (d Decimal) roundTo(places, increment int, mode string) Decimal {
	scaled := d
	scaled.exp += places
	f, _ := strconv.ParseFloat(scaled.plain(0, 0), 64)
	q := f / float64(increment)
	low := math.Floor(math.Abs(q))
	rest := math.Abs(q) - low
	half := 0
	switch {
	case rest > 0.5:
		half = 1
	case rest < 0.5:
		half = -1
	}
	if rest > 0 && roundsUp(mode, d.negative, half, math.Mod(low, 2) == 1) {
		low++
	}
	out := NewDecimal(low * float64(increment))
	out.negative = d.negative
	if !out.zero() {
		out.exp -= places
	}
	return out
}

// plain writes the number without its sign, with at least so many digits before and after
// the decimal point.
func (d *Decimal) plain(integers, fractions int) string {
	var whole, fraction string
	if d.exp > 0 {
		n := min(d.exp, len(d.digits))
		whole = string(d.digits[:n]) + strings.Repeat("0", d.exp-n)
		fraction = string(d.digits[n:])
	} else if len(d.digits) > 0 {
		fraction = strings.Repeat("0", -d.exp) + string(d.digits)
	}
	integers = max(integers, 1)
	if len(whole) < integers {
		whole = strings.Repeat("0", integers-len(whole)) + whole
	}
	if len(fraction) < fractions {
		fraction += strings.Repeat("0", fractions-len(fraction))
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// IsNaN reports whether the number is NaN.
func (d *Decimal) IsNaN() bool { return d.nan }
