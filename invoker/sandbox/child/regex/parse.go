package regex

import (
	"math"
	"slices"
	"sync"
	"unicode/utf16"

	"github.com/codesous/sous/invoker/sandbox/child/regex/ucd"
)

// maxNesting bounds the groups and classes within each other, and so the parser's stack.
const maxNesting = 500

// maxGroups bounds the groups of a pattern.
const maxGroups = 1 << 15

// parser reads a pattern by the grammar of ECMA-262, and where the pattern is not in a
// Unicode mode by the extensions of Annex B. Errors are thrown by panic with a *SyntaxError.
type parser struct {
	text    []rune // code points in a Unicode mode, otherwise code units
	pos     int
	full    bool // a Unicode mode
	sets    bool // the flag v
	named   bool // \k is a reference
	groups  int  // seen so far, with the whole match
	total   int  // in the pattern
	names   []groupName
	mode    mode
	path    []branch // alternatives around this place
	nesting int
	splits  int
}

// branch is an alternative: the disjunction that it is of, and which one.
type branch struct{ split, arm int }

type groupName struct {
	name  string
	index int
	path  []branch
}

func (p *parser) fail(message string) {
	panic(&SyntaxError{"Invalid regular expression: " + message})
}

func newParser(pattern []uint16, f Flags) *parser {
	p := &parser{full: f.Full(), sets: f.UnicodeSets, groups: 1, mode: mode{f.IgnoreCase, f.Multiline, f.DotAll}}
	if p.full {
		p.text = decode(pattern)
	} else {
		p.text = make([]rune, len(pattern))
		for i, c := range pattern {
			p.text[i] = rune(c)
		}
	}
	p.count()
	p.named = p.named || p.full
	return p
}

// decode joins surrogate pairs and keeps lone ones.
func decode(units []uint16) []rune {
	out := make([]rune, 0, len(units))
	for i := 0; i < len(units); i++ {
		c := rune(units[i])
		if isHigh(c) && i+1 < len(units) && isLow(rune(units[i+1])) {
			i++
			c = utf16.DecodeRune(c, rune(units[i]))
		}
		out = append(out, c)
	}
	return out
}

func isHigh(c rune) bool { return c >= 0xD800 && c < 0xDC00 }
func isLow(c rune) bool  { return c >= 0xDC00 && c < 0xE000 }

// count finds how many groups there are, and whether any has a name.
func (p *parser) count() {
	p.total = 1
	depth := 0 // of classes
	for i := 0; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\\':
			i++
		case c == '[' && (depth == 0 || p.sets):
			depth++
		case c == ']' && depth > 0:
			depth--
		case c == '(' && depth == 0:
			if p.at(i+1) != '?' {
				p.total++
			} else if p.at(i+2) == '<' && p.at(i+3) != '=' && p.at(i+3) != '!' {
				p.total++
				p.named = true
			}
		}
	}
	if p.total > maxGroups {
		p.fail("too many groups")
	}
}

// at returns the character at i, -1 past the end.
func (p *parser) at(i int) rune {
	if i < len(p.text) {
		return p.text[i]
	}
	return -1
}

func (p *parser) peek() rune { return p.at(p.pos) }

// take consumes c if it is next.
func (p *parser) take(c rune) bool {
	if p.peek() == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) takeText(text string) bool {
	for i, c := range text {
		if p.at(p.pos+i) != c {
			return false
		}
	}
	p.pos += len(text)
	return true
}

func (p *parser) enter() {
	p.nesting++
	if p.nesting > maxNesting {
		p.fail("nested too deep")
	}
}

// parse reads the whole pattern.
func (p *parser) parse() node {
	n := p.disjunction()
	if p.pos < len(p.text) {
		if p.peek() == ')' {
			p.fail("Unmatched ')'")
		}
		p.fail("unexpected character")
	}
	return n
}

