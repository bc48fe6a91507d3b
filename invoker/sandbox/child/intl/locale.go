package intl

import (
	"slices"
	"strings"
	"sync"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// DefaultLocale is the locale of a function that names none.
const DefaultLocale = "en-US"

// Tag is a language tag of BCP 47, canonical.
type Tag struct {
	Language, Script, Region string
	Variants                 []string
	Keywords                 []Keyword // of the extension u, by key
	attributes               []string
	other                    []string // extensions besides u, and private use
}

// Keyword is a keyword of the extension u: in de-u-nu-latn, nu and latn.
type Keyword struct{ Key, Value string }

// alphanumeric reports whether s has only ASCII letters and digits, from least to most of
// them. Of class 'a' it has letters only, of class '0' digits only.
func alphanumeric(s string, class byte, least, most int) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for _, c := range []byte(s) {
		letter, digit := c >= 'a' && c <= 'z', c >= '0' && c <= '9'
		if !letter && !digit || class == 'a' && !letter || class == '0' && !digit {
			return false
		}
	}
	return true
}

// ParseTag reads a language tag, and replaces the parts of it that CLDR calls aliases. ok is
// false if it is not well-formed.
func ParseTag(s string) (t Tag, ok bool) {
	parts := strings.Split(strings.ToLower(s), "-")
	next := func(test func(string) bool) (string, bool) {
		if len(parts) > 0 && test(parts[0]) {
			p := parts[0]
			parts = parts[1:]
			return p, true
		}
		return "", false
	}
	t.Language, ok = next(func(p string) bool {
		return alphanumeric(p, 'a', 2, 3) || alphanumeric(p, 'a', 5, 8)
	})
	if !ok {
		return t, false
	}
	if p, ok := next(func(p string) bool { return alphanumeric(p, 'a', 4, 4) }); ok {
		t.Script = strings.ToUpper(p[:1]) + p[1:]
	}
	if p, ok := next(func(p string) bool { return alphanumeric(p, 'a', 2, 2) || alphanumeric(p, '0', 3, 3) }); ok {
		t.Region = strings.ToUpper(p)
	}
	for {
		p, ok := next(func(p string) bool {
			return alphanumeric(p, 0, 5, 8) || alphanumeric(p, 0, 4, 4) && p[0] <= '9'
		})
		if !ok {
			break
		}
		if slices.Contains(t.Variants, p) {
			return t, false
		}
		t.Variants = append(t.Variants, p)
	}
	if !t.extensions(parts) {
		return t, false
	}
	slices.Sort(t.Variants)
	t.replaceAliases()
	return t, true
}

// extensions reads what follows the variants.
func (t *Tag) extensions(parts []string) bool {
	seen := map[string]bool{}
	for len(parts) > 0 {
		letter := parts[0]
		if len(letter) != 1 || !alphanumeric(letter, 0, 1, 1) || seen[letter] {
			return false
		}
		seen[letter] = true
		end, least := 1, 2
		if letter == "x" {
			end, least = len(parts), 1
		} else {
			for end < len(parts) && len(parts[end]) > 1 {
				end++
			}
		}
		values := parts[1:end]
		parts = parts[end:]
		if len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return !alphanumeric(v, 0, least, 8) }) {
			return false
		}
		if letter == "u" {
			t.keywords(values)
			continue
		}
		t.other = append(t.other, letter+"-"+strings.Join(values, "-"))
	}
	slices.SortStableFunc(t.other, func(a, b string) int {
		if (a[0] == 'x') != (b[0] == 'x') {
			if a[0] == 'x' {
				return 1
			}
			return -1
		}
		return strings.Compare(a[:1], b[:1])
	})
	return true
}

func (t *Tag) keywords(values []string) {
	for len(values) > 0 && len(values[0]) > 2 {
		t.attributes = append(t.attributes, values[0])
		values = values[1:]
	}
	for len(values) > 0 {
		key := values[0]
		end := 1
		for end < len(values) && len(values[end]) > 2 {
			end++
		}
		value := strings.Join(values[1:end], "-")
		values = values[end:]
		if value == "true" || value == "yes" && (key == "kb" || key == "kc" || key == "kh" || key == "kk" || key == "kn") {
			value = ""
		}
		if key == "ca" {
			value = CanonicalCalendar(value)
		}
		if _, again := t.Keyword(key); !again {
			t.Keywords = append(t.Keywords, Keyword{key, value})
		}
	}
	slices.SortFunc(t.Keywords, func(a, b Keyword) int { return strings.Compare(a.Key, b.Key) })
	slices.Sort(t.attributes)
}

