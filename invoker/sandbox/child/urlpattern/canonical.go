package urlpattern

import (
	"fmt"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// encode is an encoding callback: it validates a fixed text of a component and returns it as
// a URL has it (https://urlpattern.spec.whatwg.org/#canon-encoding-callbacks).
type encode func(value string) (string, error)

// defaultPorts are the special schemes and their default ports
// (https://url.spec.whatwg.org/#special-scheme).
var defaultPorts = map[string]string{"ftp": "21", "file": "", "http": "80", "https": "443", "ws": "80", "wss": "443"}

func isSpecial(scheme string) bool {
	_, ok := defaultPorts[scheme]
	return ok
}

var parser = whatwg.NewParser()

// override parses value as the part of a URL that state names: of base, a URL.
func override(base, value string, state whatwg.State) (*whatwg.Url, error) {
	u, err := parser.Parse(base)
	if err != nil {
		return nil, err
	}
	if _, err := parser.BasicParser(value, nil, u, state); err != nil {
		return nil, err
	}
	return u, nil
}

const dummyURL = "https://dummy.invalid/"

func canonicalProtocol(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	u, err := parser.Parse(value + "://dummy.invalid/")
	if err != nil {
		return "", fmt.Errorf("invalid protocol %q", value)
	}
	return u.Scheme(), nil
}

func canonicalUserinfo(value string) (string, error) {
	return parser.PercentEncodeString(value, whatwg.UserInfoPercentEncodeSet), nil
}

// canonicalHostname stops at the character that ends the host in a URL. The parser accepts
// a colon before that, with which the standard fails.
func canonicalHostname(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	host := strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(value)
	if end := strings.IndexAny(host, `/?#\`); end >= 0 {
		host = host[:end]
	}
	if host == "" || hasPort(host) {
		return "", fmt.Errorf("invalid hostname %q", value)
	}
	u, err := override(dummyURL, host, whatwg.StateHostname)
	if err != nil {
		return "", fmt.Errorf("invalid hostname %q", value)
	}
	return u.Hostname(), nil
}

// hasPort reports whether a host has a colon outside of brackets.
func hasPort(host string) bool {
	inside := false
	for _, c := range host {
		switch c {
		case '[':
			inside = true
		case ']':
			inside = false
		case ':':
			if !inside {
				return true
			}
		}
	}
	return false
}

// canonicalIPv6 accepts a part of an address in brackets.
func canonicalIPv6(value string) (string, error) {
	for _, c := range value {
		if !strings.ContainsRune("0123456789abcdefABCDEF[]:", c) {
			return "", fmt.Errorf("invalid IPv6 hostname %q", value)
		}
	}
	return strings.ToLower(value), nil
}

// canonicalPort takes a port of a URL with that scheme, whose default port becomes "". A
// pattern is not encoded for a scheme: the port of {port: "443*"} has no default.
func canonicalPort(value, scheme string) (string, error) {
	if value == "" {
		return "", nil
	}
	if !isSpecial(scheme) || scheme == "file" {
		scheme = "x" // without a default port
	}
	u, err := override(scheme+"://dummy.invalid/", value, whatwg.StatePort)
	if err != nil {
		return "", fmt.Errorf("invalid port %q", value)
	}
	return u.Port(), nil
}

// canonicalPathname takes a part of a path. If it does not begin with a slash, one is put in
// front, with a character that keeps a leading dot from being a segment.
func canonicalPathname(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	lead := ""
	if value[0] != '/' {
		lead = "/-"
	}
	u, err := parser.Parse(dummyURL)
	if err != nil {
		return "", err
	}
	u.SetPathname(lead + value)
	path := u.Pathname()
	return path[min(len(lead), len(path)):], nil // shorter if the value leaves its own root
}

func canonicalOpaquePathname(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	u, err := override("x:", value, whatwg.StateOpaquePath)
	if err != nil {
		return "", fmt.Errorf("invalid pathname %q", value)
	}
	return u.Pathname(), nil
}

func canonicalSearch(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	u, err := override(dummyURL, value, whatwg.StateQuery)
	if err != nil {
		return "", fmt.Errorf("invalid search %q", value)
	}
	return u.Query(), nil
}

func canonicalHash(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	u, err := override(dummyURL, value, whatwg.StateFragment)
	if err != nil {
		return "", fmt.Errorf("invalid hash %q", value)
	}
	return u.Fragment(), nil
}
