package vault

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

const (
	// anchorBytes is the length of the part of a form by which it is looked for.
	anchorBytes = 32
	// minFormBytes is the length of the shortest form: minRedacted characters of one byte.
	minFormBytes = minRedacted
	// stepsPerByte and stepsAtLeast bound the steps of one search by the length of its text.
	// Ordinary text needs less than two steps for a byte. Only texts and secrets that were
	// made for it need more than the bound.
	stepsPerByte = 64
	stepsAtLeast = 4096
	// pauseSteps is the number of steps after which a search lets others have a turn, about
	// half a millisecond.
	pauseSteps = 1 << 16
)

// form is one way in which a secret is written, as a matcher looks for it: its first bytes, its
// length and its hash. So a matcher holds little of long secrets, and compares a long form in
// one step. Two long texts of the same beginning and length have the same hash with a
// probability below 2^-40; a text that is no secret would then be replaced.
type form struct {
	anchor string // the first anchorBytes of it
	length int
	hash   uint64 // of the whole form; 0 if anchor is the whole form
}

// newForm returns the form of a text. It does not keep the text.
func newForm(text string) form {
	if len(text) <= anchorBytes {
		return form{anchor: strings.Clone(text), length: len(text)}
	}
	return form{anchor: strings.Clone(text[:anchorBytes]), length: len(text), hash: hashOf(text)}
}

// matcher finds forms in text: from left to right, and the longest where several begin at one
// place. A search visits each byte of the text once. Where the four bytes at it begin a form,
// the anchors that begin the text there are found by bisection, and the longer forms of an
// anchor by their hashes. All steps are counted, so the time of a search is bounded by the
// length of its text, whatever the secrets are. It is not changed once it is made, and safe for
// concurrent use.
type matcher struct {
	forms   []form // sorted and without duplicates, for merging
	anchors []anchor
	longer  []longForm
	grams   []uint64 // a bit for the hash of the first four bytes of each anchor
	shift   uint8    // turns a hash into the number of a bit
	longest int      // length of the longest form
}

// anchor is the beginning of forms. Anchors are sorted by text.
type anchor struct {
	text  string
	whole bool  // text is a form
	up    int32 // the longest other anchor that is a prefix of text, -1 without one
	// The forms longer than text, the longest first, are longer[from:to].
	from, to int32
}

// longForm is a form longer than its anchor.
type longForm struct {
	length int
	hash   uint64
	power  uint64 // the base of the hash to the power of length
}

// newMatcher returns a matcher of forms, nil without any. It keeps and sorts the slice.
func newMatcher(forms []form) *matcher {
	if len(forms) == 0 {
		return nil
	}
	slices.SortFunc(forms, func(a, b form) int {
		return cmp.Or(strings.Compare(a.anchor, b.anchor), b.length-a.length, cmp.Compare(a.hash, b.hash))
	})
	m := &matcher{forms: slices.Clip(slices.Compact(forms))}
	for _, f := range m.forms {
		if n := len(m.anchors); n == 0 || m.anchors[n-1].text != f.anchor {
			m.anchors = append(m.anchors, anchor{text: f.anchor, up: m.above(f.anchor), from: int32(len(m.longer)), to: int32(len(m.longer))})
		}
		last := &m.anchors[len(m.anchors)-1]
		if f.length == len(f.anchor) {
			last.whole = true
		} else {
			m.longer = append(m.longer, longForm{f.length, f.hash, power(f.length)})
			last.to++
		}
		m.longest = max(m.longest, f.length)
	}
	words := 8
	for words*64 < 16*len(m.anchors) {
		words *= 2
	}
	m.grams, m.shift = make([]uint64, words), uint8(32-bits.TrailingZeros(uint(words*64)))
	for _, a := range m.anchors {
		bit := m.bit(binary.LittleEndian.Uint32([]byte(a.text[:minFormBytes])))
		m.grams[bit/64] |= 1 << (bit % 64)
	}
	return m
}

// above returns the longest anchor that is a prefix of text, -1 without one. text must sort
// after all anchors.
func (m *matcher) above(text string) int32 {
	for at := int32(len(m.anchors)) - 1; at >= 0; at = m.anchors[at].up {
		if strings.HasPrefix(text, m.anchors[at].text) {
			return at
		}
	}
	return -1
}

// bit returns the number of the bit of four bytes.
func (m *matcher) bit(gram uint32) uint32 { return gram * 0x9E3779B1 >> m.shift }

// size returns the memory that the matcher takes, in bytes.
func (m *matcher) size() int {
	if m == nil {
		return 0
	}
	return len(m.forms)*(anchorBytes+32) + len(m.anchors)*32 + len(m.longer)*24 + len(m.grams)*8
}

// search is one pass over a text.
type search struct {
	*matcher

	text   string
	hashes []uint64 // of the beginnings of text, made when a longer form is looked for
	steps  int      // that are left
	paused int      // steps at the last pause
	pause  func()   // nil for no pauses
}

