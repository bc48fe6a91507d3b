package agent

import (
	"bytes"
	"strconv"
	"strings"
)

// USD is an amount of US dollars in millionths. In JSON it is a text such as "0.0125"; a number is
// read, too. No floating point takes part: what has no exact amount in millionths is badUSD, which
// the checks of this package refuse with the name of its field.
type USD int64

// The unit of an amount, and the largest amounts of one entry of usage and of one limit.
const (
	Dollar      USD = 1_000_000
	MaxUSD          = 1_000_000 * Dollar
	usdDigits       = 6
	badUSD      USD = -1
	maxUSDText      = 40
	usdRule         = "must be dollars from 0 to 1000000 with at most 6 digits behind the point"
	maxExponent     = 30
)

// ParseUSD parses a decimal number such as 12, 0.0125 or 1.25e-2. ok is false for an amount that is
// negative, above MaxUSD, no multiple of a millionth, or no number.
func ParseUSD(text string) (amount USD, ok bool) {
	if len(text) > maxUSDText {
		return badUSD, false
	}
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		n, err := strconv.Atoi(text[at+1:])
		if err != nil || n < -maxExponent || n > maxExponent {
			return badUSD, false
		}
		mantissa, exponent = text[:at], n
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if whole == "" || point && fraction == "" || !isDigits(whole) || !isDigits(fraction) {
		return badUSD, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	zeros := exponent + usdDigits - len(fraction) // behind digits, to have millionths
	for ; zeros < 0 && strings.HasSuffix(digits, "0"); zeros++ {
		digits = digits[:len(digits)-1]
	}
	if digits == "" {
		return 0, true
	}
	if zeros < 0 || len(digits)+zeros > len("1000000000000") {
		return badUSD, false
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil || USD(n) > MaxUSD {
		return badUSD, false
	}
	return USD(n), true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// String returns the amount without needless zeros: 12, 0.0125.
func (u USD) String() string {
	sign, n := "", int64(u)
	if n < 0 {
		sign, n = "-", -n
	}
	whole, fraction := n/int64(Dollar), strconv.FormatInt(n%int64(Dollar)+int64(Dollar), 10)[1:]
	text := sign + strconv.FormatInt(whole, 10)
	fraction = strings.TrimRight(fraction, "0")
	if fraction != "" {
		text += "." + fraction
	}
	return text
}

// MarshalText returns String.
func (u USD) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads a decimal number.
func (u *USD) UnmarshalText(text []byte) error {
	*u, _ = ParseUSD(string(text))
	return nil
}

// UnmarshalJSON reads a number, or a text that is one.
func (u *USD) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	text := string(raw)
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	return u.UnmarshalText([]byte(text))
}

// valid reports whether u is in the range of one entry or limit.
func (u USD) valid() bool { return u >= 0 && u <= MaxUSD }
