package regex

import "unicode/utf16"

// maxStack bounds what a match remembers to try later.
const maxStack = 4 << 20

// pollSteps is how many instructions run between two looks at stop.
const pollSteps = 1 << 14

// entry is what a failed attempt returns to.
type entry struct {
	kind     entryKind
	pc       int32
	pos, lim int32
}

type entryKind uint8

const (
	retry   entryKind = iota // go on at pc and pos
	restore                  // register pc was pos
	giveUp                   // a greedy run at pc may end earlier than pos, down to lim
	takeOn                   // a lazy run at pc may take another character, lim of them
)

// machine is one match.
type machine struct {
	prog  *Program
	in    []uint16
	full  bool
	regs  []int32
	stack []entry
	steps int
	stop  func() bool
	err   error
}

// Match finds the first match at index from or later, or only there if sticky. It returns two indices for each group, -1 for groups without a match, and nil
// where there is no match. stop, which may be nil, is asked from time to time whether to
// end with ErrStopped.
func (p *Program) Match(in []uint16, from int, sticky bool, stop func() bool) ([]int32, error) {
	m := &machine{prog: p, in: in, full: p.Flags.Full(), regs: make([]int32, p.registers), stop: stop}
	pos := int32(from)
	if m.full && from > 0 && from < len(in) && isLow(rune(in[from])) && isHigh(rune(in[from-1])) {
		pos-- // the code point that the index is in
	}
	for {
		if p.first != nil && !sticky {
			pos = m.skip(pos)
			if int(pos) >= len(in) {
				return nil, nil
			}
		}
		for i := range m.regs {
			m.regs[i] = -1
		}
		if m.run(0, pos) {
			return m.regs[:2*p.Groups], nil
		}
		if m.err != nil || sticky || int(pos) >= len(in) {
			return nil, m.err
		}
		_, pos = m.next(pos)
	}
}

// skip returns the next position where a match may begin.
func (m *machine) skip(pos int32) int32 {
	for int(pos) < len(m.in) {
		c, next := m.next(pos)
		if m.prog.first.has(c) {
			return pos
		}
		pos = next
	}
	return pos
}

// next reads the character at pos, which is within the text.
func (m *machine) next(pos int32) (rune, int32) {
	c := rune(m.in[pos])
	pos++
	if m.full && isHigh(c) && int(pos) < len(m.in) && isLow(rune(m.in[pos])) {
		return utf16.DecodeRune(c, rune(m.in[pos])), pos + 1
	}
	return c, pos
}

// before reads the character in front of pos, which is not the start.
func (m *machine) before(pos int32) (rune, int32) {
	pos--
	c := rune(m.in[pos])
	if m.full && isLow(c) && pos > 0 && isHigh(rune(m.in[pos-1])) {
		return utf16.DecodeRune(rune(m.in[pos-1]), c), pos - 1
	}
	return c, pos
}

func (m *machine) push(e entry) {
	if len(m.stack) >= maxStack {
		m.err = ErrTooDeep
		return
	}
	m.stack = append(m.stack, e)
}

// set changes a register so that a failure undoes it.
func (m *machine) set(reg, v int32) {
	m.push(entry{kind: restore, pc: reg, pos: m.regs[reg]})
	m.regs[reg] = v
}

func (m *machine) clear(lo, hi int32) {
	for reg := lo; reg < hi; reg++ {
		if m.regs[reg] >= 0 {
			m.set(reg, -1)
		}
	}
}

// run executes instructions from pc until opMatch (true) or until nothing is left to try.
// Entries that are on the stack before it stay.
func (m *machine) run(pc, pos int32) bool {
	base := len(m.stack)
	for {
		m.steps++
		if m.steps%pollSteps == 0 && m.stop != nil && m.stop() {
			m.err = ErrStopped
		}
		if m.err != nil {
			return false
		}
		i := &m.prog.code[pc]
		if i.op == opMatch {
			m.forget(base)
			return true
		}
		var ok bool
		pc, pos, ok = m.step(i, pc, pos)
		if ok {
			continue
		}
		pc, pos, ok = m.backtrack(base)
		if !ok {
			return false
		}
	}
}

