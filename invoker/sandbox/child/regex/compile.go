package regex

import (
	"slices"

	"github.com/codesous/sous/invoker/sandbox/child/regex/ucd"
)

// op is what an instruction does.
type op uint8

const (
	opMatch       op = iota // the whole pattern, or the body of a lookaround, has matched
	opChar                  // a is the character
	opSet                   // a is the set
	opCharBack              // the same before the position, in a lookbehind
	opSetBack               //
	opJump                  // a is the target
	opSplit                 // try a, then b
	opSave                  // register a becomes the position
	opClear                 // registers a to b-1 become unset
	opZero                  // the counter in register a becomes 0
	opLoop                  // decides whether the body, at the next instruction, runs: loops[a]
	opEnter                 // begins the body of loops[a]
	opRepeat                // ends the body of loops[a]
	opRun                   // loops[a] of the set b, without a body
	opLook                  // a lookaround whose body begins at the next instruction; b is behind it, a: 1 negates
	opBackref               // lists[a]; b: 1 ignores case
	opBackrefBack           //
	opTextStart
	opLineStart
	opTextEnd
	opLineEnd
	opBoundary // a is the set of word characters
	opNoBoundary
)

// inst is an instruction.
type inst struct {
	op   op
	a, b int32
	loop *loop
}

// loop is a quantifier.
type loop struct {
	min, max       int32 // max < 0: without bound
	lazy           bool
	counter, start int32 // registers: iterations begun, and the position where the last began
	lo, hi         int32 // registers of the groups within
	top, exit      int32 // the opLoop, and what follows the loop
}

// maxCode bounds the instructions of a program.
const maxCode = 1 << 20

type compiler struct {
	prog   *Program
	parser *parser
	back   bool
}

// Compile compiles a pattern. An error is a *SyntaxError.
func Compile(pattern []uint16, f Flags) (prog *Program, err error) {
	defer func() {
		if x := recover(); x != nil {
			syntax, ok := x.(*SyntaxError)
			if !ok {
				panic(x)
			}
			prog, err = nil, syntax
		}
	}()
	p := newParser(pattern, f)
	tree := p.parse()
	c := &compiler{prog: &Program{Flags: f, Groups: p.groups, registers: 2 * p.groups}, parser: p}
	for _, n := range p.names {
		at := slices.IndexFunc(c.prog.Names, func(other Name) bool { return other.Name == n.name })
		if at < 0 {
			at = len(c.prog.Names)
			c.prog.Names = append(c.prog.Names, Name{Name: n.name})
		}
		c.prog.Names[at].Indices = append(c.prog.Names[at].Indices, n.index)
	}
	c.emit(inst{op: opSave, a: 0})
	c.node(tree)
	c.emit(inst{op: opSave, a: 1})
	c.emit(inst{op: opMatch})
	if s, ok := first(tree); ok {
		c.prog.first = newSet(s)
	}
	return c.prog, nil
}

func (c *compiler) emit(i inst) int32 {
	if len(c.prog.code) >= maxCode {
		c.parser.fail("too large")
	}
	c.prog.code = append(c.prog.code, i)
	return int32(len(c.prog.code) - 1)
}

func (c *compiler) here() int32 { return int32(len(c.prog.code)) }

func (c *compiler) register() int32 {
	c.prog.registers++
	return int32(c.prog.registers - 1)
}

func (c *compiler) setID(s ucd.Set) int32 {
	c.prog.sets = append(c.prog.sets, newSet(s))
	return int32(len(c.prog.sets) - 1)
}

func (c *compiler) node(n node) {
	switch n := n.(type) {
	case charNode:
		c.emit(inst{op: c.direction(opChar, opCharBack), a: n.c})
	case setNode:
		c.emit(inst{op: c.direction(opSet, opSetBack), a: c.setID(n.set)})
	case seqNode:
		if c.back {
			for i := len(n) - 1; i >= 0; i-- {
				c.node(n[i])
			}
			return
		}
		for _, part := range n {
			c.node(part)
		}
	case altNode:
		c.alternatives(n)
	case groupNode:
		lo, hi := int32(2*n.index), int32(2*n.index+1)
		if c.back {
			lo, hi = hi, lo
		}
		c.emit(inst{op: opSave, a: lo})
		c.node(n.body)
		c.emit(inst{op: opSave, a: hi})
	case quantNode:
		c.quantifier(n)
	case assertNode:
		i := inst{op: n.kind}
		if n.words != nil {
			i.a = int32(len(c.prog.sets))
			c.prog.sets = append(c.prog.sets, n.words)
		}
		c.emit(i)
	case lookNode:
		c.look(n)
	case backrefNode:
		c.backref(n)
	}
}

