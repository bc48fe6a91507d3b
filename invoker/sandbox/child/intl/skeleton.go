package intl

import (
	"slices"
	"strings"
)

// The fields of a date's pattern, in the order of a skeleton.
const (
	fieldEra = iota
	fieldYear
	fieldQuarter
	fieldMonth
	fieldWeekOfYear
	fieldWeekOfMonth
	fieldWeekday
	fieldDayOfYear
	fieldWeekdayInMonth
	fieldDay
	fieldPeriod
	fieldHour
	fieldMinute
	fieldSecond
	fieldFraction
	fieldZone
	fieldCount
)

const (
	dateMask = 1<<fieldPeriod - 1
	timeMask = 1<<fieldCount - 1 - dateMask
)

// What kind of a value a letter of a pattern stands for. The distance of two skeletons is
// the sum of the differences of these.
const (
	kindDelta   = 0x10
	kindNumeric = 0x100
	kindNarrow  = -0x101
	kindShorter = -0x102
	kindShort   = -0x103
	kindLong    = -0x104

	extraField   = 0x10000
	missingField = 0x1000
)

// letter is a letter of a pattern, repeated least times or more.
type letter struct {
	char        byte
	field, kind int
	least       int
}

// letters are those of https://www.unicode.org/reports/tr35/tr35-dates.html that skeletons
// have, in the order of ICU's DateTimePatternGenerator.
var letters = []letter{
	{'G', fieldEra, kindShort, 1}, {'G', fieldEra, kindLong, 4}, {'G', fieldEra, kindNarrow, 5},
	{'y', fieldYear, kindNumeric, 1}, {'Y', fieldYear, kindNumeric + kindDelta, 1}, {'u', fieldYear, kindNumeric + 2*kindDelta, 1},
	{'r', fieldYear, kindNumeric + 3*kindDelta, 1},
	{'Q', fieldQuarter, kindNumeric, 1}, {'Q', fieldQuarter, kindShort, 3}, {'Q', fieldQuarter, kindLong, 4},
	{'M', fieldMonth, kindNumeric, 1}, {'M', fieldMonth, kindShort, 3}, {'M', fieldMonth, kindLong, 4}, {'M', fieldMonth, kindNarrow, 5},
	{'L', fieldMonth, kindNumeric + kindDelta, 1}, {'L', fieldMonth, kindShort - kindDelta, 3},
	{'L', fieldMonth, kindLong - kindDelta, 4}, {'L', fieldMonth, kindNarrow - kindDelta, 5},
	{'w', fieldWeekOfYear, kindNumeric, 1}, {'W', fieldWeekOfMonth, kindNumeric, 1},
	{'E', fieldWeekday, kindShort, 1}, {'E', fieldWeekday, kindLong, 4}, {'E', fieldWeekday, kindNarrow, 5}, {'E', fieldWeekday, kindShorter, 6},
	{'c', fieldWeekday, kindNumeric + 2*kindDelta, 1}, {'c', fieldWeekday, kindShort - 2*kindDelta, 3},
	{'c', fieldWeekday, kindLong - 2*kindDelta, 4}, {'c', fieldWeekday, kindNarrow - 2*kindDelta, 5}, {'c', fieldWeekday, kindShorter - 2*kindDelta, 6},
	{'e', fieldWeekday, kindNumeric + kindDelta, 1}, {'e', fieldWeekday, kindShort - kindDelta, 3},
	{'e', fieldWeekday, kindLong - kindDelta, 4}, {'e', fieldWeekday, kindNarrow - kindDelta, 5}, {'e', fieldWeekday, kindShorter - kindDelta, 6},
	{'d', fieldDay, kindNumeric, 1}, {'g', fieldDay, kindNumeric + kindDelta, 1},
	{'D', fieldDayOfYear, kindNumeric, 1}, {'F', fieldWeekdayInMonth, kindNumeric, 1},
	{'a', fieldPeriod, kindShort, 1}, {'a', fieldPeriod, kindLong, 4}, {'a', fieldPeriod, kindNarrow, 5},
	{'b', fieldPeriod, kindShort - kindDelta, 1}, {'b', fieldPeriod, kindLong - kindDelta, 4}, {'b', fieldPeriod, kindNarrow - kindDelta, 5},
	{'B', fieldPeriod, kindShort - 3*kindDelta, 1}, {'B', fieldPeriod, kindLong - 3*kindDelta, 4}, {'B', fieldPeriod, kindNarrow - 3*kindDelta, 5},
	{'H', fieldHour, kindNumeric + 10*kindDelta, 1}, {'k', fieldHour, kindNumeric + 11*kindDelta, 1},
	{'h', fieldHour, kindNumeric, 1}, {'K', fieldHour, kindNumeric + kindDelta, 1},
	{'m', fieldMinute, kindNumeric, 1}, {'s', fieldSecond, kindNumeric, 1}, {'A', fieldSecond, kindNumeric + kindDelta, 1},
	{'S', fieldFraction, kindNumeric, 1},
	{'v', fieldZone, kindShort - 2*kindDelta, 1}, {'v', fieldZone, kindLong - 2*kindDelta, 4},
	{'z', fieldZone, kindShort, 1}, {'z', fieldZone, kindLong, 4},
	{'Z', fieldZone, kindNarrow - kindDelta, 1}, {'Z', fieldZone, kindLong - kindDelta, 4}, {'Z', fieldZone, kindShort - kindDelta, 5},
	{'O', fieldZone, kindShort - kindDelta, 1}, {'O', fieldZone, kindLong - kindDelta, 4},
	{'V', fieldZone, kindShort - kindDelta, 1}, {'V', fieldZone, kindLong - kindDelta, 2},
}

