package secrets

import (
	"bytes"

	"github.com/codesous/sous/api"
)

// Sealed is a value of another record than a secret, such as the signing key of a webhook, in its
// stored form.
type Sealed struct {
	Sealed []byte `json:"sealed"`
	Key    string `json:"key"` // the fingerprint of the key that sealed it
}

// Seal seals a value for a record that keeps it. what names the kind of the record, and path, whose
// parts have no line feed, the record and the version of the value: a value that is copied to another
// record does not open there. CodeSecretKeyMissing.
func (s *Secrets) Seal(what string, path []string, value []byte) (Sealed, error) {
	sealer, err := s.ring(false)
	if err != nil {
		return Sealed{}, err
	}
	text, err := sealer.seal(labelOf(what, path), value)
	return Sealed{text, sealer.fingerprint}, err
}

// Open returns a value that Seal sealed with the same what and path. The caller owns it.
// CodeSecretKeyMissing, CodeSecretUnreadable.
func (s *Secrets) Open(what string, path []string, v Sealed) ([]byte, error) {
	opener, err := s.ring(false)
	if err != nil {
		return nil, err
	}
	value, err := opener.open(labelOf(what, path), v.Sealed)
	if api.ErrorCode(err) != api.CodeSecretUnreadable {
		return value, err
	}
	opener, err = s.ring(true) // the key may be newer than the cached key file
	if err != nil {
		return nil, err
	}
	return opener.open(labelOf(what, path), v.Sealed)
}

// Reseal returns v sealed with the first identity. changed reports whether another one had sealed
// it. CodeSecretKeyMissing, CodeSecretUnreadable.
func (s *Secrets) Reseal(what string, path []string, v Sealed) (out Sealed, changed bool, err error) {
	sealer, err := s.ring(true)
	if err != nil || v.Key == sealer.fingerprint {
		return v, false, err
	}
	value, err := sealer.open(labelOf(what, path), v.Sealed)
	if err != nil {
		return v, false, err
	}
	defer clear(value)
	text, err := sealer.seal(labelOf(what, path), value)
	if err != nil {
		return v, false, err
	}
	return Sealed{text, sealer.fingerprint}, true, nil
}

// labelOf is sealed before a value of a record. It begins otherwise than label, so that no such value
// opens as a secret.
func labelOf(what string, path []string) []byte {
	text := bytes.NewBufferString("sous " + what + " 1\n")
	for _, part := range path {
		text.WriteString(part + "\n")
	}
	return text.Bytes()
}