// forget drops the choices above base and keeps what undoes the registers.
func (m *machine) forget(base int) {
	kept := m.stack[:base]
	for _, e := range m.stack[base:] {
		if e.kind == restore {
			kept = append(kept, e)
		}
	}
	m.stack = kept
}

// backtrack returns to the last choice above base.
func (m *machine) backtrack(base int) (pc, pos int32, ok bool) {
	for len(m.stack) > base {
		top := len(m.stack) - 1
		e := m.stack[top]
		switch e.kind {
		case restore:
			m.regs[e.pc] = e.pos
		case retry:
			m.stack = m.stack[:top]
			return e.pc, e.pos, true
		case giveUp:
			pos := e.pos - 1
			if m.full && isLow(rune(m.in[pos])) && pos > e.lim && isHigh(rune(m.in[pos-1])) {
				pos--
			}
			if pos > e.lim {
				m.stack[top].pos = pos
			} else {
				m.stack = m.stack[:top]
			}
			return e.pc + 1, pos, true
		case takeOn:
			m.stack = m.stack[:top]
			if int(e.pos) >= len(m.in) {
				continue
			}
			i := &m.prog.code[e.pc]
			c, next := m.next(e.pos)
			if !m.prog.sets[i.b].has(c) {
				continue
			}
			if e.lim != 1 {
				m.stack = append(m.stack, entry{takeOn, e.pc, next, max(e.lim-1, -1)})
			}
			return e.pc + 1, next, true
		}
		m.stack = m.stack[:top]
	}
	return 0, 0, false
}

// step executes an instruction. It reports false where the attempt fails.
func (m *machine) step(i *inst, pc, pos int32) (int32, int32, bool) {
	switch i.op {
	case opChar, opSet:
		if int(pos) >= len(m.in) {
			return 0, 0, false
		}
		c, next := m.next(pos)
		return pc + 1, next, m.accepts(i, i.op == opChar, c)
	case opCharBack, opSetBack:
		if pos == 0 {
			return 0, 0, false
		}
		c, next := m.before(pos)
		return pc + 1, next, m.accepts(i, i.op == opCharBack, c)
	case opJump:
		return i.a, pos, true
	case opSplit:
		m.push(entry{kind: retry, pc: i.b, pos: pos})
		return i.a, pos, true
	case opSave:
		m.set(i.a, pos)
	case opClear:
		m.clear(i.a, i.b)
	case opZero:
		m.set(i.a, 0)
	case opLoop:
		return m.loop(i.loop, pc, pos), pos, true
	case opEnter:
		m.set(i.loop.counter, m.regs[i.loop.counter]+1)
		m.set(i.loop.start, pos)
		m.clear(i.loop.lo, i.loop.hi)
	case opRepeat:
		if pos == m.regs[i.loop.start] && m.regs[i.loop.counter] > i.loop.min {
			return 0, 0, false // a turn that matches nothing does not count
		}
		return i.loop.top, pos, true
	case opRun:
		pos, ok := m.runSet(i, pc, pos)
		return pc + 1, pos, ok
	case opLook:
		return i.b, pos, m.look(pc+1, pos, i.a == 1)
	case opBackref, opBackrefBack:
		pos, ok := m.backref(i, pos)
		return pc + 1, pos, ok
	default:
		return pc + 1, pos, m.asserts(i, pos)
	}
	return pc + 1, pos, true
}

func (m *machine) accepts(i *inst, char bool, c rune) bool {
	if char {
		return c == i.a
	}
	return m.prog.sets[i.a].has(c)
}