func (m *matcher) search(text string, pause func()) *search {
	steps := stepsAtLeast + stepsPerByte*len(text)
	return &search{matcher: m, text: text, steps: steps, paused: steps, pause: pause}
}

// replace returns text with redacted in the place of each form, text itself if it holds none.
// searched is false if the search takes more steps than the bound: out is then redacted, in the
// place of all of text. pause is called from time to time in a long search.
func (m *matcher) replace(text string, pause func()) (out string, searched bool) {
	if m == nil || len(text) < minFormBytes {
		return text, true
	}
	var b strings.Builder
	s, done := m.search(text, pause), 0
	for i := s.next(0); i >= 0; i = s.next(i) {
		n := s.at(i)
		switch {
		case s.steps < 0:
			return redacted, false
		case n == 0:
			i++
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(redacted)
		i += n
		done = i
	}
	if done == 0 {
		return text, true
	}
	b.WriteString(text[done:])
	return b.String(), true
}

// next returns the first place from i on at which a form may begin, -1 without one.
func (s *search) next(i int) int {
	text := s.text
	if i+minFormBytes > len(text) {
		return -1
	}
	gram := uint32(text[i])<<8 | uint32(text[i+1])<<16 | uint32(text[i+2])<<24
	for ; i+minFormBytes <= len(text); i++ {
		gram = gram>>8 | uint32(text[i+minFormBytes-1])<<24
		if bit := s.bit(gram); s.grams[bit/64]>>(bit%64)&1 != 0 {
			return i
		}
	}
	return -1
}

// at returns the length of the longest form at i, 0 without one.
func (s *search) at(i int) int {
	s.rest()
	here := s.text[i:min(i+anchorBytes, len(s.text))]
	// The anchors that are prefixes of here are reached through up from the last anchor that
	// does not sort after here.
	at := int32(sort.Search(len(s.anchors), func(n int) bool { return s.anchors[n].text > here })) - 1
	s.steps -= bits.Len(uint(len(s.anchors)))
	for ; at >= 0; at = s.anchors[at].up {
		a := &s.anchors[at]
		s.steps--
		if !strings.HasPrefix(here, a.text) {
			continue
		}
		for _, long := range s.longer[a.from:a.to] {
			s.steps--
			if i+long.length <= len(s.text) && s.hash(i, long) == long.hash {
				return long.length
			}
			if s.steps < 0 {
				return 0
			}
		}
		if a.whole {
			return len(a.text)
		}
	}
	return 0
}

// rest calls pause if enough steps were taken since the last time.
func (s *search) rest() {
	if s.paused-s.steps >= pauseSteps {
		s.paused = s.steps
		if s.pause != nil {
			s.pause()
		}
	}
}

// hash returns the hash of the text at i that is as long as a form.
func (s *search) hash(i int, long longForm) uint64 {
	if s.hashes == nil {
		s.hashes = make([]uint64, len(s.text)+1)
		for n := range len(s.text) {
			s.hashes[n+1] = add(multiply(s.hashes[n], base), uint64(s.text[n]))
		}
	}
	return subtract(s.hashes[i+long.length], multiply(s.hashes[i], long.power))
}

// unfinished returns the first place in text from which the rest of text, at least minFormBytes,
// is the beginning of a form; len(text) without one. Of a form longer than anchorBytes only the
// anchor is compared, so its rest may differ.
func (m *matcher) unfinished(text string) int {
	s := m.search(text, nil)
	for i := max(0, len(text)-m.longest+1); i+minFormBytes <= len(text); i++ {
		i = s.next(i)
		if i < 0 {
			break
		}
		here := text[i:min(i+anchorBytes, len(text))]
		at := sort.Search(len(m.anchors), func(n int) bool { return m.anchors[n].text >= here })
		if at == len(m.anchors) || !strings.HasPrefix(m.anchors[at].text, here) {
			continue
		}
		a := &m.anchors[at]
		longest := len(a.text)
		if a.to > a.from {
			longest = m.longer[a.from].length
		}
		if i+longest > len(text) {
			return i
		}
	}
	return len(text)
}

// The hash of a text is a polynomial over the field of the prime 2^61-1, at a random base: the
// hash of each part of a text follows from those of its beginnings.
const prime = 1<<61 - 1

var base = rand.Uint64N(prime-512) + 256

func hashOf(text string) uint64 {
	h := uint64(0)
	for n := range len(text) {
		h = add(multiply(h, base), uint64(text[n]))
	}
	return h
}

// power returns base to the power of n.
func power(n int) uint64 {
	p := uint64(1)
	for square := base; n > 0; n /= 2 {
		if n%2 == 1 {
			p = multiply(p, square)
		}
		square = multiply(square, square)
	}
	return p
}

func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return add(low&prime, high<<3|low>>61)
}

func add(a, b uint64) uint64 {
	sum := a + b
	if sum >= prime {
		sum -= prime
	}
	return sum
}

func subtract(a, b uint64) uint64 { return add(a, prime-b) }
