package urlpattern

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// partType is the type of a part.
type partType uint8

const (
	fixedText partType = iota
	regexpGroup
	segmentWildcard
	fullWildcard
)

// fullWildcardRegexp is the expression of a full wildcard.
const fullWildcardRegexp = ".*"

// part is a fixed text or a group of a pattern (https://urlpattern.spec.whatwg.org/#parts).
type part struct {
	kind           partType
	value          string // of a fixed text or a regular expression
	modifier       string // "", ?, * or +
	name           string
	prefix, suffix string
}

// numbered reports whether the name was not in the pattern.
func (p *part) numbered() bool { return p.name[0] >= '0' && p.name[0] <= '9' }

// options are those of the component that a pattern is for. delimiter and prefix are one
// character of ASCII, or empty.
type options struct {
	delimiter, prefix string
	ignoreCase        bool
}

// segmentRegexp is the expression of a segment wildcard.
func (o *options) segmentRegexp() string { return "[^" + escapeRegexp(o.delimiter) + "]+?" }

// partParser reads the parts of a pattern string
// (https://urlpattern.spec.whatwg.org/#parsing).
type partParser struct {
	input   []rune
	tokens  []token
	index   int
	options *options
	encode  encode
	parts   []part
	names   map[string]bool
	pending strings.Builder // fixed text that may go on
	number  int             // the next numeric name
}

// parseParts returns the parts of a pattern string.
func parseParts(input []rune, o *options, e encode) ([]part, error) {
	tokens, err := tokenize(input, true)
	if err != nil {
		return nil, err
	}
	p := &partParser{input: input, tokens: tokens, options: o, encode: e, names: map[string]bool{}}
	for p.index < len(p.tokens) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	return p.parts, nil
}

// next reads a group, a character of fixed text, text in braces, or the end.
func (p *partParser) next() error {
	char := p.take(tokenChar)
	name := p.take(tokenName)
	group := p.takeGroup(name)
	if name != nil || group != nil {
		prefix := p.value(char)
		if prefix != "" && prefix != p.options.prefix {
			p.pending.WriteString(prefix)
			prefix = ""
		}
		return p.add(prefix, name, group, "", p.takeModifier())
	}
	if char == nil {
		char = p.take(tokenEscapedChar)
	}
	if char != nil {
		p.pending.WriteString(p.value(char))
		return nil
	}
	if p.take(tokenOpen) != nil {
		prefix := p.text()
		name = p.take(tokenName)
		group = p.takeGroup(name)
		suffix := p.text()
		if err := p.require(tokenClose); err != nil {
			return err
		}
		return p.add(prefix, name, group, suffix, p.takeModifier())
	}
	if err := p.flush(); err != nil {
		return err
	}
	return p.require(tokenEnd)
}

// take returns the next token if it is of a kind, else nil.
func (p *partParser) take(k kind) *token {
	if p.index >= len(p.tokens) || p.tokens[p.index].kind != k {
		return nil
	}
	p.index++
	return &p.tokens[p.index-1]
}

func (p *partParser) takeModifier() string {
	if t := p.take(tokenModifier); t != nil {
		return p.value(t)
	}
	return p.value(p.take(tokenAsterisk))
}

// takeGroup returns a regular expression, or where there is no name, a wildcard.
func (p *partParser) takeGroup(name *token) *token {
	if t := p.take(tokenRegexp); t != nil || name != nil {
		return t
	}
	return p.take(tokenAsterisk)
}

func (p *partParser) require(k kind) error {
	if p.take(k) != nil {
		return nil
	}
	t := p.tokens[min(p.index, len(p.tokens)-1)]
	if t.kind == tokenEnd {
		return errors.New("the pattern ends within a group")
	}
	return fmt.Errorf("unexpected %q at index %d of the pattern", p.input[t.index], t.index)
}

// value returns the text of a token, "" for none.
func (p *partParser) value(t *token) string {
	if t == nil {
		return ""
	}
	return string(p.input[t.from:t.to])
}

// text returns the characters before the next token of another kind.
func (p *partParser) text() string {
	var b strings.Builder
	for {
		t := p.take(tokenChar)
		if t == nil {
			t = p.take(tokenEscapedChar)
		}
		if t == nil {
			return b.String()
		}
		b.WriteString(p.value(t))
	}
}

// flush makes a part of the fixed text that was read.
func (p *partParser) flush() error {
	if p.pending.Len() == 0 {
		return nil
	}
	value, err := p.encode(p.pending.String())
	if err != nil {
		return err
	}
	p.pending.Reset()
	p.parts = append(p.parts, part{value: value})
	return nil
}

// add makes a part of a group, or of text in braces
// (https://urlpattern.spec.whatwg.org/#add-a-part).
func (p *partParser) add(prefix string, name, group *token, suffix, modifier string) error {
	if name == nil && group == nil && modifier == "" {
		p.pending.WriteString(prefix)
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	if name == nil && group == nil {
		if prefix == "" {
			return nil
		}
		value, err := p.encode(prefix)
		if err != nil {
			return err
		}
		p.parts = append(p.parts, part{value: value, modifier: modifier})
		return nil
	}
	made := part{kind: segmentWildcard, modifier: modifier}
	if group != nil {
		made.kind, made.value = p.groupType(group)
	}
	if name != nil {
		made.name = p.value(name)
	} else {
		made.name = strconv.Itoa(p.number)
		p.number++
	}
	if p.names[made.name] {
		return fmt.Errorf("duplicate group name %q", made.name)
	}
	p.names[made.name] = true
	var err error
	made.prefix, err = p.encode(prefix)
	if err != nil {
		return err
	}
	made.suffix, err = p.encode(suffix)
	if err != nil {
		return err
	}
	p.parts = append(p.parts, made)
	return nil
}

// groupType returns the type of a group. An expression that is that of a wildcard is one.
func (p *partParser) groupType(group *token) (partType, string) {
	if group.kind == tokenAsterisk {
		return fullWildcard, ""
	}
	switch value := p.value(group); value {
	case p.options.segmentRegexp():
		return segmentWildcard, ""
	case fullWildcardRegexp:
		return fullWildcard, ""
	default:
		return regexpGroup, value
	}
}
