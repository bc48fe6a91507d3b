package urlpattern

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
)

// component is the compiled pattern of a component
// (https://urlpattern.spec.whatwg.org/#component).
type component struct {
	pattern   string
	names     []string
	hasRegexp bool

	// prog is the expression. It is nil for the two patterns that most components have, which
	// are matched without it: a fixed text, and if all is set, a wildcard for all texts.
	prog  *regex.Program
	fixed string
	all   bool
}

// compile returns the component of a pattern string. Errors: the pattern, its encoding or
// one of its regular expressions is invalid.
func compile(pattern string, e encode, o *options) (*component, error) {
	parts, err := parseParts([]rune(pattern), o, e)
	if err != nil {
		return nil, err
	}
	c := &component{pattern: generatePattern(parts, o)}
	for i := range parts {
		c.hasRegexp = c.hasRegexp || parts[i].kind == regexpGroup
	}
	if c.simple(parts, o) {
		return c, nil
	}
	expression, names := generateRegexp(parts, o)
	c.names = names
	c.prog, err = regex.Compile(utf16.Encode([]rune(expression)), regex.Flags{UnicodeSets: true, IgnoreCase: o.ignoreCase})
	if err != nil {
		return nil, fmt.Errorf("the pattern %q has an invalid regular expression: %w", c.pattern, err)
	}
	return c, nil
}

// simple reports whether a component is matched without an expression.
func (c *component) simple(parts []part, o *options) bool {
	switch {
	case len(parts) == 0:
		return true
	case len(parts) > 1 || parts[0].modifier != "" || parts[0].prefix+parts[0].suffix != "":
		return false
	case parts[0].kind == fullWildcard:
		c.names, c.all = []string{parts[0].name}, true
		return true
	case parts[0].kind == fixedText && !o.ignoreCase:
		c.fixed = parts[0].value
		return true
	}
	return false
}

// Group is a group of a match: Matched is false if it took no part in it.
type Group struct {
	Name, Value string
	Matched     bool
}

// match returns the groups of a match; ok is false where text does not match. stop is asked
// from time to time whether to end with regex.ErrStopped.
func (c *component) match(text string, stop func() bool) (groups []Group, ok bool, err error) {
	switch {
	case c.all && !strings.ContainsAny(text, "\n\r\u2028\u2029"): // which a dot does not match
		return []Group{{c.names[0], text, true}}, true, nil
	case c.prog == nil:
		return nil, !c.all && text == c.fixed, nil
	}
	units := utf16.Encode([]rune(text))
	found, err := c.prog.Match(units, 0, true, stop)
	if found == nil || err != nil {
		return nil, false, err
	}
	for i, name := range c.names {
		g := Group{Name: name}
		if from, to := found[2*i+2], found[2*i+3]; from >= 0 {
			g.Matched = true
			g.Value = string(utf16.Decode(units[from:to]))
		}
		groups = append(groups, g)
	}
	return groups, true, nil
}

// matchesSpecial reports whether the pattern of a protocol matches a special scheme.
func (c *component) matchesSpecial(stop func() bool) (bool, error) {
	for scheme := range defaultPorts {
		if _, ok, err := c.match(scheme, stop); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
