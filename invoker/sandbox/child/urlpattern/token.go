package urlpattern

import (
	"fmt"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
)

// kind is the type of a token.
type kind uint8

const (
	tokenOpen kind = iota
	tokenClose
	tokenRegexp
	tokenName
	tokenChar
	tokenEscapedChar
	tokenModifier // ? or +
	tokenAsterisk
	tokenEnd
	tokenInvalid
)

// token is a part of a pattern string: its value is the characters between from and to.
type token struct {
	kind     kind
	index    int32 // of its first character
	from, to int32
}

// tokenizer reads a pattern string (https://urlpattern.spec.whatwg.org/#tokenizing).
type tokenizer struct {
	input  []rune
	strict bool // refuse invalid characters, which else become tokens of their own
	tokens []token
	index  int
}

// tokenize returns the tokens of a pattern string; the last one is tokenEnd.
func tokenize(input []rune, strict bool) ([]token, error) {
	t := &tokenizer{input: input, strict: strict, tokens: make([]token, 0, len(input)+1)}
	for t.index < len(input) {
		if err := t.next(); err != nil {
			return nil, err
		}
	}
	t.add(tokenEnd, t.index, t.index, t.index)
	return t.tokens, nil
}

// add appends a token and continues at next.
func (t *tokenizer) add(k kind, next, from, to int) {
	t.tokens = append(t.tokens, token{k, int32(t.index), int32(from), int32(to)})
	t.index = next
}

// invalid appends a token for a character that no pattern has there, and continues at next. A strict
// tokenizer fails.
func (t *tokenizer) invalid(next int) error {
	if t.strict {
		return fmt.Errorf("invalid %q at index %d of the pattern", t.input[t.index], t.index)
	}
	t.add(tokenInvalid, next, t.index, next)
	return nil
}

// single are the tokens that one character makes.
var single = map[rune]kind{'*': tokenAsterisk, '+': tokenModifier, '?': tokenModifier, '{': tokenOpen, '}': tokenClose}

// next reads a token.
func (t *tokenizer) next() error {
	start := t.index + 1 // of the value, where the first character does not belong to it
	switch c := t.input[t.index]; c {
	case '\\':
		if start == len(t.input) {
			return t.invalid(start)
		}
		t.add(tokenEscapedChar, start+1, start, start+1)
	case ':':
		end := start
		for end < len(t.input) && regex.Identifier(t.input[end], end > start) {
			end++
		}
		if end == start {
			return t.invalid(start)
		}
		t.add(tokenName, end, start, end)
	case '(':
		end := t.regexpEnd(start)
		if end <= start {
			return t.invalid(start)
		}
		t.add(tokenRegexp, end+1, start, end)
	default:
		k, ok := single[c]
		if !ok {
			k = tokenChar
		}
		t.add(k, start, t.index, start)
	}
	return nil
}

// regexpEnd returns the index of the parenthesis that closes a regular expression, -1 where
// it is invalid: it has characters beyond ASCII, a capturing group, or no end.
func (t *tokenizer) regexpEnd(start int) int {
	depth := 1
	for at := start; at < len(t.input); at++ {
		c := t.input[at]
		last := at == len(t.input)-1
		switch {
		case c >= 0x80, at == start && c == '?':
			return -1
		case c == '\\':
			if last || t.input[at+1] >= 0x80 {
				return -1
			}
			at++
		case c == ')':
			depth--
			if depth == 0 {
				return at
			}
		case c == '(':
			depth++
			if last || t.input[at+1] != '?' {
				return -1
			}
		}
	}
	return -1
}
