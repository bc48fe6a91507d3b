package api

import (
	"unicode/utf8"
)

// Bounds of secrets.
const (
	MaxSecrets         = 1000     // of a namespace
	MaxSecretBytes     = 32 << 10 // in a value
	MaxVersionSecrets  = 100      // that a version names
	maxSecretNameBytes = 64
)

// SecretPattern is the pattern of names of secrets, SecretRule the same in words. It allows no
// colon and no slash.
const (
	SecretPattern = `[A-Za-z_][A-Za-z0-9_.-]{0,63}`
	SecretRule    = "must have 1 to 64 characters: A to Z, a to z, 0 to 9, _, . and -, and begin with a letter or _"
)

// Secret is the metadata of a secret. It never has the value, which storage/secrets seals
// and stores apart.
type Secret struct {
	Name        string `json:"name"`
	Version     int64  `json:"version"` // increases with every change, also after a deletion
	CreatedAtMS int64  `json:"created_at_ms"`
	UpdatedAtMS int64  `json:"updated_at_ms"`
	UpdatedBy   string `json:"updated_by,omitempty"` // the id of the key that wrote the value
}

// RewrapReport is the progress of one call that re-encrypts secrets with the current key.
type RewrapReport struct {
	Examined   int `json:"examined"`
	Rewrapped  int `json:"rewrapped"`
	Unreadable int `json:"unreadable"` // damaged, or sealed by a missing key
	// NextCursor continues with the next call; null at the end.
	NextCursor *string `json:"next_cursor"`
}

// ValidateSecretName returns CodeValidationName unless s matches SecretPattern.
func ValidateSecretName(s string) error {
	ok := s != "" && len(s) <= maxSecretNameBytes && (s[0] < '0' || s[0] > '9') && s[0] != '.' && s[0] != '-'
	for i := 0; ok && i < len(s); i++ {
		c := s[i] | 0x20 // a letter in lower case; the signs below are told apart by s[i]
		ok = c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9' || s[i] == '_' || s[i] == '.' || s[i] == '-'
	}
	if !ok {
		return nameError("secret", s, SecretRule)
	}
	return nil
}

// ValidateSecretValue returns CodeInvalid unless v is UTF-8 text of 1 to
// MaxSecretBytes. The error does not contain any part of v.
func ValidateSecretValue(v string) error {
	var rule string
	switch {
	case v == "" || len(v) > MaxSecretBytes:
		rule = "must have from 1 byte to " + SizeText(MaxSecretBytes)
	case !utf8.ValidString(v):
		rule = "must be UTF-8"
	default:
		return nil
	}
	return Errorf(CodeInvalid, "value %s", rule).WithFields(FieldError{Path: "value", Message: rule})
}
