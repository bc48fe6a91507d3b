package regex

import (
	"unicode/utf16"

	"github.com/codesous/sous/invoker/sandbox/child/regex/ucd"
)

var (
	lineEnds = ucd.Set{{Lo: '\n', Hi: '\n'}, {Lo: '\r', Hi: '\r'}, {Lo: 0x2028, Hi: 0x2029}}
	digits   = ucd.Set{{Lo: '0', Hi: '9'}}
	words    = ucd.Set{{Lo: '0', Hi: '9'}, {Lo: 'A', Hi: 'Z'}, {Lo: '_', Hi: '_'}, {Lo: 'a', Hi: 'z'}}
	spaces   = ucd.Set{
		{Lo: 9, Hi: 13}, {Lo: ' ', Hi: ' '}, {Lo: 0xA0, Hi: 0xA0}, {Lo: 0x1680, Hi: 0x1680}, {Lo: 0x2000, Hi: 0x200A},
		{Lo: 0x2028, Hi: 0x2029}, {Lo: 0x202F, Hi: 0x202F}, {Lo: 0x205F, Hi: 0x205F}, {Lo: 0x3000, Hi: 0x3000}, {Lo: 0xFEFF, Hi: 0xFEFF},
	}
)

// wordSet is what \w matches.
func (p *parser) wordSet() ucd.Set {
	if p.full && p.mode.ignoreCase {
		return p.folding().Close(words)
	}
	return words
}

// escape reads an escape that is not in a class.
func (p *parser) escape() (n node, quantifiable bool) {
	p.pos++
	c := p.peek()
	switch {
	case c < 0:
		p.fail("\\ at end of pattern")
	case c == 'b' || c == 'B':
		p.pos++
		return assertNode{kind: pick(c == 'b', opBoundary, opNoBoundary), words: newSet(p.wordSet())}, false
	case c == 'k' && p.named:
		p.pos++
		if !p.take('<') {
			p.fail("Invalid named reference")
		}
		return backrefNode{name: p.groupName(), ignore: p.mode.ignoreCase}, true
	case c >= '1' && c <= '9':
		start := p.pos
		if n, _ := p.decimal(); p.full || n < p.total {
			if n >= p.total {
				p.fail("Invalid escape")
			}
			return backrefNode{index: n, ignore: p.mode.ignoreCase}, true
		}
		p.pos = start
	}
	if s, ok := p.classEscape(); ok {
		if len(s.strings) > 0 {
			return p.alternatives(s), true
		}
		return setNode{p.set(s.set)}, true
	}
	if c == 'c' && !p.full && !letter(p.at(p.pos+1)) {
		return p.char('\\'), true // the c is a character of its own
	}
	return p.char(p.charEscape(false)), true
}

func letter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// classEscape reads \d, \p{...} and the like, of which the backslash is read.
func (p *parser) classEscape() (classSet, bool) {
	var s ucd.Set
	c := p.peek()
	switch c {
	case 'd', 'D':
		s = digits
	case 's', 'S':
		s = spaces
	case 'w', 'W':
		s = p.wordSet()
	case 'p', 'P':
		if !p.full {
			return classSet{}, false
		}
		p.pos++
		return p.property(c == 'P'), true
	default:
		return classSet{}, false
	}
	p.pos++
	if c < 'a' {
		s = s.Complement()
	}
	return classSet{set: s}, true
}

// property reads {Name} or {Name=Value}.
func (p *parser) property(negate bool) classSet {
	if !p.take('{') {
		p.fail("Invalid property name")
	}
	var words [2]string
	part := 0
	for !p.take('}') {
		c := p.peek()
		p.pos++
		switch {
		case c == '=' && part == 0:
			part = 1
		case letter(c) || c >= '0' && c <= '9' || c == '_':
			words[part] += string(c)
		default:
			p.fail("Invalid property name")
		}
	}
	set, strings, ok := lookup(words[0], words[1], part == 1)
	if !ok || strings != nil && (negate || !p.sets) {
		p.fail("Invalid property name")
	}
	s := classSet{set: set}
	for _, text := range strings {
		s.add([]rune(text))
	}
	if p.sets && p.mode.ignoreCase {
		s = s.fold(p.folding())
	}
	if negate {
		s.set = s.set.Complement()
	}
	return s
}