// CanonicalCalendar returns the name of a calendar for one of its names.
func CanonicalCalendar(name string) string {
	switch name {
	case "islamicc":
		return "islamic-civil"
	case "ethiopic-amete-alem":
		return "ethioaa"
	}
	return name
}

// Keyword returns the value of a keyword of the extension u.
func (t *Tag) Keyword(key string) (value string, ok bool) {
	for _, k := range t.Keywords {
		if k.Key == key {
			return k.Value, true
		}
	}
	return "", false
}

// SetKeyword sets a keyword of the extension u, or removes it with ok false.
func (t *Tag) SetKeyword(key, value string, ok bool) {
	t.Keywords = slices.DeleteFunc(slices.Clone(t.Keywords), func(k Keyword) bool { return k.Key == key })
	if !ok {
		return
	}
	if value == "true" {
		value = ""
	}
	t.Keywords = append(t.Keywords, Keyword{key, value})
	slices.SortFunc(t.Keywords, func(a, b Keyword) int { return strings.Compare(a.Key, b.Key) })
}

func (t *Tag) replaceAliases() {
	languages := cldr.Table("alias languages")
	for _, key := range []string{t.Base(), t.Language + "-" + t.Script, t.Language + "-" + t.Region, t.Language} {
		to, ok := languages[key]
		if !ok || strings.HasSuffix(key, "-") {
			continue
		}
		parts := strings.Split(to, "-")
		if strings.Contains(key, "-") {
			if strings.Count(key, "-") > 0 && strings.HasSuffix(key, "-"+t.Region) {
				t.Region = ""
			}
			if t.Script != "" && strings.Contains(key, "-"+t.Script) {
				t.Script = ""
			}
		}
		t.Language = parts[0]
		for _, p := range parts[1:] {
			if len(p) == 4 && t.Script == "" {
				t.Script = p
			}
			if len(p) < 4 && t.Region == "" {
				t.Region = p
			}
		}
		break
	}
	if to, ok := cldr.Table("alias scripts")[t.Script]; ok {
		t.Script = to
	}
	if to, ok := cldr.Table("alias territories")[t.Region]; ok && t.Region != "" {
		choices := strings.Fields(to)
		t.Region = choices[0]
		if len(choices) > 1 {
			bare := Tag{Language: t.Language, Script: t.Script}
			if likely := bare.Maximize().Region; slices.Contains(choices, likely) {
				t.Region = likely
			}
		}
	}
}

// Base returns the tag without its extensions.
func (t *Tag) Base() string {
	s := t.Language
	if t.Script != "" {
		s += "-" + t.Script
	}
	if t.Region != "" {
		s += "-" + t.Region
	}
	for _, v := range t.Variants {
		s += "-" + v
	}
	return s
}

// String returns the canonical form of the tag.
func (t *Tag) String() string {
	s := t.Base()
	u := ""
	if len(t.Keywords)+len(t.attributes) > 0 {
		u = "-u"
		for _, a := range t.attributes {
			u += "-" + a
		}
		for _, k := range t.Keywords {
			u += "-" + k.Key
			if k.Value != "" {
				u += "-" + k.Value
			}
		}
	}
	for _, o := range t.other {
		if u != "" && (o[0] > 'u') {
			s += u
			u = ""
		}
		s += "-" + o
	}
	return s + u
}

// Maximize adds the likely script and region of the language.
func (t *Tag) Maximize() Tag {
	likely := cldr.Table("likely")
	for _, key := range []string{
		t.Language + "-" + t.Script + "-" + t.Region, t.Language + "-" + t.Region,
		t.Language + "-" + t.Script, t.Language, "und-" + t.Script,
	} {
		if strings.HasSuffix(key, "-") || strings.Contains(key, "--") {
			continue
		}
		to, ok := likely[key]
		if !ok {
			continue
		}
		parts := strings.Split(to, "-")
		out := *t
		if out.Language == "und" {
			out.Language = parts[0]
		}
		if out.Script == "" {
			out.Script = parts[1]
		}
		if out.Region == "" {
			out.Region = parts[2]
		}
		return out
	}
	return *t
}

