// Package cldr holds the part of the Unicode Common Locale Data Repository 48.2 that Intl
// needs, for the locales whose coverage it calls modern
// (https://www.unicode.org/license.txt). gen.mjs writes the data. Nothing is decompressed
// before it is asked for, and what was is kept for the process.
package cldr

import (
	"compress/flate"
	_ "embed"
	"io"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Version is the version of the data.
const Version = "48.2"

//go:embed cldr.bin
var table string

// index finds a blob of compressed data by its name. It is read at the first look-up.
var index = sync.OnceValue(func() map[string]string {
	head, data, _ := strings.Cut(table, "\n\n")
	entries := make(map[string]string, 3000)
	for line := range strings.Lines(head) {
		f := strings.Fields(line)
		n := len(f)
		at, err1 := strconv.Atoi(f[n-2])
		size, err2 := strconv.Atoi(f[n-1])
		if err1 != nil || err2 != nil {
			panic("cldr: the table is damaged at " + line)
		}
		entries[strings.Join(f[:n-2], " ")] = data[at : at+size]
	}
	return entries
})

// text returns a blob, and false if there is none of the name.
func text(name string) (string, bool) {
	blob, ok := index()[name]
	if !ok {
		return "", false
	}
	raw, err := io.ReadAll(flate.NewReader(strings.NewReader(blob)))
	if err != nil {
		panic("cldr: " + name + ": " + err.Error())
	}
	return string(raw), true
}

// cache keeps the result of make for each key.
type cache[V any] struct {
	made sync.Map
	make func(key string) V
}

func (c *cache[V]) get(key string) V {
	if v, ok := c.made.Load(key); ok {
		return v.(V)
	}
	v, _ := c.made.LoadOrStore(key, c.make(key))
	return v.(V)
}

// keyList is the keys of a section, sorted, which the values of each locale follow.
type keyList struct {
	names []string
	at    map[string]int
}

var sections = cache[*keyList]{make: func(name string) *keyList {
	all, _ := text(name + " keys")
	k := &keyList{names: strings.Split(all, "\n")}
	k.at = make(map[string]int, len(k.names))
	for i, n := range k.names {
		k.at[n] = i
	}
	return k
}}

// Section is the data of one kind for one locale, with what it inherits.
type Section struct {
	keys   *keyList
	values []string
}

var resolved = cache[*Section]{}

var lookups = cache[map[string]string]{make: func(name string) map[string]string {
	all, _ := text("table " + name)
	m := make(map[string]string)
	for line := range strings.Lines(all) {
		key, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		m[key] = v
	}
	return m
}}

// none marks a value that the parent has and the locale does not.
const none = "\x01"

// Of returns the data of a kind (date, zone, number, currency, unit, list or name) for a
// supported locale or one of its parents, including the values that it inherits.
func Of(kind, locale string) *Section {
	key := kind + " " + locale
	if s, ok := resolved.made.Load(key); ok {
		return s.(*Section)
	}
	s := &Section{keys: sections.get(kind)}
	s.values = make([]string, len(s.keys.names))
	if locale != "und" {
		copy(s.values, Of(kind, Parent(locale)).values)
	}
	if own, ok := text(key); ok {
		for i, v := range strings.Split(own, "\n") {
			switch v {
			case "":
			case none:
				s.values[i] = ""
			default:
				s.values[i] = v
			}
		}
	}
	kept, _ := resolved.made.LoadOrStore(key, s)
	return kept.(*Section)
}

// Get returns a value, "" if the locale has none.
func (s *Section) Get(key string) string {
	if i, ok := s.keys.at[key]; ok {
		return s.values[i]
	}
	return ""
}

// Each calls yield with what follows prefix in each key that begins with it, in order, and
// the key's value.
func (s *Section) Each(prefix string, yield func(rest, value string)) {
	for i := sort.SearchStrings(s.keys.names, prefix); i < len(s.keys.names); i++ {
		rest, ok := strings.CutPrefix(s.keys.names[i], prefix)
		if !ok {
			return
		}
		if s.values[i] != "" {
			yield(rest, s.values[i])
		}
	}
}

// Table returns a table of the supplemental data. It must not be changed.
func Table(name string) map[string]string { return lookups.get(name) }

// Parent returns the locale whose data a locale inherits, "und" at the end.
func Parent(locale string) string {
	if p, ok := Table("parents")[locale]; ok {
		return p
	}
	if at := strings.LastIndexByte(locale, '-'); at > 0 {
		return locale[:at]
	}
	return "und"
}

// Supported reports whether there are data for a locale, or it has those of its parent by
// definition, as en-US those of en.
func Supported(locale string) bool {
	_, ok := Table("locales")[locale]
	return ok
}
