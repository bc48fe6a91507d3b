package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of the patterns of a schema. A Go regular expression takes time in proportion to the
// text and to the size of its program, which can be much larger than the pattern.
const (
	maxPatternBytes = 1024
	maxPatternSize  = 10_000 // instructions of all patterns of a schema together
)

// pattern is a regular expression of a schema with the size of its program, from which match
// in cost.go computes the cost of a text.
type pattern struct {
	*regexp.Regexp
	size int64
}

// patterns compiles a schema's patterns within the limits, each once, since the metaschema
// compiles them too. room is the number of instructions left. It serves one Compile.
type patterns struct {
	known map[string]*pattern
	room  int64
}

// compile compiles a pattern in Go's syntax (RE2), which has no backreferences and no
// lookahead. The size is estimated before it is compiled: (abcdefghij){1000} is 18 bytes
// and more than 10,000 instructions.
func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	if known := p.known[text]; known != nil {
		return known, nil
	}
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("a pattern exceeds %d bytes", maxPatternBytes)
	}
	if p.room < 0 {
		return nil, errors.New("the patterns are too large")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := sizeOf(parsed, p.room)
	p.room -= size
	if p.room < 0 {
		return nil, errors.New("the patterns are too large")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p.known[text] = &pattern{compiled, size}
	return p.known[text], nil
}

// sizeOf returns the approximate number of instructions of re. It stops counting beyond
// room, since a pattern can repeat a repetition.
func sizeOf(re *syntax.Regexp, room int64) int64 {
	size := 1 + int64(len(re.Rune))/32
	if re.Op == syntax.OpLiteral {
		size = int64(len(re.Rune))
	}
	for _, part := range re.Sub {
		if size > room {
			return size
		}
		size += sizeOf(part, room)
	}
	if re.Op == syntax.OpRepeat {
		size *= int64(max(re.Min, re.Max, 1)) // at most 1,000
	}
	return size
}