// loop decides on another turn and returns where to go on.
func (m *machine) loop(l *loop, pc, pos int32) int32 {
	turns := m.regs[l.counter]
	switch {
	case turns < l.min:
		return pc + 1
	case l.max >= 0 && turns >= l.max:
		return l.exit
	case l.lazy:
		m.push(entry{kind: retry, pc: pc + 1, pos: pos})
		return l.exit
	}
	m.push(entry{kind: retry, pc: l.exit, pos: pos})
	return pc + 1
}

// runSet matches a quantified character.
func (m *machine) runSet(i *inst, pc, pos int32) (int32, bool) {
	l, s := i.loop, m.prog.sets[i.b]
	count := int32(0)
	take := func(limit int32) {
		for count != limit && int(pos) < len(m.in) {
			c, next := m.next(pos)
			if !s.has(c) {
				return
			}
			pos = next
			count++
		}
	}
	take(l.min)
	if count < l.min {
		return 0, false
	}
	if l.lazy {
		if l.max != l.min {
			lim := int32(-1)
			if l.max >= 0 {
				lim = l.max - l.min
			}
			m.push(entry{takeOn, pc, pos, lim})
		}
		return pos, true
	}
	least := pos
	m.steps += int(count)
	take(l.max)
	if pos > least {
		m.push(entry{giveUp, pc, pos, least})
	}
	return pos, true
}

// look matches a lookaround, whose groups stay where it matches and is not negated.
func (m *machine) look(pc, pos int32, negate bool) bool {
	base := len(m.stack)
	matched := m.run(pc, pos)
	if negate && matched {
		for len(m.stack) > base {
			e := m.stack[len(m.stack)-1]
			m.regs[e.pc] = e.pos // all that is left is to restore
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
	return matched != negate
}

func (m *machine) backref(i *inst, pos int32) (int32, bool) {
	lo, hi := int32(-1), int32(-1)
	for _, g := range m.prog.lists[i.a] {
		if m.regs[2*g] >= 0 && m.regs[2*g+1] >= 0 {
			lo, hi = m.regs[2*g], m.regs[2*g+1]
		}
	}
	if lo < 0 {
		return pos, true
	}
	length := hi - lo
	at := pos
	if i.op == opBackrefBack {
		at -= length
	}
	if at < 0 || int(at+length) > len(m.in) {
		return 0, false
	}
	if !m.equal(m.in[lo:hi], m.in[at:at+length], i.b == 1) {
		return 0, false
	}
	if i.op == opBackrefBack {
		return at, true
	}
	return at + length, true
}

func (m *machine) equal(a, b []uint16, ignoreCase bool) bool {
	fold := upper
	if m.full {
		fold = folded
	}
	x, y := a, b
	for len(x) > 0 {
		c, d := rune(x[0]), rune(y[0])
		n := 1
		if m.full && ignoreCase && len(x) > 1 && isHigh(c) && isLow(rune(x[1])) {
			c, d = utf16.DecodeRune(c, rune(x[1])), utf16.DecodeRune(d, rune(y[1]))
			n = 2
		}
		if c != d && (!ignoreCase || fold(c) != fold(d)) {
			return false
		}
		x, y = x[n:], y[n:]
	}
	return true
}

func (m *machine) asserts(i *inst, pos int32) bool {
	switch i.op {
	case opTextStart:
		return pos == 0
	case opLineStart:
		return pos == 0 || lineEnds.Has(rune(m.in[pos-1]))
	case opTextEnd:
		return int(pos) == len(m.in)
	case opLineEnd:
		return int(pos) == len(m.in) || lineEnds.Has(rune(m.in[pos]))
	}
	words := m.prog.sets[i.a]
	left, right := false, false
	if pos > 0 {
		c, _ := m.before(pos)
		left = words.has(c)
	}
	if int(pos) < len(m.in) {
		c, _ := m.next(pos)
		right = words.has(c)
	}
	return (left != right) == (i.op == opBoundary)
}