// lookup finds a property's code points, and the strings of a property of strings.
func lookup(name, value string, hasValue bool) (set ucd.Set, strings []string, ok bool) {
	if !hasValue {
		set, ok = ucd.Category(name)
		if ok {
			return set, nil, true
		}
		set, ok = ucd.Binary(name)
		if ok {
			return set, nil, true
		}
		strings, ok = ucd.Strings(name)
		return nil, strings, ok
	}
	switch name {
	case "General_Category", "gc":
		set, ok = ucd.Category(value)
	case "Script", "sc":
		set, ok = ucd.Script(value)
	case "Script_Extensions", "scx":
		set, ok = ucd.ScriptExtensions(value)
	}
	return set, nil, ok
}

// charEscape reads the escape of one character, of which the backslash is read.
func (p *parser) charEscape(class bool) rune {
	c := p.peek()
	p.pos++
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	case 'r':
		return '\r'
	case 'c':
		if next := p.peek(); letter(next) {
			p.pos++
			return next & 31
		}
	case 'x':
		if v, ok := p.hex(2); ok {
			return v
		}
	case 'u':
		if v, ok := p.unicodeEscape(p.full); ok {
			return v
		}
	case -1:
		p.fail("\\ at end of pattern")
	}
	if c >= '0' && c <= '9' {
		return p.digitEscape(c)
	}
	if !p.full {
		if c == 'k' && p.named {
			p.fail("Invalid escape")
		}
		return c
	}
	if syntaxCharacter(c) || c == '/' || class && c == '-' {
		return c
	}
	p.fail("Invalid escape")
	return 0
}

// digitEscape reads \0, and an octal escape of Annex B.
func (p *parser) digitEscape(c rune) rune {
	next := p.peek()
	if c == '0' && (next < '0' || next > '9') {
		return 0
	}
	if p.full {
		p.fail("Invalid decimal escape")
	}
	if c > '7' {
		return c
	}
	v := c - '0'
	for n := 1; n < 3; n++ {
		d := p.peek()
		if d < '0' || d > '7' || v*8+d-'0' > 255 {
			break
		}
		v = v*8 + d - '0'
		p.pos++
	}
	return v
}

func syntaxCharacter(c rune) bool {
	switch c {
	case '^', '$', '\\', '.', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|':
		return true
	}
	return false
}

// hex reads n hexadecimal digits, or stays.
func (p *parser) hex(n int) (v rune, ok bool) {
	for i := range n {
		d := hexDigit(p.at(p.pos + i))
		if d < 0 {
			return 0, false
		}
		v = v<<4 | d
	}
	p.pos += n
	return v, true
}

func hexDigit(c rune) rune {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return -1
}

// unicodeEscape reads what follows \u: in a Unicode mode also {...} and a pair of escapes.
func (p *parser) unicodeEscape(full bool) (rune, bool) {
	if full && p.peek() == '{' {
		return p.bracedEscape(), true
	}
	c, ok := p.hex(4)
	if !ok || !full || !isHigh(c) {
		return c, ok
	}
	start := p.pos
	if p.takeText(`\u`) {
		if low, ok := p.hex(4); ok && isLow(low) {
			return utf16.DecodeRune(c, low), true
		}
	}
	p.pos = start
	return c, true
}

func (p *parser) bracedEscape() rune {
	p.pos++
	v, count := rune(0), 0
	for !p.take('}') {
		d := hexDigit(p.peek())
		if d < 0 {
			p.fail("Invalid Unicode escape")
		}
		p.pos++
		count++
		v = v<<4 | d
		if v > ucd.MaxRune {
			p.fail("Invalid Unicode escape")
		}
	}
	if count == 0 {
		p.fail("Invalid Unicode escape")
	}
	return v
}
