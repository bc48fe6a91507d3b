package urlpattern

import (
	"fmt"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// Field names a component of a URL, or the base URL of an Init.
type Field int

// The fields of an Init, the components in the order of a URL.
const (
	Protocol Field = iota
	Username
	Password
	Hostname
	Port
	Pathname
	Search
	Hash
	BaseURL
)

// components is the number of components.
const components = int(BaseURL)

// String returns the name of the field in a URLPatternInit.
func (f Field) String() string {
	return [...]string{"protocol", "username", "password", "hostname", "port", "pathname", "search", "hash", "baseURL"}[f]
}

// Init is a URLPatternInit: the fields that exist.
type Init map[Field]string

// hasNone reports whether none of the fields exists.
func (in Init) hasNone(fields ...Field) bool {
	for _, f := range fields {
		if _, ok := in[f]; ok {
			return false
		}
	}
	return true
}

// process completes a URLPatternInit by its base URL
// (https://urlpattern.spec.whatwg.org/#process-a-urlpatterninit). The values of a pattern
// stay as they are; those of a URL are canonicalized.
func (in Init) process(isPattern bool) (Init, error) {
	out := Init{}
	if !isPattern {
		for f := Protocol; f < BaseURL; f++ {
			out[f] = ""
		}
	}
	var base *whatwg.Url
	if text, ok := in[BaseURL]; ok {
		var err error
		base, err = parser.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("invalid base URL %q", text)
		}
		in.inherit(out, base, isPattern)
	}
	for f, value := range in {
		if f != BaseURL {
			out[f] = value
		}
	}
	if value, ok := in[Protocol]; ok {
		out[Protocol] = strings.TrimSuffix(value, ":")
	}
	if value, ok := in[Search]; ok {
		out[Search] = strings.TrimPrefix(value, "?")
	}
	if value, ok := in[Hash]; ok {
		out[Hash] = strings.TrimPrefix(value, "#")
	}
	if value, ok := in[Pathname]; ok && base != nil && !base.OpaquePath() && !isAbsolute(value, isPattern) {
		path := baseText(base.Pathname(), isPattern)
		out[Pathname] = path[:strings.LastIndexByte(path, '/')+1] + value
	}
	if isPattern {
		return out, nil
	}
	return out, in.canonicalize(out)
}

// inherit copies the components of a base URL. One that exists keeps those from being
// inherited that are more specific, and a pattern inherits no user name and password.
func (in Init) inherit(out Init, base *whatwg.Url, isPattern bool) {
	set := func(f Field, value string, unless ...Field) {
		if in.hasNone(unless...) {
			out[f] = baseText(value, isPattern)
		}
	}
	set(Protocol, base.Scheme(), Protocol)
	if !isPattern {
		set(Username, base.Username(), Protocol, Hostname, Port, Username)
		set(Password, base.Password(), Protocol, Hostname, Port, Username, Password)
	}
	set(Hostname, base.Hostname(), Protocol, Hostname)
	set(Port, base.Port(), Protocol, Hostname, Port)
	set(Pathname, base.Pathname(), Protocol, Hostname, Port, Pathname)
	set(Search, base.Query(), Protocol, Hostname, Port, Pathname, Search)
	set(Hash, base.Fragment(), Protocol, Hostname, Port, Pathname, Search, Hash)
}

// baseText returns a text of a base URL as a pattern has it, or as a URL has it.
func baseText(text string, isPattern bool) string {
	if isPattern {
		return escapePattern(text)
	}
	return text
}

// isAbsolute reports whether a path does not continue that of a base URL.
func isAbsolute(path string, isPattern bool) bool {
	return strings.HasPrefix(path, "/") || isPattern && (strings.HasPrefix(path, `\/`) || strings.HasPrefix(path, "{/"))
}

// canonicalize makes the values that in has those of a URL.
func (in Init) canonicalize(out Init) error {
	for f := Protocol; f < BaseURL; f++ {
		if _, ok := in[f]; !ok {
			continue
		}
		var err error
		out[f], err = urlEncoding(f, out[Protocol])(out[f])
		if err != nil {
			return err
		}
	}
	return nil
}

// urlEncoding returns the encoding of a component of a URL with that protocol.
func urlEncoding(f Field, protocol string) encode {
	switch f {
	case Protocol:
		return canonicalProtocol
	case Hostname:
		return canonicalHostname
	case Port:
		return func(value string) (string, error) { return canonicalPort(value, protocol) }
	case Pathname:
		if protocol != "" && !isSpecial(protocol) {
			return canonicalOpaquePathname
		}
		return canonicalPathname
	case Search:
		return canonicalSearch
	case Hash:
		return canonicalHash
	default:
		return canonicalUserinfo
	}
}
