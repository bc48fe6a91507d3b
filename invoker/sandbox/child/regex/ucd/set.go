package ucd

import "slices"

// MaxRune is the last code point.
const MaxRune = 0x10FFFF

// Range is the code points from Lo to Hi, both included.
type Range struct{ Lo, Hi rune }

// Set is a set of code points: ranges in order, apart from each other.
type Set []Range

// Has reports whether c is in s.
func (s Set) Has(c rune) bool {
	lo, hi := 0, len(s)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch {
		case c < s[mid].Lo:
			hi = mid
		case c > s[mid].Hi:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

// Complement returns the code points that are not in s.
func (s Set) Complement() Set {
	var out Set
	next := rune(0)
	for _, r := range s {
		if r.Lo > next {
			out = append(out, Range{next, r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= MaxRune {
		out = append(out, Range{next, MaxRune})
	}
	return out
}

// Union returns the code points of s and of t.
func (s Set) Union(t Set) Set {
	var b Builder
	b.Add(s)
	b.Add(t)
	return b.Set()
}

// Intersect returns the code points that both s and t have.
func (s Set) Intersect(t Set) Set {
	return s.Complement().Union(t.Complement()).Complement()
}

// Builder collects ranges in any order. The zero Builder is empty.
type Builder struct{ ranges []Range }

// AddRange adds the code points from lo to hi.
func (b *Builder) AddRange(lo, hi rune) { b.ranges = append(b.ranges, Range{lo, hi}) }

// Add adds a set.
func (b *Builder) Add(s Set) { b.ranges = append(b.ranges, s...) }

// Set returns what was added, in order.
func (b *Builder) Set() Set {
	slices.SortFunc(b.ranges, func(x, y Range) int { return int(x.Lo - y.Lo) })
	var out Set
	for _, r := range b.ranges {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
			continue
		}
		out = append(out, r)
	}
	return out
}