// findLetter returns the row of a field of a pattern, nil for text that is none.
func findLetter(field string) *letter {
	var best *letter
	for i := range letters {
		if l := &letters[i]; l.char == field[0] && (best == nil || l.least <= len(field)) {
			best = l
		}
	}
	return best
}

// token is a field of a pattern, or text between fields.
type token struct {
	text  string
	field bool
}

// tokens splits a pattern.
func tokens(pattern string) []token {
	var out []token
	literal := func(s string) {
		if n := len(out); n > 0 && !out[n-1].field {
			out[n-1].text += s
			return
		}
		out = append(out, token{text: s})
	}
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			if i+1 < len(pattern) && pattern[i+1] == '\'' {
				literal("'")
				i += 2
				continue
			}
			i++
			for i < len(pattern) {
				if pattern[i] == '\'' {
					if i+1 < len(pattern) && pattern[i+1] == '\'' {
						literal("'")
						i += 2
						continue
					}
					i++
					break
				}
				literal(pattern[i : i+1])
				i++
			}
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			end := i + 1
			for end < len(pattern) && pattern[end] == c {
				end++
			}
			out = append(out, token{pattern[i:end], true})
			i = end
		default:
			literal(pattern[i : i+1])
			i++
		}
	}
	return out
}

// join is the inverse of tokens.
func join(list []token) string {
	var b strings.Builder
	for _, t := range list {
		if t.field {
			b.WriteString(t.text)
		} else {
			b.WriteString(quote(t.text))
		}
	}
	return b.String()
}

