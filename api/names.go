package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
)

// The patterns of names, which docs/api.md lists, and rules that state them in words. A name
// contains no colon, slash or brace, so that it is always one segment of a store key.
const (
	TenantPattern = `t_[a-z0-9]{6,32}`
	NamePattern   = `[a-z][a-z0-9_-]{0,63}`
	AliasPattern  = `[a-z][a-z0-9_-]{0,31}`

	TenantRule     = "must be t_ and 6 to 32 more characters: a to z and 0 to 9"
	NameRule       = "must have 1 to 64 " + nameCharacters
	AliasRule      = "must have 1 to 32 " + nameCharacters
	nameCharacters = "characters: a to z, 0 to 9, _ and -, and begin with a letter"
	refRule        = "must have a version from 1 on, or an alias, which " + AliasRule
)

// The patterns are matched by hand: names are checked on every call, and a sandbox
// child, which links this package, would compile regular expressions at its start.

// isTail reports whether s has from least to most bytes, all of them lower-case
// letters, digits or bytes of more.
func isTail(s string, least, most int, more string) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// isName reports whether s is a lower-case letter and at most most further bytes of a name.
func isName(s string, most int) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && isTail(s[1:], 0, most, "_-")
}

// MaxVersion bounds version numbers so that they stay exact in every JSON reader.
const MaxVersion = 1<<53 - 1

const versionRule = "must be a positive integer without sign or leading zero"

const (
	draftPrefix   = "drf_"
	requestPrefix = "req_"
)

// nameError returns CodeValidationName for value; rule describes valid values.
func nameError(field, value, rule string) *Error {
	if len(value) > 80 {
		value = value[:80] + "…"
	}
	return Errorf(CodeValidationName, "%s %q %s", field, value, rule).
		WithFields(FieldError{Path: field, Message: rule})
}

// ValidateTenant returns CodeValidationName unless s matches TenantPattern.
func ValidateTenant(s string) error {
	if rest, ok := strings.CutPrefix(s, "t_"); !ok || !isTail(rest, 6, 32, "") {
		return nameError("tenant", s, TenantRule)
	}
	return nil
}

// ValidateName returns CodeValidationName unless s matches NamePattern, the pattern for
// names of namespaces, functions, schedules and workers. The error names field.
func ValidateName(field, s string) error {
	if !isName(s, 63) {
		return nameError(field, s, NameRule)
	}
	return nil
}

// ValidateAlias returns CodeValidationName unless s matches AliasPattern.
func ValidateAlias(s string) error {
	if !isName(s, 31) {
		return nameError("alias", s, AliasRule)
	}
	return nil
}

// ParseVersion parses a version number: 1 to MaxVersion, no sign, no leading zero. It
// returns CodeValidationName for other texts.
func ParseVersion(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > MaxVersion || strconv.FormatInt(n, 10) != s {
		return 0, nameError("version", s, versionRule)
	}
	return n, nil
}

// ParseRef parses the last segment of a function's URL: a version number or an alias. It
// returns CodeValidationName for other texts.
func ParseRef(s string) (Ref, error) {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		n, err := ParseVersion(s)
		return Ref{Version: n}, err
	}
	return Ref{Alias: s}, ValidateAlias(s)
}

// ValidateActivationID returns CodeValidationName unless s is a UUID in canonical lower
// case.
func ValidateActivationID(s string) error {
	if id, err := uuid.Parse(s); err != nil || id.String() != s {
		return nameError("activation_id", s, "must be a UUID in lower case")
	}
	return nil
}

// NewDraftID returns a new id of a draft. Its ULID contains nowMS; see DraftTimeMS.
func NewDraftID(nowMS int64) string { return newID(draftPrefix, nowMS) }

// NewRequestID returns a new id of a request.
func NewRequestID(nowMS int64) string { return newID(requestPrefix, nowMS) }

// newID returns prefix and a ULID: 48 bits of time and 80 random bits, which sort by time.
// nowMS must not be negative.
func newID(prefix string, nowMS int64) string {
	// ulid.DefaultEntropy is safe for concurrent use.
	return prefix + ulid.MustNew(uint64(nowMS), ulid.DefaultEntropy()).String()
}

// DraftTimeMS returns the time at which a draft's id was created, in milliseconds. It
// returns CodeValidationName if id is not the id of a draft.
func DraftTimeMS(id string) (int64, error) {
	rest, ok := strings.CutPrefix(id, draftPrefix)
	if !ok {
		return 0, nameError("draft_id", id, "must be "+draftPrefix+" and a ULID")
	}
	u, err := ulid.ParseStrict(rest)
	if err != nil || u.String() != rest {
		return 0, nameError("draft_id", id, "must be "+draftPrefix+" and a ULID")
	}
	return int64(u.Time()), nil
}

// idSpace is the namespace of every UUIDv5 that the platform derives.
var idSpace = uuid.MustParse("6f8a7a50-5c1e-5d0f-9a35-0d5b0cde5005")

// DerivedActivationID returns the activation id of an idempotent invocation: the UUIDv5
// of tenant, namespace, function, ref and the caller's key. The client can compute it before
// the call, and two replicas that get the same call compute the same. The parts are hashed
// with their lengths, as in 8:t_acme017:default5:greet4:prod2:k1. The alias is part of it,
// not the version behind it: a repeat after a deployment is still a repeat.
func DerivedActivationID(tenant, namespace, function string, ref Ref, key string) string {
	return derivedID(tenant, namespace, function, ref.String(), key)
}

// derivedID hashes parts with their lengths, so that no two lists of parts are one text.
func derivedID(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p), p)
	}
	return uuid.NewSHA1(idSpace, []byte(b.String())).String()
}
