package api

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
)

// The patterns of docs/api.md. A name never holds a colon, a slash or a brace,
// so no name can leave its place in a store key.
const (
	TenantPattern = `t_[a-z0-9]{6,32}`
	NamePattern   = `[a-z][a-z0-9_-]{2,63}`
	AliasPattern  = `[a-z][a-z0-9_-]{1,31}`
)

// The patterns are matched by hand: names are checked on every call, and a
// sandbox child, which links this package, would compile expressions at its start.

// isTail says whether s holds from least to most bytes, all of them lower-case
// letters, digits or one of more.
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

// isName says whether s is a letter and from least to most bytes of a name.
func isName(s string, least, most int) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && isTail(s[1:], least, most, "_-")
}

// MaxVersion bounds version numbers so that they stay exact in every JSON reader.
const MaxVersion = 1<<53 - 1

const versionRule = "must be a positive integer without sign or leading zero"

const (
	draftPrefix   = "drf_"
	requestPrefix = "req_"
)

// nameError refuses value; rule says what it must be or match.
func nameError(field, value, rule string) *Error {
	if len(value) > 80 {
		value = value[:80] + "…"
	}
	return Errorf(CodeValidationName, "%s %q %s", field, value, rule).
		WithFields(FieldError{Path: field, Message: rule})
}

// ValidateTenant refuses (CodeValidationName) what is not a tenant's name.
func ValidateTenant(s string) error {
	if rest, ok := strings.CutPrefix(s, "t_"); !ok || !isTail(rest, 6, 32, "") {
		return nameError("tenant", s, "must match "+TenantPattern)
	}
	return nil
}

// ValidateName refuses (CodeValidationName) what is not a name of a namespace,
// function, schedule or worker; field says which in the error.
func ValidateName(field, s string) error {
	if !isName(s, 2, 63) {
		return nameError(field, s, "must match "+NamePattern)
	}
	return nil
}

// ValidateAlias refuses (CodeValidationName) what is not an alias.
func ValidateAlias(s string) error {
	if !isName(s, 1, 31) {
		return nameError("alias", s, "must match "+AliasPattern)
	}
	return nil
}

// ParseVersion reads a version number (1 to MaxVersion, no sign, no leading zero).
func ParseVersion(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > MaxVersion || strconv.FormatInt(n, 10) != s {
		return 0, nameError("version", s, versionRule)
	}
	return n, nil
}

// ParseRef reads the last part of a function's URL: a version number or an alias.
func ParseRef(s string) (Ref, error) {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		n, err := ParseVersion(s)
		return Ref{Version: n}, err
	}
	return Ref{Alias: s}, ValidateAlias(s)
}

// ValidateActivationID refuses (CodeValidationName) what is not a UUID in its
// canonical lower-case form.
func ValidateActivationID(s string) error {
	if id, err := uuid.Parse(s); err != nil || id.String() != s {
		return nameError("activation_id", s, "must be a UUID in lower case")
	}
	return nil
}

// NewDraftID makes the id of a draft: its ULID carries nowMS.
func NewDraftID(nowMS int64) string { return newID(draftPrefix, nowMS) }

// NewRequestID makes the id of a request.
func NewRequestID(nowMS int64) string { return newID(requestPrefix, nowMS) }

func newID(prefix string, nowMS int64) string {
	// ulid.DefaultEntropy is safe for concurrent use.
	return prefix + ulid.MustNew(uint64(nowMS), ulid.DefaultEntropy()).String()
}

// DraftTimeMS is the time at which a draft's id was made, in milliseconds.
// What is not a draft id is refused with CodeValidationName.
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

// DerivedActivationID is the activation id of an idempotent invoke: the UUIDv5
// of tenant, namespace, function, ref and the caller's key.
func DerivedActivationID(tenant, namespace, function string, ref Ref, key string) string {
	parts := []string{tenant, namespace, function, ref.String(), key}
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p), p)
	}
	return uuid.NewSHA1(idSpace, []byte(b.String())).String()
}
