package api

import (
	"strconv"
	"strings"
	"time"
)

// SizeText returns a number of bytes as people write it, for messages: 262144 is
// "256 KiB". A size between two units has one decimal, rounded up, so that a size over a limit
// never reads like the limit. Below 1 KiB it is the number of bytes.
//
//	255      255 bytes
//	6291456  6 MiB
//	6291457  6.1 MiB
func SizeText[N int | int64](bytes N) string {
	n := int64(bytes)
	if n == 1 {
		return "1 byte"
	}
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1<<10 {
		return CountText(n) + " bytes"
	}
	unit, name := int64(1), ""
	for i := 0; i < len(units) && n/unit >= 1<<10; i++ {
		unit, name = unit<<10, units[i]
	}
	if n%unit == 0 {
		return CountText(n/unit) + " " + name
	}
	whole, rest := n/unit, n%unit
	tenths := (rest*10 + unit - 1) / unit
	if tenths == 10 {
		return CountText(whole+1) + " " + name
	}
	return CountText(whole) + "." + strconv.FormatInt(tenths, 10) + " " + name
}

// CountText returns a number with a comma between thousands: "10,000".
func CountText(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// DurationText returns a number of milliseconds as people write it, with at most two units and
// without a loss of precision below a minute.
//
//	300     300 ms
//	1500    1.5 s
//	90000   1 min 30 s
//	7200000 2 h
func DurationText(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return CountText(ms) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + " s"
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
}

// twoUnits returns d in whole units, and the rest in smaller ones if there is any.
func twoUnits(d, unit time.Duration, name string, smaller time.Duration, smallerName string) string {
	text := CountText(int64(d/unit)) + " " + name
	if rest := int64(d % unit / smaller); rest > 0 {
		text += " " + strconv.FormatInt(rest, 10) + " " + smallerName
	}
	return text
}
