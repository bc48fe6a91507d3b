package regex

import (
	"cmp"
	"slices"

	"github.com/codesous/sous/invoker/sandbox/child/regex/ucd"
)

// classSet is what a class matches: characters, and with the flag v also strings of none
// or several characters.
type classSet struct {
	set     ucd.Set
	strings map[string][]rune
}

// add adds a string, which may be a single character.
func (s *classSet) add(text []rune) {
	if len(text) == 1 {
		s.set = s.set.Union(ucd.Set{{Lo: text[0], Hi: text[0]}})
		return
	}
	if s.strings == nil {
		s.strings = map[string][]rune{}
	}
	s.strings[string(text)] = text
}

// fold returns s with all that equals its members where case does not matter.
func (s classSet) fold(m *ucd.Mapping) classSet {
	out := classSet{set: m.Close(s.set)}
	for _, text := range s.strings {
		folded := make([]rune, len(text))
		for i, c := range text {
			folded[i] = m.Of(c)
		}
		out.add(folded)
	}
	return out
}

func (s classSet) union(t classSet) classSet {
	out := classSet{set: s.set.Union(t.set)}
	for _, from := range []classSet{s, t} {
		for _, text := range from.strings {
			out.add(text)
		}
	}
	return out
}

// filter returns the members of s that are in t, or those that are not.
func (s classSet) filter(t classSet, in bool) classSet {
	with := t.set
	if !in {
		with = with.Complement()
	}
	out := classSet{set: s.set.Intersect(with)}
	for key, text := range s.strings {
		if _, both := t.strings[key]; both == in {
			out.add(text)
		}
	}
	return out
}

// alternatives matches the longest string of a class first.
func (p *parser) alternatives(s classSet) node {
	texts := make([][]rune, 0, len(s.strings))
	for _, text := range s.strings {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b []rune) int { return cmp.Or(len(b)-len(a), slices.Compare(a, b)) })
	var alt altNode
	single := false
	for _, text := range texts {
		if len(text) == 0 && !single {
			alt, single = append(alt, setNode{p.set(s.set)}), true
		}
		seq := make(seqNode, len(text))
		for i, c := range text {
			seq[i] = p.char(c)
		}
		alt = append(alt, seq)
	}
	if !single {
		alt = append(alt, setNode{p.set(s.set)})
	}
	return alt
}

// class reads a class, of which the bracket is read.
func (p *parser) class() node {
	if p.sets {
		s := p.nestedClass()
		if len(s.strings) > 0 {
			return p.alternatives(s)
		}
		return setNode{p.set(s.set)}
	}
	negate := p.take('^')
	var b ucd.Builder
	for !p.take(']') {
		if p.pos >= len(p.text) {
			p.fail("Unterminated character class")
		}
		low, lowSet, lowIsSet := p.classAtom()
		if p.peek() != '-' || p.at(p.pos+1) == ']' || p.at(p.pos+1) < 0 {
			addAtom(&b, low, lowSet, lowIsSet)
			continue
		}
		p.pos++
		high, highSet, highIsSet := p.classAtom()
		if lowIsSet || highIsSet {
			if p.full {
				p.fail("Invalid character class")
			}
			addAtom(&b, low, lowSet, lowIsSet)
			addAtom(&b, '-', nil, false)
			addAtom(&b, high, highSet, highIsSet)
			continue
		}
		if low > high {
			p.fail("Range out of order in character class")
		}
		b.AddRange(low, high)
	}
	s := p.set(b.Set())
	if negate {
		s = s.Complement()
	}
	return setNode{s}
}

func addAtom(b *ucd.Builder, c rune, s ucd.Set, isSet bool) {
	if isSet {
		b.Add(s)
		return
	}
	b.AddRange(c, c)
}

// classAtom reads a character or an escape in a class without the flag v.
func (p *parser) classAtom() (c rune, s ucd.Set, isSet bool) {
	c = p.peek()
	p.pos++
	if c != '\\' {
		return c, nil, false
	}
	if set, ok := p.classEscape(); ok {
		return 0, set.set, true
	}
	switch next := p.peek(); {
	case next == 'b':
		p.pos++
		return '\b', nil, false
	case next == 'c' && !p.full:
		after := p.at(p.pos + 1)
		if after >= '0' && after <= '9' || after == '_' {
			p.pos += 2
			return after & 31, nil, false
		}
		if !letter(after) {
			return '\\', nil, false
		}
	}
	return p.charEscape(true), nil, false
}

