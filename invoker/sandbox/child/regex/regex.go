// Package regex is an engine for the regular expressions of ECMAScript 2025, with all flags:
// Unicode properties, sets, modifiers, duplicate names, lookbehind. It exists because the
// engines that goja uses lack these, or answer wrongly. A pattern compiles to instructions
// for a backtracking machine that keeps its state on the heap, so that no input can exhaust
// the stack; a caller may stop a match that takes too long.
//
// Strings are UTF-16 code units, as in the language.
package regex

import (
	"errors"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/child/regex/ucd"
)

// Flags are the flags of an expression.
type Flags struct {
	HasIndices, Global, IgnoreCase, Multiline, DotAll, Unicode, UnicodeSets, Sticky bool
}

// ParseFlags reads flags. It reports false for unknown and repeated ones, and for u with v.
func ParseFlags(text string) (f Flags, ok bool) {
	for i := range len(text) {
		var to *bool
		switch text[i] {
		case 'd':
			to = &f.HasIndices
		case 'g':
			to = &f.Global
		case 'i':
			to = &f.IgnoreCase
		case 'm':
			to = &f.Multiline
		case 's':
			to = &f.DotAll
		case 'u':
			to = &f.Unicode
		case 'v':
			to = &f.UnicodeSets
		case 'y':
			to = &f.Sticky
		}
		if to == nil || *to {
			return Flags{}, false
		}
		*to = true
	}
	return f, !f.Unicode || !f.UnicodeSets
}

// String returns the flags in alphabetical order.
func (f Flags) String() string {
	var b strings.Builder
	for _, x := range []struct {
		on   bool
		name byte
	}{
		{f.HasIndices, 'd'}, {f.Global, 'g'}, {f.IgnoreCase, 'i'}, {f.Multiline, 'm'},
		{f.DotAll, 's'}, {f.Unicode, 'u'}, {f.UnicodeSets, 'v'}, {f.Sticky, 'y'},
	} {
		if x.on {
			b.WriteByte(x.name)
		}
	}
	return b.String()
}

// Full reports whether the expression sees code points instead of code units.
func (f Flags) Full() bool { return f.Unicode || f.UnicodeSets }

// Name is a named group. A name that several groups have, in alternatives of each other,
// has several indices.
type Name struct {
	Name    string
	Indices []int
}

// Program is a compiled expression. It is immutable.
type Program struct {
	Flags  Flags
	Groups int    // capturing groups, that of the whole match included
	Names  []Name // in the order of the pattern

	code      []inst
	sets      []*set
	lists     [][]int32 // groups of back references
	registers int
	first     *set // what a match begins with, nil where that is unknown
}

// SyntaxError is a pattern that is not an expression.
type SyntaxError struct{ Message string }

func (e *SyntaxError) Error() string { return e.Message }

// Errors of a match.
var (
	ErrStopped = errors.New("regex: stopped")
	ErrTooDeep = errors.New("regex: the expression backtracks too much on this text")
)

// set is a set of code points with a table for the first of them.
type set struct {
	ascii [2]uint64
	all   ucd.Set
}

func newSet(all ucd.Set) *set {
	s := &set{all: all}
	for c := range rune(128) {
		if all.Has(c) {
			s.ascii[c>>6] |= 1 << (c & 63)
		}
	}
	return s
}

func (s *set) has(c rune) bool {
	if c < 128 {
		return s.ascii[c>>6]>>(c&63)&1 != 0
	}
	return s.all.Has(c)
}
