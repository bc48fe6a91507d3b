// Package ucd holds the properties of Unicode 17 that regular expressions name: the
// general categories, scripts, binary properties and properties of strings of ECMA-262,
// and the case mappings by which it ignores case. Go's own tables are of an earlier
// version of Unicode and lack most of these. The data are of the Unicode Character
// Database (https://www.unicode.org/license.txt); gen.mjs writes them.
package ucd

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed ucd.bin
var table string

// index finds the data of a KIND and NAME. It is read when a name is first looked up.
var index = sync.OnceValue(func() map[string]string {
	head, data, _ := strings.Cut(table, "\n\n")
	entries := make(map[string]string, 1200)
	for line := range strings.Lines(head) {
		f := strings.Fields(line)
		at, err1 := strconv.Atoi(f[2])
		n, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil {
			panic("ucd: the table is damaged at " + line)
		}
		entries[f[0]+" "+f[1]] = data[at : at+n]
	}
	return entries
})

// Category returns the set of a General_Category, by its long or short name.
func Category(name string) (Set, bool) { return lookup("gc " + name) }

// Script returns the set of a Script.
func Script(name string) (Set, bool) { return lookup("sc " + name) }

// ScriptExtensions returns the set of the code points that a script uses.
func ScriptExtensions(name string) (Set, bool) { return lookup("scx " + name) }

// Binary returns the set of a binary property.
func Binary(name string) (Set, bool) { return lookup("bin " + name) }

func lookup(key string) (Set, bool) {
	data, ok := index()[key]
	if !ok {
		return nil, false
	}
	return decode(data), true
}

// decode reads a list of ranges: the gap since the last one, and the length less one.
func decode(data string) Set {
	raw := []byte(data)
	var s Set
	end := rune(0)
	for len(raw) > 0 {
		gap, n := binary.Uvarint(raw)
		length, m := binary.Uvarint(raw[n:])
		raw = raw[n+m:]
		lo := end + rune(gap)
		end = lo + rune(length) + 1
		s = append(s, Range{lo, end - 1})
	}
	return s
}

// emoji are the properties of strings whose union is RGI_Emoji.
var emoji = []string{
	"Basic_Emoji", "Emoji_Keycap_Sequence", "RGI_Emoji_Modifier_Sequence", "RGI_Emoji_Flag_Sequence",
	"RGI_Emoji_Tag_Sequence", "RGI_Emoji_ZWJ_Sequence",
}

// Strings returns the strings of a property of strings, such as RGI_Emoji.
func Strings(name string) ([]string, bool) {
	if name == "RGI_Emoji" {
		var all []string
		for _, part := range emoji {
			list, _ := Strings(part)
			all = append(all, list...)
		}
		return all, true
	}
	data, ok := index()["seq "+name]
	if !ok {
		return nil, false
	}
	return strings.Split(data, "\n"), true
}

// Mapping is a case mapping: Of returns what it maps a code point to.
type Mapping struct {
	to      map[rune]rune
	classes map[rune][]rune // of each code point that has others with the same target
}

// Fold is the simple case folding, by which expressions with the flags iu and iv ignore case.
var Fold = sync.OnceValue(func() *Mapping { return newMapping(index()["map fold"], false) })

// Upper maps UTF-16 code units to upper case, as expressions with the flag i alone do: not
// where the result is several characters, or is ASCII and the source is not.
var Upper = sync.OnceValue(func() *Mapping { return newMapping(index()["map upper"], true) })

func newMapping(data string, units bool) *Mapping {
	m := &Mapping{to: map[rune]rune{}, classes: map[rune][]rune{}}
	raw := []byte(data)
	from := rune(0)
	for len(raw) > 0 {
		gap, n := binary.Uvarint(raw)
		zigzag, k := binary.Uvarint(raw[n:])
		raw = raw[n+k:]
		from += rune(gap)
		to := from + rune(int64(zigzag>>1)^-int64(zigzag&1))
		if units && (from > 0xFFFF || to > 0xFFFF || from >= 128 && to < 128) {
			continue
		}
		m.to[from] = to
	}
	byTarget := map[rune][]rune{}
	for from, to := range m.to {
		byTarget[to] = append(byTarget[to], from)
	}
	for to, class := range byTarget {
		if _, mapped := m.to[to]; !mapped {
			class = append(class, to)
		}
		slices.Sort(class)
		for _, c := range class {
			m.classes[c] = class
		}
	}
	return m
}

// Of returns what c maps to, which is c for most.
func (m *Mapping) Of(c rune) rune {
	if to, ok := m.to[c]; ok {
		return to
	}
	return c
}

// Class returns all code points that map to what c maps to, nil where c is the only one.
func (m *Mapping) Class(c rune) []rune { return m.classes[c] }

// Close returns s and all code points that map to what one of s maps to.
func (m *Mapping) Close(s Set) Set {
	var b Builder
	for _, r := range s {
		b.AddRange(r.Lo, r.Hi)
	}
	for c, class := range m.classes {
		if s.Has(c) {
			for _, other := range class {
				b.AddRange(other, other)
			}
		}
	}
	return b.Set()
}
