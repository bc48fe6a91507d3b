// Package intl formats dates, numbers, lists and names as the internationalization API of
// ECMAScript does (https://tc39.es/ecma402/), with the data of package cldr. It has no
// JavaScript in it: a format is made of options in Go, and writes parts.
//
//	f, err := intl.NewDateFormat(tags, intl.DateOptions{DateStyle: "long"})
//	f.Format(0)   "January 1, 1970"
package intl

// Part is a piece of a result, as formatToParts returns it.
type Part struct {
	Type, Value string
	Source      string // of a range: shared, startRange or endRange
	Unit        string // of a relative time, the unit of a number
}

// Text returns the values of parts.
func Text(parts []Part) string {
	n := 0
	for _, p := range parts {
		n += len(p.Value)
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(b, p.Value...)
	}
	return string(b)
}

// literal appends text between the fields.
func literal(parts []Part, text string) []Part {
	if text == "" {
		return parts
	}
	if n := len(parts); n > 0 && parts[n-1].Type == "literal" {
		parts[n-1].Value += text
		return parts
	}
	return append(parts, Part{Type: "literal", Value: text})
}

// RangeError is an option whose value has no meaning.
type RangeError string

func (e RangeError) Error() string { return string(e) }
