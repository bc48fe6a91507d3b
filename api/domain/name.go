package domain

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/codesous/sous/api"
)

// MaxLength is the maximum length of a domain, in bytes: the name of its record must fit into the
// 253 bytes of a name in the DNS.
const MaxLength = 253 - len(ChallengeLabel) - 1

// tooLong is the rule of MaxLength.
var tooLong = fmt.Sprintf("must have at most %d bytes", MaxLength)

// maxInput bounds the text that Parse reads. The ASCII form of a name can be shorter.
const maxInput = 4 * 253

// profile maps a name as browsers do for a URL, so that the result equals the Host that they send.
// Parse checks the lengths, for errors that name them.
var profile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(true), idna.CheckHyphens(false))

// Parse returns the name of a domain in the form in which it is stored and compared: in lower
// case, an international name in its ASCII form (xn--), without a final dot. CodeValidationName
// for a text that is not such a name: an address, a single label, localhost, a name with a port,
// a wildcard.
func Parse(s string) (string, error) {
	if len(s) > maxInput {
		return "", nameError(s, tooLong)
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return "", nameError(s, "must be a name, not an address")
	}
	name, err := profile.ToASCII(strings.TrimSuffix(s, "."))
	if err != nil || !utf8.ValidString(s) { // invalid bytes have an ASCII form
		return "", nameError(s, "must be the name of a domain such as shop.example.com, without a scheme, port, path or wildcard")
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) < 2:
		return "", nameError(s, "must have a dot, as in shop.example.com")
	case len(name) > MaxLength:
		return "", nameError(s, tooLong)
	case numeric(last):
		return "", nameError(s, "must be a name, not an address")
	case last == "localhost":
		return "", nameError(s, "must not end in localhost")
	}
	for _, label := range labels {
		if !isLabel(label) {
			return "", nameError(s, "must have labels of 1 to 63 letters, digits and inner hyphens")
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
		value = api.TruncateText(value, 80) + "…"
	}
	return api.Errorf(api.CodeValidationName, "domain %q %s", value, rule).
		WithFields(api.FieldError{Path: "domain", Message: rule})
}
