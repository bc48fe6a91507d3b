package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

// Key is the record of an API key. The key's text is shown once, when it is created, and
// never stored. An empty Namespace means all of the tenant; ExpiresAtMS 0 means never.
// CreatedBy is the id of the key that created it.
type Key struct {
	ID          string   `json:"id"`
	Tenant      string   `json:"tenant"`
	Name        string   `json:"name"`
	Roles       []string `json:"roles"`
	Namespace   string   `json:"namespace,omitempty"`
	CreatedAtMS int64    `json:"created_at_ms"`
	CreatedBy   string   `json:"created_by,omitempty"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty"`
}

// NewKey is the response to the creation of a key, the only one that has its text.
type NewKey struct {
	Key
	Secret string `json:"key"`
}

// AllTenants is the Key.Tenant of an administrator of the whole platform.
const AllTenants = "*"

// The built-in roles of keys.
const (
	RoleAdmin     = "admin"
	RoleDeveloper = "developer"
	RoleOperator  = "operator"
	RoleInvoker   = "invoker"
	RoleWorker    = "worker" // fetches and settles jobs
	RoleViewer    = "viewer"
	RoleApprover  = "approver" // votes on approvals
	// RolePrefix begins the roles that a tenant defines. They grant nothing by
	// themselves; a version's Authz may name them.
	RolePrefix = "role:"
)

// Limits of keys.
const (
	MaxKeys          = 1000 // live ones of a tenant
	MaxKeyRoles      = 16
	MaxKeyNameLength = 64 // characters
)

const (
	// A key's text is keyPrefix, a ULID, an underscore, and 256 random bits in base64url:
	// keyLength is 5 + 26 + 1 + 43 = 75 bytes.
	keyPrefix   = "sous_"
	keyIDPrefix = "key_"
	secretBytes = 32
	keyLength   = len(keyPrefix) + ulid.EncodedSize + len("_") + (secretBytes*8+5)/6
)

// secretText encodes the secret part of a key. It is strict, so that no two texts are
// the same key.
var secretText = base64.RawURLEncoding.Strict()

// NewKeySecret returns the text and the id of a new key. entropy must be an
// unpredictable source such as crypto/rand.Reader; it is an error if it ends. Both share a
// ULID, so a text names its record, but the id does not reveal the text:
//
//	sous_01M7ZBPKNXHSGMWVY24PRT2QCX_ and 43 characters for 256 random bits
//	key_01M7ZBPKNXHSGMWVY24PRT2QCX
func NewKeySecret(nowMS int64, entropy io.Reader) (text, id string, err error) {
	u, err := ulid.New(uint64(nowMS), entropy)
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	secret := make([]byte, secretBytes)
	if _, err := io.ReadFull(entropy, secret); err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	return keyPrefix + u.String() + "_" + secretText.EncodeToString(secret), keyIDPrefix + u.String(), nil
}

// LooksLikeKey reports whether text has the form of a key. Such a text is kept from logs
// and functions, and only such a text is looked up in the store.
func LooksLikeKey(text string) bool {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok || len(text) != keyLength || rest[ulid.EncodedSize] != '_' {
		return false
	}
	if _, err := ulid.ParseStrict(rest[:ulid.EncodedSize]); err != nil {
		return false
	}
	_, err := secretText.DecodeString(rest[ulid.EncodedSize+1:])
	return err == nil
}

// ContainsKey reports whether text contains a key.
func ContainsKey(text string) bool { return findKey(text) >= 0 }

// WithoutKeys returns text with every key in it shortened to its prefix, for logs,
// errors and the audit: people paste keys where a name or an id belongs.
func WithoutKeys(text string) string {
	at := findKey(text)
	if at < 0 {
		return text
	}
	return text[:at+len(keyPrefix)] + "…" + WithoutKeys(text[at+keyLength:])
}

// findKey returns the index of the first key in text, -1 for none.
func findKey(text string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], keyPrefix)
		if at < 0 {
			return -1
		}
		at += from
		if end := at + keyLength; end <= len(text) && LooksLikeKey(text[at:end]) {
			return at
		}
		from = at + len(keyPrefix)
	}
}

// KeyDigest returns the SHA-256 of a key's text in hexadecimal, under which its record is
// stored.
func KeyDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// KeyTimeMS returns the time at which a key's id was created. It returns
// CodeValidationName if id is not the id of a key.
func KeyTimeMS(id string) (int64, error) {
	rest, ok := strings.CutPrefix(id, keyIDPrefix)
	if !ok {
		return 0, nameError("key", id, "must be "+keyIDPrefix+" and a ULID")
	}
	u, err := ulid.ParseStrict(rest)
	if err != nil {
		return 0, nameError("key", id, "must be "+keyIDPrefix+" and a ULID")
	}
	return int64(u.Time()), nil
}

// ValidateRole returns CodeInvalid unless role is a built-in role, or RolePrefix and
// 1 to 59 of a-z, 0-9, _ and -.
func ValidateRole(role string) error {
	switch role {
	case RoleAdmin, RoleDeveloper, RoleOperator, RoleInvoker, RoleWorker, RoleViewer, RoleApprover:
		return nil
	}
	if own, ok := strings.CutPrefix(role, RolePrefix); ok && isTail(own, 1, 59, "_-") {
		return nil
	}
	const rule = "must be admin, developer, operator, invoker, worker, viewer, or role: and a name of your own"
	return Errorf(CodeInvalid, "role %q %s", role, rule).WithFields(FieldError{Path: "roles", Message: rule})
}

// ValidateKeyName returns CodeInvalid unless name has 1 to MaxKeyNameLength
// characters, no control characters and no key.
func ValidateKeyName(name string) error {
	var rule string
	switch {
	case name == "" || utf8.RuneCountInString(name) > MaxKeyNameLength:
		rule = fmt.Sprintf("must have from 1 to %d characters", MaxKeyNameLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		rule = "must have no control characters"
	case ContainsKey(name):
		rule = "must not be a key"
	default:
		return nil
	}
	return Errorf(CodeInvalid, "name %s", rule).WithFields(FieldError{Path: "name", Message: rule})
}

// AuditTTLMS is the default of how long events of the audit are kept: 90 days.
const AuditTTLMS = 90 * 24 * 60 * 60 * 1000

// AuditEvent is one entry of a tenant's audit: a change, a change that was denied, or a
// secret that was read. It never contains bodies, keys or secrets.
type AuditEvent struct {
	ID     string `json:"id"`
	AtMS   int64  `json:"at_ms"`
	Sub    string `json:"sub"`
	Action string `json:"action"`
	Method string `json:"method"`
	Path   string `json:"path"`
	// Made identifies a created resource that Path does not name: the name of a
	// function, the number of a version, the id and the name of a key.
	Made      string `json:"made,omitempty"`
	Status    int    `json:"status"`
	Code      Code   `json:"code,omitempty"`
	RequestID string `json:"request_id"`
	// Refused reports that the request was refused (a status from 400 to 499), so that it
	// changed nothing.
	Refused bool `json:"refused,omitempty"`
	// Reads of a secret, and requests of a key that are refused often, are collected for a
	// minute: Count is their number. The two ids are the activations of the first and the last
	// read; of collected refusals the path and the request id are those of the last.
	Count            int64  `json:"count,omitempty"`
	ActivationID     string `json:"activation_id,omitempty"`
	LastActivationID string `json:"last_activation_id,omitempty"`
}