func (p *parser) disjunction() node {
	p.enter()
	defer func() { p.nesting-- }()
	p.splits++
	split, arm := p.splits, 0
	p.path = append(p.path, branch{split, arm})
	arms := altNode{p.alternative()}
	for p.take('|') {
		arm++
		p.path[len(p.path)-1].arm = arm
		arms = append(arms, p.alternative())
	}
	p.path = p.path[:len(p.path)-1]
	if len(arms) == 1 {
		return arms[0]
	}
	return arms
}

func (p *parser) alternative() node {
	var seq seqNode
	for p.pos < len(p.text) && p.peek() != '|' && p.peek() != ')' {
		seq = append(seq, p.term())
	}
	if len(seq) == 1 {
		return seq[0]
	}
	return seq
}

func (p *parser) term() node {
	lo := p.groups
	n, quantifiable := p.atom()
	if !quantifiable {
		return n
	}
	return p.quantified(n, lo)
}

func (p *parser) quantified(n node, lo int) node {
	q := quantNode{body: n, lo: lo, hi: p.groups}
	switch c := p.peek(); {
	case c == '*':
		q.max = -1
	case c == '+':
		q.min, q.max = 1, -1
	case c == '?':
		q.max = 1
	case c == '{':
		var ok bool
		q.min, q.max, ok = p.braces()
		if !ok {
			if p.full {
				p.fail("Incomplete quantifier")
			}
			return n
		}
		if q.max >= 0 && q.min > q.max {
			p.fail("numbers out of order in {} quantifier")
		}
		p.pos--
	default:
		return n
	}
	p.pos++
	q.lazy = p.take('?')
	return q
}

// braces reads {n}, {n,} or {n,m}. Where the text is none it stays.
func (p *parser) braces() (low, high int, ok bool) {
	start := p.pos
	p.pos++
	low, ok = p.decimal()
	high = low
	if ok && p.take(',') {
		high, ok = p.decimal()
		if !ok {
			high, ok = -1, true
		}
	}
	if !ok || !p.take('}') {
		p.pos = start
		return 0, 0, false
	}
	return low, high, true
}

// decimal reads a number, which saturates.
func (p *parser) decimal() (n int, ok bool) {
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		n = min(n*10+int(c-'0'), math.MaxInt32)
		p.pos++
		ok = true
	}
	return n, ok
}

// atom reads an atom or an assertion, and reports whether a quantifier may follow.
func (p *parser) atom() (n node, quantifiable bool) {
	c := p.peek()
	switch c {
	case '^':
		p.pos++
		return assertNode{kind: pick(p.mode.multiline, opLineStart, opTextStart)}, false
	case '$':
		p.pos++
		return assertNode{kind: pick(p.mode.multiline, opLineEnd, opTextEnd)}, false
	case '(':
		return p.group()
	case '.':
		p.pos++
		if p.mode.dotAll {
			return setNode{ucd.Set{{Lo: 0, Hi: ucd.MaxRune}}}, true
		}
		return setNode{lineEnds.Complement()}, true
	case '[':
		p.pos++
		return p.class(), true
	case '\\':
		return p.escape()
	case '*', '+', '?':
		p.fail("Nothing to repeat")
	case '{':
		if p.full {
			p.fail("Nothing to repeat")
		}
		if _, _, ok := p.braces(); ok {
			p.fail("Nothing to repeat")
		}
	case ']', '}':
		if p.full {
			p.fail("Lone quantifier brackets")
		}
	}
	p.pos++
	return p.char(c), true
}

func pick(yes bool, a, b op) op {
	if yes {
		return a
	}
	return b
}

// char is a character, or where case does not matter the set of those that it equals.
func (p *parser) char(c rune) node {
	if p.mode.ignoreCase {
		if class := p.folding().Class(c); class != nil {
			var b ucd.Builder
			for _, other := range class {
				b.AddRange(other, other)
			}
			return setNode{b.Set()}
		}
	}
	return charNode{c}
}

func (p *parser) folding() *ucd.Mapping {
	if p.full {
		return ucd.Fold()
	}
	return ucd.Upper()
}

// set is a set as it matches: closed under the case mapping where case does not matter.
func (p *parser) set(s ucd.Set) ucd.Set {
	if p.mode.ignoreCase {
		return p.folding().Close(s)
	}
	return s
}

