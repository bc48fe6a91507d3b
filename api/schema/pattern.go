package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of the patterns of a schema. Go's expressions take time in proportion to text
// and program, however they are written; a program can be much larger than its pattern.
const (
	maxPatternBytes = 1024
	maxPatternSize  = 10_000 // instructions of all patterns of a schema together
)

// pattern is an expression of a schema that knows its size.
type pattern struct {
	*regexp.Regexp
	size int64
}

// patterns compiles a schema's expressions, within bounds, each once: the metaschema asks
// for them, too.
type patterns struct {
	known map[string]*pattern
	room  int64
}

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
	if p.room -= size; p.room < 0 {
		return nil, errors.New("the patterns are too large")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p.known[text] = &pattern{compiled, size}
	return p.known[text], nil
}

// sizeOf is about how many instructions re becomes; what exceeds room is not counted out.
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
