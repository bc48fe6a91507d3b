package statestore

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// MaxKeyBytes bounds a key, so that its escaped form is a valid NATS subject.
const MaxKeyBytes = 1024

// ValidateKey returns an error with CodeInvalid if key is not a valid key.
func ValidateKey(key string) error {
	if strings.HasSuffix(key, ":") {
		return badKey("key", key, "ends with a colon")
	}
	return validate("key", key)
}

// ValidatePrefix returns an error with CodeInvalid if prefix is empty or no valid key
// begins with it.
func ValidatePrefix(prefix string) error { return validate("prefix", prefix) }

func validate(what, key string) error {
	switch {
	case key == "":
		return badKey(what, key, "is empty")
	case len(key) > MaxKeyBytes:
		return api.Errorf(api.CodeInvalid, "the %s has %d bytes; at most %d are allowed", what, len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return badKey(what, key, "is not UTF-8")
	case key[0] == ':' || strings.Contains(key, "::"):
		return badKey(what, key, "has an empty segment")
	case strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return badKey(what, key, "has white space or control characters")
	}
	return nil
}

func badKey(what, key, why string) error {
	return api.Errorf(api.CodeInvalid, "the %s %q %s", what, key, why)
}

// ValidateTTL refuses (CodeInvalid) a negative time-to-live.
func ValidateTTL(ttl time.Duration) error {
	if ttl < 0 {
		return api.Errorf(api.CodeInvalid, "the time-to-live %s is negative", ttl)
	}
	return nil
}

// Milliseconds returns a time-to-live in milliseconds, rounded up so that a short one does
// not become 0, which means none.
func Milliseconds(ttl time.Duration) int64 {
	return int64((ttl + time.Millisecond - 1) / time.Millisecond)
}
