package web

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// members calls visit for each member of an object, in their order, until visit returns false. The
// values are parts of object: a result may have megabytes. object is JSON; members reports false
// where it is not, or where visit ended it, but does not examine the values.
func members(object json.RawMessage, visit func(name string, value json.RawMessage) bool) bool {
	s := scanner{text: object}
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return s.rest()
	}
	for {
		name, ok := text(s.value())
		if !ok || !s.take(':') {
			return false
		}
		value := s.value()
		if len(value) == 0 || !visit(string(name), value) {
			return false
		}
		if s.take('}') {
			return s.rest()
		}
		if !s.take(',') {
			return false
		}
	}
}

// entries returns how many values an object or an array has, with those of arrays in it. It counts
// commas, and stops at the first one beyond limit. Text that is not JSON has any number.
func entries(raw json.RawMessage, limit int) int {
	s := scanner{text: raw}
	if !s.take('{') && !s.take('[') {
		return 0
	}
	if c := s.next(); c == '}' || c == ']' {
		return 0
	}
	n := 1
	for s.at < len(s.text) && n <= limit {
		switch s.text[s.at] {
		case '"':
			s.skipString()
			continue
		case ',':
			n++
		}
		s.at++
	}
	return n
}

// elements calls visit for each element of an array that is JSON, in their order, until visit returns
// false. It reports whether the array is one, and was visited to its end.
func elements(array json.RawMessage, visit func(element json.RawMessage) bool) bool {
	s := scanner{text: array}
	if !s.take('[') {
		return false
	}
	if s.take(']') {
		return s.rest()
	}
	for {
		element := s.value()
		if len(element) == 0 || !visit(element) {
			return false
		}
		if s.take(']') {
			return s.rest()
		}
		if !s.take(',') {
			return false
		}
	}
}

// text returns the text of a JSON string, which is a part of raw if it has no escapes. It reports
// false for any other value.
func text(raw json.RawMessage) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner, true
	}
	var decoded clone
	return decoded, json.Unmarshal(raw, &decoded) == nil
}

// clone is the text of a JSON string.
type clone []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *clone) UnmarshalText(text []byte) error {
	*c = bytes.Clone(text)
	return nil
}

// scanner reads JSON, of which it examines no more than where the values end.
type scanner struct {
	text []byte
	at   int
}

// next returns the next byte that is no white space, 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take reads c, if it is next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// rest reports whether nothing follows.
func (s *scanner) rest() bool {
	s.next()
	return s.at == len(s.text)
}

// value reads a value; it is empty if there is none.
func (s *scanner) value() json.RawMessage {
	s.next()
	begin, depth := s.at, 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '"':
			s.skipString()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return nil
			}
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return nil
			}
			s.at++
			continue
		default:
			s.skipWord()
		}
		if depth == 0 {
			break
		}
	}
	return s.text[begin:s.at]
}

// skipString skips a string, or all of the text if it has no end. A quote after an odd number of
// backslashes is a part of it.
func (s *scanner) skipString() {
	for s.at++; ; {
		n := bytes.IndexByte(s.text[s.at:], '"')
		if n < 0 {
			s.at = len(s.text)
			return
		}
		escapes := 0
		for escapes < n && s.text[s.at+n-1-escapes] == '\\' {
			escapes++
		}
		s.at += n + 1
		if escapes%2 == 0 {
			return
		}
	}
}

// skipWord skips a number, true, false or null.
func (s *scanner) skipWord() {
	for s.at < len(s.text) && bytes.IndexByte([]byte("{}[],: \t\n\r\""), s.text[s.at]) < 0 {
		s.at++
	}
}
