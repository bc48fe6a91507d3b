package webcrypto

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op, name  string
		canonical string
		members   []Member
		failure   string
	}{
		"in another case":      {op: OpSign, name: "rsa-pss", canonical: "RSA-PSS", members: []Member{{Name: "saltLength"}}},
		"an optional member":   {op: OpEncrypt, name: "RSA-OAEP", canonical: "RSA-OAEP", members: []Member{{Name: "label", Optional: true}}},
		"no members":           {op: OpImport, name: "HKDF", canonical: "HKDF"},
		"wrapping by AES-KW":   {op: OpWrap, name: "AES-KW", canonical: "AES-KW"},
		"wrapping by a cipher": {op: OpUnwrap, name: "AES-CBC", canonical: "AES-CBC", members: []Member{{Name: "iv"}}},
		"another operation":    {op: OpEncrypt, name: "HMAC", failure: "NotSupportedError"},
		"AES-KW encrypts":      {op: OpEncrypt, name: "AES-KW", failure: "NotSupportedError"},
		"unknown":              {op: OpDigest, name: "MD5", failure: "NotSupportedError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canonical, members, err := Members(tt.op, tt.name)
			var failed *Error
			if errors.As(err, &failed) != (tt.failure != "") || failed != nil && failed.Name != tt.failure {
				t.Fatalf("got error %v, want %q", err, tt.failure)
			}
			if canonical != tt.canonical {
				t.Errorf("got name %q, want %q", canonical, tt.canonical)
			}
			if diff := cmp.Diff(tt.members, members); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

// TestImportKeepsNothingOfFailures: an error comes without a key.
func TestImportKeepsNothingOfFailures(t *testing.T) {
	t.Parallel()
	for _, name := range names()[4:] {
		for _, format := range []string{Raw, SPKI, PKCS8, JWKFormat} {
			p := &Params{Name: name, Hash: "SHA-256", Curve: "P-256"}
			m := Material{Bytes: []byte{1}, JWK: &JWK{Text: map[string]string{"kty": "none"}}}
			if k, err := Import(format, m, p, true, nil); err == nil || k != nil {
				t.Errorf("Import(%s) of %s: got key %v and error %v, want an error", format, name, k, err)
			}
		}
	}
}

func TestWrapAES(t *testing.T) {
	t.Parallel()
	kek, _, err := Generate(&Params{Name: "AES-KW", Length: new(int)}, true, []string{"wrapKey"})
	if kek != nil || err == nil {
		t.Fatalf("Generate of 0 bits: got key %v and error %v, want an error", kek, err)
	}
	bits := 192
	kek, _, err = Generate(&Params{Name: "AES-KW", Length: &bits}, true, []string{"wrapKey", "unwrapKey"})
	if err != nil {
		t.Fatalf("Generate: %v", err)
	}
	p := &Params{Name: "AES-KW"}
	for size := 16; size <= 64; size += 8 {
		key := bytes.Repeat([]byte{byte(size)}, size)
		wrapped, err := Wrap(p, kek, key)
		if err != nil || len(wrapped) != size+8 {
			t.Fatalf("Wrap of %d bytes: got %d bytes and error %v, want 8 more", size, len(wrapped), err)
		}
		got, err := Unwrap(p, kek, wrapped)
		if err != nil || !bytes.Equal(got, key) {
			t.Errorf("Unwrap of %d bytes: got %x and error %v, want %x", size, got, err, key)
		}
		for i := range wrapped {
			wrapped[i] ^= 1
			if _, err := Unwrap(p, kek, wrapped); err == nil {
				t.Errorf("Unwrap with byte %d of %d changed: got no error, want one", i, len(wrapped))
			}
			wrapped[i] ^= 1
		}
	}
}

// TestMultiPrimeKey: a key of three primes is refused. An export of it would drop one of them.
func TestMultiPrimeKey(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateMultiPrimeKey(rand.Reader, 3, 2048) //nolint:staticcheck // others still have such keys
	if err != nil {
		t.Fatalf("GenerateMultiPrimeKey: %v", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("MarshalPKCS8PrivateKey: %v", err)
	}
	_, err = Import(PKCS8, Material{Bytes: encoded}, &Params{Name: "RSA-PSS", Hash: "SHA-256"}, true, []string{"sign"})
	var failed *Error
	if !errors.As(err, &failed) || failed.Name != "NotSupportedError" {
		t.Errorf("Import of a key of three primes: got %v, want a NotSupportedError", err)
	}
}

// TestHugePrivateKey refuses a private key before it is checked, which would take minutes.
func TestHugePrivateKey(t *testing.T) {
	t.Parallel()
	one := big.NewInt(1)
	p, q := new(big.Int).Lsh(one, 60_000), new(big.Int).Lsh(one, 60_000)
	p.Add(p, one)
	q.Add(q, big.NewInt(3))
	d := new(big.Int).Lsh(one, 119_000)
	j := &JWK{Text: map[string]string{"kty": "RSA", "e": "Aw", "dp": "Aw", "dq": "Aw", "qi": "Aw"}}
	for name, n := range map[string]*big.Int{"n": new(big.Int).Mul(p, q), "p": p, "q": q, "d": d} {
		j.setBytes(name, n.Bytes())
	}
	for format, m := range map[string]Material{JWKFormat: {JWK: j}, PKCS8: {Bytes: make([]byte, maxPrivateBytes+1)}} {
		_, err := Import(format, m, &Params{Name: "RSA-PSS", Hash: "SHA-256"}, true, []string{"sign"})
		var failed *Error
		if !errors.As(err, &failed) || failed.Name != "DataError" || !strings.Contains(failed.Message, "more than") && !strings.Contains(failed.Message, "at most") {
			t.Errorf("a key of 120,000 bits as %s: got error %v, want a DataError that names the limit", format, err)
		}
	}
}