func (c *compiler) direction(ahead, back op) op {
	if c.back {
		return back
	}
	return ahead
}

func (c *compiler) alternatives(n altNode) {
	var jumps []int32
	for i, arm := range n {
		if i == len(n)-1 {
			c.node(arm)
			break
		}
		split := c.emit(inst{op: opSplit})
		c.prog.code[split].a = c.here()
		c.node(arm)
		jumps = append(jumps, c.emit(inst{op: opJump}))
		c.prog.code[split].b = c.here()
	}
	for _, j := range jumps {
		c.prog.code[j].a = c.here()
	}
}

func (c *compiler) quantifier(n quantNode) {
	if n.max == 0 {
		return
	}
	l := &loop{min: int32(n.min), max: int32(n.max), lazy: n.lazy, lo: int32(2 * n.lo), hi: int32(2 * n.hi)}
	if set, ok := single(n.body); ok && !c.back {
		c.emit(inst{op: opRun, b: c.setID(set), loop: l})
		return
	}
	if n.min == 0 && n.max == 1 {
		c.optional(n)
		return
	}
	l.counter, l.start = c.register(), c.register()
	c.emit(inst{op: opZero, a: l.counter})
	l.top = c.emit(inst{op: opLoop, loop: l})
	c.emit(inst{op: opEnter, loop: l})
	c.node(n.body)
	c.emit(inst{op: opRepeat, loop: l})
	l.exit = c.here()
}

// optional is a loop of at most one turn, which must not be empty.
func (c *compiler) optional(n quantNode) {
	l := &loop{max: 1, lazy: n.lazy, lo: int32(2 * n.lo), hi: int32(2 * n.hi), counter: c.register(), start: c.register()}
	c.emit(inst{op: opZero, a: l.counter})
	l.top = c.emit(inst{op: opLoop, loop: l})
	c.emit(inst{op: opEnter, loop: l})
	c.node(n.body)
	c.emit(inst{op: opRepeat, loop: l})
	l.exit = c.here()
}

// single returns the set that a node of one character matches.
func single(n node) (ucd.Set, bool) {
	switch n := n.(type) {
	case charNode:
		return ucd.Set{{Lo: n.c, Hi: n.c}}, true
	case setNode:
		return n.set, true
	}
	return nil, false
}

func (c *compiler) look(n lookNode) {
	outer := c.back
	look := c.emit(inst{op: opLook})
	if n.negate {
		c.prog.code[look].a = 1
	}
	c.back = n.back
	c.node(n.body)
	c.emit(inst{op: opMatch})
	c.prog.code[look].b = c.here()
	c.back = outer
}

func (c *compiler) backref(n backrefNode) {
	groups := []int32{int32(n.index)}
	if n.name != "" {
		at := slices.IndexFunc(c.prog.Names, func(other Name) bool { return other.Name == n.name })
		if at < 0 {
			c.parser.fail("Invalid named capture referenced")
		}
		groups = groups[:0]
		for _, index := range c.prog.Names[at].Indices {
			groups = append(groups, int32(index))
		}
	}
	c.prog.lists = append(c.prog.lists, groups)
	i := inst{op: c.direction(opBackref, opBackrefBack), a: int32(len(c.prog.lists) - 1)}
	if n.ignore {
		i.b = 1
	}
	c.emit(i)
}

// first returns the set of what a match begins with. It reports false where a match may be
// empty or that is unknown.
func first(n node) (ucd.Set, bool) {
	switch n := n.(type) {
	case charNode:
		return ucd.Set{{Lo: n.c, Hi: n.c}}, true
	case setNode:
		return n.set, true
	case groupNode:
		return first(n.body)
	case seqNode:
		for _, part := range n {
			if _, ok := part.(assertNode); !ok {
				return first(part)
			}
		}
	case quantNode:
		if n.min > 0 {
			return first(n.body)
		}
	case altNode:
		var all ucd.Builder
		for _, arm := range n {
			s, ok := first(arm)
			if !ok {
				return nil, false
			}
			all.Add(s)
		}
		return all.Set(), true
	}
	return nil, false
}

func folded(c rune) rune { return ucd.Fold().Of(c) }
func upper(c rune) rune  { return ucd.Upper().Of(c) }
