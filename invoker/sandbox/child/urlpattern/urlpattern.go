// Package urlpattern matches URLs with patterns, as the URL Pattern standard says
// (https://urlpattern.spec.whatwg.org/). It parses a pattern string to parts, and these to a
// regular expression for package regex and to a normalized pattern string.
//
//	p, err := New(Input{Text: "https://*.example.com/users/:id"}, options)
//	m, err := p.Match(Input{Text: "https://a.example.com/users/7"}, stop)
//	m.Components[Pathname].Groups   [{id 7 true}]
package urlpattern

import (
	"errors"
	"fmt"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// MaxPattern is the limit of a pattern string, in bytes of UTF-8. A pattern takes about a
// hundred times its length of memory while it is compiled.
const MaxPattern = 1 << 16

// Input is a URLPatternInput: Init if it is not nil, else Text with the URL Base, "" for
// none, to which it is relative.
type Input struct {
	Text    string
	Base    string
	HasBase bool
	Init    Init
}

// Options are the options of a pattern. Stop, which may be nil, is asked from time to time
// whether to end with regex.ErrStopped.
type Options struct {
	IgnoreCase bool
	Stop       func() bool
}

// Pattern is a URL pattern. It is immutable.
type Pattern struct{ components [components]*component }

// New compiles a pattern. Errors: the input is no pattern, a string without a protocol needs
// a base URL, an Init has its own, or the pattern is longer than MaxPattern.
func New(in Input, o Options) (*Pattern, error) {
	init := in.Init
	if init == nil {
		if len(in.Text) > MaxPattern {
			return nil, errTooLong
		}
		var err error
		init, err = parseConstructor([]rune(in.Text), o.Stop)
		if err != nil {
			return nil, err
		}
		if _, ok := init[Protocol]; !ok && !in.HasBase {
			return nil, fmt.Errorf("the relative pattern %q needs a base URL", in.Text)
		}
		if in.HasBase {
			init[BaseURL] = in.Base
		}
	} else if in.HasBase {
		return nil, errBaseTwice
	}
	for _, value := range init {
		if len(value) > MaxPattern {
			return nil, errTooLong
		}
	}
	processed, err := init.process(true)
	if err != nil {
		return nil, err
	}
	for f := Protocol; f < BaseURL; f++ {
		if _, ok := processed[f]; !ok {
			processed[f] = "*"
		}
	}
	if port := processed[Port]; port != "" && port == defaultPorts[processed[Protocol]] {
		processed[Port] = ""
	}
	p := &Pattern{}
	if err := p.compile(processed, o); err != nil {
		return nil, err
	}
	return p, nil
}

var (
	errTooLong   = fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	errBaseTwice = errors.New("an object has its own member baseURL and takes no other base URL")
)

// compile compiles the components in the order of a URL: the protocol decides on the
// encoding of the path.
func (p *Pattern) compile(in Init, o Options) error {
	for f := Protocol; f < BaseURL; f++ {
		e, opts := urlEncoding(f, ""), options{}
		switch f {
		case Hostname:
			opts.delimiter = "."
			if isIPv6(in[f]) {
				e = canonicalIPv6
			}
		case Pathname:
			special, err := p.components[Protocol].matchesSpecial(o.Stop)
			if err != nil {
				return err
			}
			if special {
				opts.delimiter, opts.prefix = "/", "/"
			} else {
				e = canonicalOpaquePathname
			}
		}
		opts.ignoreCase = o.IgnoreCase && f >= Pathname
		c, err := compile(in[f], e, &opts)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		p.components[f] = c
	}
	return nil
}

// isIPv6 reports whether the pattern of a hostname is that of an IPv6 address.
func isIPv6(pattern string) bool {
	if len(pattern) < 2 {
		return false
	}
	return pattern[0] == '[' || (pattern[0] == '{' || pattern[0] == '\\') && pattern[1] == '['
}

// Component returns the normalized pattern string of a component.
func (p *Pattern) Component(f Field) string { return p.components[f].pattern }

// HasRegexpGroups reports whether a component has a regular expression of its own.
func (p *Pattern) HasRegexpGroups() bool {
	for _, c := range p.components {
		if c.hasRegexp {
			return true
		}
	}
	return false
}

// ComponentMatch is the text of a component, and the groups that matched parts of it.
type ComponentMatch struct {
	Input  string
	Groups []Group
}

// Match is a match: a ComponentMatch for each component.
type Match [components]ComponentMatch

// Match matches a URL, and returns nil where it does not match, or is no URL. Errors: those
// of package regex, and an Init with a base URL of its own and another one.
func (p *Pattern) Match(in Input, stop func() bool) (*Match, error) {
	if in.Init != nil && in.HasBase {
		return nil, errBaseTwice
	}
	values := in.values()
	if values == nil {
		return nil, nil
	}
	m := &Match{}
	for f := Protocol; f < BaseURL; f++ {
		groups, ok, err := p.components[f].match(values[f], stop)
		if !ok || err != nil {
			return nil, err
		}
		m[f] = ComponentMatch{values[f], groups}
	}
	return m, nil
}

// values returns the components of a URL, nil for an input that is none.
func (in Input) values() Init {
	if in.Init != nil {
		values, err := in.Init.process(false)
		if err != nil {
			return nil
		}
		return values
	}
	var base *whatwg.Url
	if in.HasBase {
		var err error
		base, err = parser.Parse(in.Base)
		if err != nil {
			return nil
		}
	}
	u, err := parser.BasicParser(in.Text, base, nil, whatwg.NoState)
	if err != nil {
		return nil
	}
	return Init{
		Protocol: u.Scheme(), Username: u.Username(), Password: u.Password(), Hostname: u.Hostname(),
		Port: u.Port(), Pathname: u.Pathname(), Search: u.Query(), Hash: u.Fragment(),
	}
}
