package search

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// The bounds of a full-text query.
const (
	maxTerms  = 32
	maxDepth  = 8
	minPrefix = 3 // characters before *
)

// A full-text query is parsed here and written for FTS5 again, with every word quoted. So no text
// of a caller is syntax of FTS5, and each fault has a position. The grammar:
//
//	query  = and { "OR" and } .
//	and    = item { [ "AND" | "NOT" ] item } .
//	item   = [ column ":" ] ( "(" query ")" | phrase [ "*" ] | word [ "*" ] ) .
//	phrase = `"` text `"` .
type wordParser struct {
	tokens  []token
	at      int
	columns []string
	terms   int
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenPhrase
	tokenOpen
	tokenClose
	tokenAnd
	tokenOr
	tokenNot
	tokenColumn
)

// token is a part of a query. column counts characters from 1.
type token struct {
	kind   tokenKind
	text   string
	prefix bool // a * follows
	column int
}

// parseWords returns the FTS5 expression of a query, whose columns are those named. Errors:
// CodeSearchSyntax with the column of the fault.
func parseWords(query string, columns []string) (string, error) {
	if len(query) > search.MaxQueryBytes {
		return "", syntaxError(query, 1, "the query exceeds "+api.SizeText(search.MaxQueryBytes))
	}
	tokens, err := scanWords(query, columns)
	if err != nil {
		return "", err
	}
	p := &wordParser{tokens: tokens, columns: columns}
	out, fault := p.query(0)
	if fault == nil && p.next().kind != tokenEnd {
		fault = &wordFault{p.next().column, "unexpected )"}
	}
	if fault != nil {
		return "", syntaxError(query, fault.column, fault.message)
	}
	return out, nil
}

type wordFault struct {
	column  int
	message string
}

// syntaxError returns the error of a query at a column.
func syntaxError(query string, column int, message string) error {
	return api.Errorf(api.CodeSearchSyntax, "q, column %d: %s", column, message).
		WithFields(api.FieldError{Path: "q", Message: message, Line: 1, Column: column, Excerpt: excerpt(query, column)})
}

// excerpt returns the query, and below it a caret under the column.
func excerpt(query string, column int) string {
	if len(query) > search.MaxQueryBytes {
		return ""
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, query)
	return plain + "\n" + strings.Repeat(" ", column-1) + "^"
}

// scanWords divides a query into tokens. The last one is tokenEnd.
func scanWords(query string, columns []string) ([]token, error) {
	runes := []rune(query)
	var tokens []token
	for i := 0; i < len(runes); {
		r, begin := runes[i], i
		switch {
		case unicode.IsSpace(r):
			i++
		case r == '(':
			i++
			tokens = append(tokens, token{kind: tokenOpen, column: begin + 1})
		case r == ')':
			i++
			tokens = append(tokens, token{kind: tokenClose, column: begin + 1})
		case r == '"':
			end := i + 1
			for end < len(runes) && runes[end] != '"' {
				end++
			}
			if end == len(runes) {
				return nil, syntaxError(query, begin+1, `the phrase has no closing "`)
			}
			i = end + 1
			t := token{kind: tokenPhrase, text: string(runes[begin+1 : end]), column: begin + 1}
			if i < len(runes) && runes[i] == '*' {
				t.prefix = true
				i++
			}
			tokens = append(tokens, t)
		default:
			t, end := scanWord(runes, i, columns)
			i = end
			tokens = append(tokens, t)
		}
	}
	return append(tokens, token{kind: tokenEnd, column: len(runes) + 1}), nil
}

// scanWord returns the word that begins at runes[i], and the index behind it. A colon ends the name
// of a column; in other words it is a part of the word, as in urn:uuid.
func scanWord(runes []rune, i int, columns []string) (token, int) {
	begin := i
	for i < len(runes) && !unicode.IsSpace(runes[i]) && !strings.ContainsRune(`()"`, runes[i]) {
		if runes[i] == ':' {
			name := string(runes[begin:i])
			for _, column := range columns {
				if name == column {
					return token{kind: tokenColumn, text: name, column: begin + 1}, i + 1
				}
			}
		}
		i++
	}
	t := token{kind: tokenWord, text: string(runes[begin:i]), column: begin + 1}
	switch t.text {
	case "AND":
		t.kind = tokenAnd
	case "OR":
		t.kind = tokenOr
	case "NOT":
		t.kind = tokenNot
	}
	if text, ok := strings.CutSuffix(t.text, "*"); ok {
		t.text, t.prefix = text, true
	}
	return t, i
}

func (p *wordParser) next() token { return p.tokens[p.at] }

// query parses alternatives.
func (p *wordParser) query(depth int) (string, *wordFault) {
	if depth > maxDepth {
		return "", &wordFault{p.next().column, "more than " + strconv.Itoa(maxDepth) + " nested parentheses"}
	}
	out, fault := p.and(depth)
	for fault == nil && p.next().kind == tokenOr {
		p.at++
		var right string
		right, fault = p.and(depth)
		out = "(" + out + ") OR (" + right + ")"
	}
	return out, fault
}

// and parses items that must all match.
func (p *wordParser) and(depth int) (string, *wordFault) {
	if p.next().kind == tokenNot {
		return "", &wordFault{p.next().column, "NOT needs a word before it"}
	}
	out, fault := p.item(depth)
	for fault == nil {
		operator := " AND "
		switch p.next().kind {
		case tokenOr, tokenClose, tokenEnd:
			return out, nil
		case tokenAnd:
			p.at++
		case tokenNot:
			operator = " NOT "
			p.at++
		}
		var right string
		right, fault = p.item(depth)
		out = "(" + out + ")" + operator + right
	}
	return out, fault
}

// item parses a word, a phrase or a query in parentheses.
func (p *wordParser) item(depth int) (string, *wordFault) {
	filter := ""
	if p.next().kind == tokenColumn {
		filter = p.next().text + " : "
		p.at++
	}
	t := p.next()
	switch t.kind {
	case tokenWord, tokenPhrase:
		p.at++
		text, fault := p.term(t)
		return filter + text, fault
	case tokenOpen:
		p.at++
		inner, fault := p.query(depth + 1)
		if fault != nil {
			return "", fault
		}
		if p.next().kind != tokenClose {
			return "", &wordFault{t.column, "the parenthesis is not closed"}
		}
		p.at++
		return filter + "(" + inner + ")", nil
	case tokenEnd:
		return "", &wordFault{t.column, "a word is missing at the end"}
	default:
		return "", &wordFault{t.column, "a word is missing here"}
	}
}

// term returns a word or a phrase in the quotes of FTS5.
func (p *wordParser) term(t token) (string, *wordFault) {
	p.terms++
	letters := 0
	for _, r := range t.text {
		if r == utf8.RuneError || r == 0 || unicode.Is(unicode.Co, r) {
			return "", &wordFault{t.column, "the text is not UTF-8, or has characters of the private use"}
		}
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			letters++
		}
	}
	switch {
	case p.terms > maxTerms:
		return "", &wordFault{t.column, "more than " + strconv.Itoa(maxTerms) + " words and phrases"}
	case letters == 0:
		return "", &wordFault{t.column, "the text has no letter and no digit"}
	case t.prefix && letters < minPrefix:
		return "", &wordFault{t.column, "a prefix needs at least " + strconv.Itoa(minPrefix) + " letters or digits before *"}
	}
	text := `"` + strings.ReplaceAll(t.text, `"`, `""`) + `"`
	if t.prefix {
		text += "*"
	}
	return text, nil
}
