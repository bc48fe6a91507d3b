package secrets

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"filippo.io/age"

	"github.com/codesous/sous/api"
)

// maxKeyFileBytes limits a file of identities: an identity with its comment takes less than 128
// bytes, so it has room for about a thousand.
const maxKeyFileBytes = 128 << 10

// ring holds the identities of a key file: the first one seals, every one opens.
type ring struct {
	first *age.X25519Identity
	all   []age.Identity
	// fingerprint is that of the first identity's recipient.
	fingerprint string
}

// parseRing parses identities, one a line, between comments and empty lines. Its errors
// contain no part of a line, which may be a mistyped key.
func parseRing(r io.Reader) (*ring, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxKeyFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeyFileBytes {
		return nil, fmt.Errorf("it is larger than %s", api.SizeText(maxKeyFileBytes))
	}
	found := &ring{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		identity, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, fmt.Errorf("line %d is neither a comment nor an identity (AGE-SECRET-KEY-1…)", n)
		}
		if found.first == nil {
			found.first, found.fingerprint = identity, fingerprint(identity.Recipient())
		}
		found.all = append(found.all, identity)
	}
	if err := lines.Err(); err != nil {
		return nil, errors.New("a line of it is too long")
	}
	if found.first == nil {
		return nil, errors.New("it holds no identity; sous secret keygen makes one")
	}
	return found, nil
}

// fingerprint identifies a recipient in records and logs: the first 8 bytes of its SHA-256 in
// 16 hexadecimal digits. A value cannot be sealed for a fingerprint, unlike for a recipient.
func fingerprint(r *age.X25519Recipient) string {
	sum := sha256.Sum256([]byte(r.String()))
	return hex.EncodeToString(sum[:8])
}

// label is sealed before a value. It binds the value to its secret and version: a writer
// to the store cannot have a value read under another name, or an old value under a new
// version. The plain text of version 2 of stripe with the value sk_live_2 is
//
//	"sous secret 1\nt_acme01\ndefault\nstripe\n2\nsk_live_2"
func label(p Place, name string, version int64) []byte {
	// None of the parts contains a line feed.
	return []byte("sous secret 1\n" + p.Tenant + "\n" + p.Namespace + "\n" + name + "\n" + strconv.FormatInt(version, 10) + "\n")
}

// seal encrypts label and value for the first identity.
func (r *ring) seal(label, value []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, r.first.Recipient())
	if err == nil {
		_, err = w.Write(label)
	}
	if err == nil {
		_, err = w.Write(value)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("seal a secret: %w", err)
	}
	return sealed.Bytes(), nil
}

// open decrypts sealed and returns the value that was sealed with label. The caller owns the
// value, and clears it when it is no longer needed. CodeSecretUnreadable.
func (r *ring) open(label, sealed []byte) ([]byte, error) {
	opened, err := age.Decrypt(bytes.NewReader(sealed), r.all...)
	var unmatched *age.NoIdentityMatchError
	if errors.As(err, &unmatched) {
		return nil, api.Errorf(api.CodeSecretUnreadable, "the secret was sealed with a key that is not in the key file")
	}
	if err != nil {
		return nil, damaged(err)
	}
	// One buffer, so that no copy of the value is left behind: the sealed text is
	// longer than the value.
	plain := make([]byte, len(sealed))
	n, err := io.ReadFull(opened, plain)
	if !errors.Is(err, io.ErrUnexpectedEOF) { // it ends before the buffer does
		clear(plain)
		return nil, damaged(err)
	}
	if !bytes.HasPrefix(plain[:n], label) {
		clear(plain)
		return nil, api.Errorf(api.CodeSecretUnreadable, "the secret's value was sealed for another secret or version")
	}
	return plain[len(label):n:n], nil
}

// damaged returns CodeSecretUnreadable for a sealed value that age cannot decrypt.
func damaged(err error) error {
	return api.Wrap(api.CodeSecretUnreadable, err, "the secret's record is damaged")
}