// Minimize removes the script and the region that Maximize would add.
func (t *Tag) Minimize() Tag {
	most := t.Maximize()
	for _, try := range [][2]string{{"", ""}, {"", most.Region}, {most.Script, ""}} {
		out := *t
		out.Language, out.Script, out.Region = most.Language, try[0], try[1]
		if m := out.Maximize(); m.Base() == most.Base() {
			return out
		}
	}
	out := *t
	out.Language, out.Script, out.Region = most.Language, most.Script, most.Region
	return out
}

// Matched returns the supported locale for a tag without extensions: itself, or the longest
// beginning of it that is supported. ok is false if there is none.
func Matched(base string) (locale string, ok bool) {
	for {
		if cldr.Supported(base) {
			return base, true
		}
		at := strings.LastIndexByte(base, '-')
		if at < 0 {
			return "", false
		}
		if at >= 2 && base[at-2] == '-' {
			at -= 2
		}
		base = base[:at]
	}
}

// dataLocales caches dataLocale.
var dataLocales sync.Map

// dataLocale returns the locale whose data a supported locale has: zh-TW has those of
// zh-Hant, en-US those of en.
func dataLocale(locale string) string {
	if d, ok := dataLocales.Load(locale); ok {
		return d.(string)
	}
	data := locale
	if t, ok := ParseTag(locale); ok && t.Script == "" && t.Region != "" {
		most := t.Maximize()
		bare := Tag{Language: t.Language}
		if usual := bare.Maximize(); most.Script != usual.Script {
			data = t.Language + "-" + most.Script + "-" + t.Region
		}
	}
	dataLocales.Store(locale, data)
	return data
}

// Resolve chooses the locale for a list of tags, and the keywords of the extension u that
// the caller supports: relevant maps each key to its values, the first is used if the tag
// names none. options have precedence over keywords; "" is no option.
func Resolve(requested []Tag, relevant []string, supports func(locale, key, value string) bool, options map[string]string) (locale, data string, keywords map[string]string) {
	tag := Tag{}
	data = DefaultLocale
	for _, t := range requested {
		if found, ok := Matched(t.Base()); ok {
			data, tag = found, t
			break
		}
	}
	result := Tag{}
	if base, ok := ParseTag(data); ok {
		result = base
	}
	keywords = map[string]string{}
	for _, key := range relevant {
		if value, ok := tag.Keyword(key); ok {
			if value == "" {
				value = "true"
			}
			if supports(data, key, value) {
				keywords[key] = value
				result.SetKeyword(key, value, true)
			}
		}
		if value := options[key]; value != "" && supports(data, key, value) && keywords[key] != value {
			keywords[key] = value
			result.SetKeyword(key, "", false)
		}
	}
	return result.String(), dataLocale(data), keywords
}

// region returns the region of a locale, likely or named.
func region(locale string) string {
	t, _ := ParseTag(locale)
	return t.region()
}

func (t *Tag) region() string {
	if t.Region != "" {
		return t.Region
	}
	return t.Maximize().Region
}

// digitTable is the digits of a numbering system, which replace those of ASCII.
type digitTable struct {
	Name  string
	runes []rune
}

// numbering returns the digits of a numbering system.
func numbering(name string) *digitTable {
	return &digitTable{name, []rune(cldr.Table("digits")[name])}
}

// ValidNumbering reports whether a numbering system has digits that are known.
func ValidNumbering(name string) bool {
	_, ok := cldr.Table("digits")[name]
	return ok
}

// defaultNumbering returns the numbering system of a locale.
func defaultNumbering(data string) string {
	if ns := cldr.Of("number", data).Get("defaultNumberingSystem"); ns != "" {
		return ns
	}
	return "latn"
}

// write replaces the digits of ASCII in s.
func (d *digitTable) write(s string) string {
	if d.Name == "latn" || len(d.runes) != 10 {
		return s
	}
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return d.runes[c-'0']
		}
		return c
	}, s)
}