// quote writes text as a literal of a pattern.
func quote(s string) string {
	letters := strings.ContainsFunc(s, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' })
	s = strings.ReplaceAll(s, "'", "''")
	if letters {
		return "'" + s + "'"
	}
	return s
}

// skeleton is the set of the fields of a pattern, without their order.
type skeleton struct {
	kind, length [fieldCount]int
	char         [fieldCount]byte
	base         [fieldCount]letter
	addedPeriod  bool // the pattern has hours to 12 and did not name the day period
}

func newSkeleton(pattern string) *skeleton {
	s := &skeleton{}
	for _, t := range tokens(pattern) {
		if t.field {
			s.add(t.text)
		}
	}
	if s.length[fieldMinute] > 0 && s.length[fieldFraction] > 0 && s.length[fieldSecond] == 0 {
		s.add("s")
	}
	if s.length[fieldHour] > 0 {
		if c := s.char[fieldHour]; c == 'h' || c == 'K' {
			if s.length[fieldPeriod] == 0 {
				s.add("a")
				s.addedPeriod = true
			}
		} else {
			s.kind[fieldPeriod], s.length[fieldPeriod] = 0, 0
		}
	}
	return s
}

func (s *skeleton) add(field string) {
	l := findLetter(field)
	if l == nil {
		return
	}
	s.char[l.field], s.length[l.field], s.base[l.field] = field[0], len(field), *l
	s.kind[l.field] = l.kind
	if l.kind > 0 {
		s.kind[l.field] += len(field)
	}
}

// mask returns the fields as bits.
func (s *skeleton) mask() int {
	m := 0
	for i, k := range s.kind {
		if k != 0 {
			m |= 1 << i
		}
	}
	return m
}

// text returns the skeleton's fields in order; baseText each with its letter's least length.
func (s *skeleton) text() string {
	var b strings.Builder
	for i, n := range s.length {
		if i == fieldPeriod && s.addedPeriod {
			continue
		}
		b.WriteString(strings.Repeat(string(s.char[i]), n))
	}
	return b.String()
}

func (s *skeleton) baseText() string {
	var b strings.Builder
	for i, n := range s.length {
		if n == 0 || i == fieldPeriod && s.addedPeriod {
			continue
		}
		b.WriteString(strings.Repeat(string(s.base[i].char), s.base[i].least))
	}
	return b.String()
}

// distance returns how far other is from the fields of s that mask selects, and which of them
// it lacks or has besides.
func (s *skeleton) distance(other *skeleton, mask int) (sum, missing, extra int) {
	for i := range s.kind {
		own := s.kind[i]
		if mask&(1<<i) == 0 {
			own = 0
		}
		theirs := other.kind[i]
		switch {
		case own == theirs:
		case own == 0:
			sum += extraField
			extra |= 1 << i
		case theirs == 0:
			sum += missingField
			missing |= 1 << i
		case own > theirs:
			sum += own - theirs
		default:
			sum += theirs - own
		}
	}
	return sum, missing, extra
}

// patternEntry is a pattern that a locale has for a skeleton.
type patternEntry struct {
	base, pattern string
	skeleton      *skeleton
	specified     bool // the skeleton is the locale's, not derived from the pattern
}

// patterns finds the pattern of a locale for any skeleton, as ICU's DateTimePatternGenerator
// does (https://www.unicode.org/reports/tr35/tr35-dates.html#availableFormats_appendItems).
type patterns struct {
	entries    []patternEntry
	glue       [4]string // of a date and a time: full, long, medium, short
	appendItem [fieldCount]string
	appendName [fieldCount]string
	decimal    string
	hour       byte // the letter of the locale's usual hours
	allowed    string
}

// addPattern adds a pattern, for the skeleton key, or for its own if key is "".
func (p *patterns) addPattern(pattern, key string) {
	s := newSkeleton(pattern)
	if key != "" {
		s = newSkeleton(key)
	}
	base, full := s.baseText(), s.text()
	for i := range p.entries {
		e := &p.entries[i]
		if key == "" && e.base == base {
			return
		}
		if e.skeleton.text() == full && e.base == base {
			if key != "" && e.specified {
				return
			}
			e.pattern, e.specified = pattern, key != ""
			return
		}
	}
	p.entries = append(p.entries, patternEntry{base, pattern, s, key != ""})
}

// order sorts the entries as ICU visits them, which decides between two that are as near.
func (p *patterns) order() {
	slices.SortStableFunc(p.entries, func(a, b patternEntry) int {
		return int(a.base[0]) - int(b.base[0])
	})
}

// nearest returns the entry that is nearest to the fields of s that mask selects.
func (p *patterns) nearest(s *skeleton, mask int) (best *patternEntry, missing, extra int) {
	least := 1<<31 - 1
	for i := range p.entries {
		d, m, x := s.distance(p.entries[i].skeleton, mask)
		if d < least || d == least && missing < m {
			best, least, missing, extra = &p.entries[i], d, m, x
			if d == 0 {
				break
			}
		}
	}
	return best, missing, extra
}

// best returns the pattern for a skeleton.
func (p *patterns) best(wanted string) string {
	s := newSkeleton(wanted)
	e, missing, extra := p.nearest(s, -1)
	if missing == 0 && extra == 0 {
		return p.adjust(e.pattern, s, e, false)
	}
	date := p.appended(s, s.mask()&dateMask)
	clock := p.appended(s, s.mask()&timeMask)
	if date == "" || clock == "" {
		return date + clock
	}
	style := 3
	switch s.base[fieldMonth].least {
	case 4:
		style = 1
		if s.length[fieldWeekday] > 0 {
			style = 0
		}
	case 3:
		style = 2
	}
	return fill(p.glue[style], clock, date)
}

// appended returns the pattern for some of the fields of s: the nearest one, and the fields
// that it lacks after it.
func (p *patterns) appended(s *skeleton, mask int) string {
	if mask == 0 {
		return ""
	}
	e, missing, _ := p.nearest(s, mask)
	result := p.adjust(e.pattern, s, e, false)
	const second, fraction = 1 << fieldSecond, 1 << fieldFraction
	for last := 0; missing != 0 && missing != last; {
		if missing&(second|fraction) == fraction && mask&(second|fraction) == second|fraction {
			result = p.adjust(result, s, e, true)
			missing &^= fraction
			continue
		}
		before := missing
		last = missing
		e, missing, _ = p.nearest(s, missing)
		more := p.adjust(e.pattern, s, e, false)
		found := before &^ missing
		top := 0
		for i := range fieldCount {
			if found&(1<<i) != 0 {
				top = i
			}
		}
		if item := p.appendItem[top]; item != "" {
			result = fill(item, result, more, quote(p.appendName[top]))
		}
	}
	return result
}

// fill replaces {0}, {1} and {2} in a pattern.
func fill(pattern string, values ...string) string {
	list := make([]string, 0, 6)
	for i, v := range values {
		list = append(list, "{"+string(rune('0'+i))+"}", v)
	}
	return strings.NewReplacer(list...).Replace(pattern)
}

// adjust sets the fields of a pattern to the widths that s asks for. With fraction, it appends
// the fraction to the seconds.
func (p *patterns) adjust(pattern string, s *skeleton, e *patternEntry, fraction bool) string {
	list := tokens(pattern)
	for i := range list {
		if !list[i].field {
			continue
		}
		field := list[i].text
		l := findLetter(field)
		if l == nil {
			continue
		}
		if fraction && l.field == fieldSecond {
			list[i].text += quote(p.decimal) + strings.Repeat("S", s.length[fieldFraction])
			continue
		}
		if s.kind[l.field] == 0 {
			continue
		}
		list[i].text = p.adjustField(field, l, s, e)
	}
	return join(list)
}

func (p *patterns) adjustField(field string, l *letter, s *skeleton, e *patternEntry) string {
	char, length := s.char[l.field], s.length[l.field]
	if char == 'E' && length < 3 {
		length = 3
	}
	width := length
	switch {
	case l.field == fieldMinute || l.field == fieldSecond:
		width = len(field)
	case e.specified && char != 'c' && char != 'e':
		own := e.skeleton.length[l.field]
		isNumber, wantsNumber := l.kind > 0, s.kind[l.field] > 0
		if own == length || isNumber != wantsNumber {
			width = len(field)
		}
	}
	c := field[0]
	if l.field != fieldHour && l.field != fieldMonth && l.field != fieldWeekday && (l.field != fieldYear || char == 'Y') {
		c = char
	}
	if l.field == fieldHour {
		switch {
		case char == p.hour:
			c = p.hour
		case c == 'h' && p.hour == 'K', c == 'H' && p.hour == 'k', c == 'k' && p.hour == 'H', c == 'K' && p.hour == 'h':
			c = p.hour
		}
	}
	return strings.Repeat(string(c), width)
}