func (p *parser) group() (n node, quantifiable bool) {
	p.pos++
	lo := p.groups
	switch {
	case p.takeText("?="), p.takeText("?!"):
		l := lookNode{negate: p.text[p.pos-1] == '!', lo: lo}
		l.body, l.hi = p.body(), p.groups
		return l, !p.full
	case p.takeText("?<="), p.takeText("?<!"):
		l := lookNode{back: true, negate: p.text[p.pos-1] == '!', lo: lo}
		l.body, l.hi = p.body(), p.groups
		return l, false
	case p.takeText("?:"):
		return p.body(), true
	case p.takeText("?<"):
		index := p.groups
		p.groups++
		p.name(p.groupName(), index)
		return groupNode{index, p.body()}, true
	case p.take('?'):
		outer := p.mode
		p.modifiers()
		n = p.body()
		p.mode = outer
		return n, true
	}
	index := p.groups
	p.groups++
	return groupNode{index, p.body()}, true
}

// body reads what stands before the closing parenthesis.
func (p *parser) body() node {
	n := p.disjunction()
	if !p.take(')') {
		p.fail("Unterminated group")
	}
	return n
}

// modifiers reads the flags of (?ims-ims: and its colon.
func (p *parser) modifiers() {
	seen := map[rune]bool{}
	on, count := true, 0
	for {
		c := p.peek()
		p.pos++
		var to *bool
		switch c {
		case ':':
			if !on && count == 0 {
				p.fail("Invalid flags")
			}
			return
		case '-':
			if !on {
				p.fail("Multiple dashes in flag group")
			}
			on = false
			continue
		case 'i':
			to = &p.mode.ignoreCase
		case 'm':
			to = &p.mode.multiline
		case 's':
			to = &p.mode.dotAll
		}
		if to == nil || seen[c] {
			p.fail("Invalid group")
		}
		seen[c] = true
		*to = on
		count++
	}
}

// name records a named group. Groups of one name must be in different alternatives.
func (p *parser) name(name string, index int) {
	path := slices.Clone(p.path)
	for _, other := range p.names {
		if other.name == name && !exclusive(other.path, path) {
			p.fail("Duplicate capture group name")
		}
	}
	p.names = append(p.names, groupName{name, index, path})
}

// exclusive reports whether two places are in different alternatives of a disjunction.
func exclusive(a, b []branch) bool {
	for i := range min(len(a), len(b)) {
		if a[i].split != b[i].split {
			return false
		}
		if a[i].arm != b[i].arm {
			return true
		}
	}
	return false
}

// groupName reads a name and the > after it.
func (p *parser) groupName() string {
	var name []rune
	for {
		c := p.peek()
		p.pos++
		switch {
		case c == '>' && len(name) > 0:
			return string(name)
		case c == '\\':
			if !p.take('u') {
				p.fail("Invalid capture group name")
			}
			var ok bool
			c, ok = p.unicodeEscape(true)
			if !ok {
				p.fail("Invalid Unicode escape")
			}
		case isHigh(c) && isLow(p.peek()):
			c = utf16.DecodeRune(c, p.peek())
			p.pos++
		}
		if !Identifier(c, len(name) > 0) {
			p.fail("Invalid capture group name")
		}
		name = append(name, c)
	}
}

// The letters that identifiers consist of beside those of ASCII. They are decoded once: a
// pattern can have many names.
var (
	idStart    = sync.OnceValue(func() ucd.Set { set, _ := ucd.Binary("ID_Start"); return set })
	idContinue = sync.OnceValue(func() ucd.Set { set, _ := ucd.Binary("ID_Continue"); return set })
)

// Identifier reports whether c may begin an identifier of ECMAScript, or with inside,
// continue one.
func Identifier(c rune, inside bool) bool {
	switch {
	case c == '$' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return true
	case c >= '0' && c <= '9':
		return inside
	case c < 128:
		return false
	case inside:
		return c == 0x200C || c == 0x200D || idContinue().Has(c)
	}
	return idStart().Has(c)
}