// nestedClass reads a class with the flag v, of which the bracket is read.
func (p *parser) nestedClass() classSet {
	p.enter()
	defer func() { p.nesting-- }()
	negate := p.take('^')
	var s classSet
	if p.peek() != ']' {
		s = p.classContents()
	}
	if !p.take(']') {
		p.fail("Invalid character in character class")
	}
	if negate {
		if len(s.strings) > 0 {
			p.fail("Negated character class may contain strings")
		}
		s.set = s.set.Complement()
	}
	return s
}

// classContents reads a union, an intersection or a subtraction.
func (p *parser) classContents() classSet {
	s, char, isChar := p.classOperand()
	switch {
	case p.peek() == '&' && p.at(p.pos+1) == '&':
		for p.takeText("&&") {
			if p.peek() == '&' {
				p.fail("Invalid set operation in character class")
			}
			t, _, _ := p.classOperand()
			s = s.filter(t, true)
		}
		return s
	case p.peek() == '-' && p.at(p.pos+1) == '-':
		for p.takeText("--") {
			t, _, _ := p.classOperand()
			s = s.filter(t, false)
		}
		return s
	}
	s = p.rangeFrom(s, char, isChar)
	for p.pos < len(p.text) && p.peek() != ']' {
		t, char, isChar := p.classOperand()
		s = s.union(p.rangeFrom(t, char, isChar))
	}
	return s
}

// rangeFrom completes a range that begins with char.
func (p *parser) rangeFrom(s classSet, char rune, isChar bool) classSet {
	if p.peek() != '-' {
		return s
	}
	if !isChar || p.at(p.pos+1) == '-' {
		p.fail("Invalid character class")
	}
	p.pos++
	_, high, ok := p.classOperand()
	if !ok {
		p.fail("Invalid character class")
	}
	if char > high {
		p.fail("Range out of order in character class")
	}
	return p.folded(classSet{set: ucd.Set{{Lo: char, Hi: high}}})
}

func (p *parser) folded(s classSet) classSet {
	if p.mode.ignoreCase {
		return s.fold(p.folding())
	}
	return s
}

// classOperand reads an operand, and returns its character if it is one.
func (p *parser) classOperand() (s classSet, char rune, isChar bool) {
	c := p.peek()
	if c < 0 {
		p.fail("Unterminated character class")
	}
	p.pos++
	switch {
	case c == '[':
		return p.nestedClass(), 0, false
	case c == '\\':
		if p.takeText("q{") {
			return p.folded(p.classStrings()), 0, false
		}
		if set, ok := p.classEscape(); ok {
			return p.folded(set), 0, false
		}
		c = p.setCharEscape()
	case c == p.peek() && doublePunctuator(c):
		p.fail("Invalid set operation in character class")
	case c == '(' || c == ')' || c == ']' || c == '{' || c == '}' || c == '/' || c == '-' || c == '|':
		p.fail("Invalid character in character class")
	}
	return p.folded(classSet{set: ucd.Set{{Lo: c, Hi: c}}}), c, true
}

// setCharEscape reads the escape of a character in a class with the flag v.
func (p *parser) setCharEscape() rune {
	switch c := p.peek(); c {
	case 'b':
		p.pos++
		return '\b'
	case '&', '-', '!', '#', '%', ',', ':', ';', '<', '=', '>', '@', '`', '~':
		p.pos++
		return c
	}
	return p.charEscape(false)
}

func doublePunctuator(c rune) bool {
	switch c {
	case '&', '!', '#', '$', '%', '*', '+', ',', '.', ':', ';', '<', '=', '>', '?', '@', '^', '`', '~':
		return true
	}
	return false
}

// classStrings reads the strings of \q{...|...}.
func (p *parser) classStrings() classSet {
	var s classSet
	text := []rune{}
	for {
		switch c := p.peek(); c {
		case '|', '}':
			p.pos++
			s.add(text)
			text = []rune{}
			if c == '}' {
				return s
			}
		default:
			_, char, ok := p.classOperand()
			if !ok {
				p.fail("Invalid escape")
			}
			text = append(text, char)
		}
	}
}
