package domain

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/codesous/sous/api"
)

// MaxLength is the most bytes of a domain: the name of its record must fit into the 253 bytes of
// a name in the DNS.
const MaxLength = 253 - len(ChallengeLabel) - 1

// maxInput bounds the text that Parse reads. The ASCII form of a name can be shorter.
const maxInput = 4 * 253

// names maps a name as browsers do for a URL, so that the result equals the Host that they send.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(true), idna.VerifyDNSLength(true), idna.CheckHyphens(false))

// Parse returns the name of a domain in the form in which it is stored and compared: in lower
// case, an international name in its ASCII form (xn--), without a final dot. CodeValidationName
// for a text that is not such a name: an address, a single label, localhost, a name with a port,
// a wildcard.
func Parse(s string) (string, error) {
	if len(s) > maxInput {
		return "", nameError(s, "must have at most 237 bytes")
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return "", nameError(s, "must be a name, not an address")
	}
	name, err := names.ToASCII(strings.TrimSuffix(s, "."))
	if err != nil || !utf8.ValidString(s) { // invalid bytes have an ASCII form
		return "", nameError(s, "must be the name of a domain such as shop.example.com, without scheme, port, path and wildcard")
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) < 2:
		return "", nameError(s, "must have a dot, as in shop.example.com")
	case len(name) > MaxLength:
		return "", nameError(s, "must have at most 237 bytes")
	case numeric(last):
		return "", nameError(s, "must be a name, not an address")
	case last == "localhost":
		return "", nameError(s, "must not be a name of this machine")
	}
	for _, label := range labels {
		if !isLabel(label) {
			return "", nameError(s, "must have labels of letters, digits and inner hyphens")
		}
	}
	return name, nil
}

// isLabel reports whether s is a label of a host: lower-case letters, digits and inner hyphens.
func isLabel(s string) bool {
	return s != "" && len(s) <= 63 && s[0] != '-' && s[len(s)-1] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// numeric reports whether browsers take a name with this last label for an IPv4 address.
func numeric(last string) bool {
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func nameError(value, rule string) *api.Error {
	if len(value) > 80 {
		value = value[:80] + "…"
	}
	return api.Errorf(api.CodeValidationName, "domain %q %s", value, rule).
		WithFields(api.FieldError{Path: "domain", Message: rule})
}
