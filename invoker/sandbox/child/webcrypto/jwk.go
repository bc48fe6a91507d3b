package webcrypto

import (
	"encoding/base64"
	"slices"
	"strings"
)

// JWK is a JSON Web Key (RFC 7517).
type JWK struct {
	// Text has the members that are texts, by name. Those that are missing are not in it.
	Text   map[string]string
	KeyOps []string // nil if it is missing
	Ext    *bool
	Others bool // there are more than two primes
}

// TextMembers are the members of a JSON Web Key that are texts.
func TextMembers() []string {
	return []string{"kty", "use", "alg", "crv", "x", "y", "d", "n", "e", "p", "q", "dp", "dq", "qi", "k"}
}

// newJWK begins the JSON Web Key of a key.
func (k *Key) newJWK(kty string) *JWK {
	return &JWK{Text: map[string]string{"kty": kty}, KeyOps: k.Usages, Ext: &k.Extractable}
}

// bytes returns a member as bytes. A missing one is not ok.
func (j *JWK) bytes(name string) (b []byte, ok bool) {
	text, ok := j.Text[name]
	if !ok {
		return nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	return b, err == nil
}

func (j *JWK) setBytes(name string, b []byte) { j.Text[name] = base64.RawURLEncoding.EncodeToString(b) }

// check compares the members that every JSON Web Key may have with the arguments of an import: alg,
// of which several names may fit, use, key_ops and ext.
func (j *JWK) check(alg, use string, extractable bool, usages []string) error {
	if got, ok := j.Text["alg"]; ok && alg != "" && !slices.Contains(strings.Fields(alg), got) {
		return badData("the alg of the key is %q, not %s", got, alg)
	}
	if got, ok := j.Text["use"]; ok && len(usages) > 0 && got != use {
		return badData("the use of the key is %q, not %q", got, use)
	}
	seen := map[string]bool{}
	for _, op := range j.KeyOps {
		if seen[op] {
			return badData("the key_ops of the key have %q twice", op)
		}
		seen[op] = true
	}
	if j.KeyOps != nil {
		if u, found := foreign(usages, j.KeyOps); found {
			return badData("the key_ops of the key do not include %q", u)
		}
	}
	if j.Ext != nil && !*j.Ext && extractable {
		return badData("the key is not extractable")
	}
	return nil
}

// jwkAlgorithm returns the name of the key's algorithm in JSON Web Keys (RFC 7518), "" if it has
// none.
func (k *Key) jwkAlgorithm() string {
	bits := strings.TrimPrefix(k.Algorithm.Hash, "SHA-")
	switch name := k.Algorithm.Name; name {
	case "HMAC":
		return "HS" + bits
	case "AES-CBC", "AES-CTR", "AES-GCM", "AES-KW":
		return map[int]string{128: "A128", 192: "A192", 256: "A256"}[k.Algorithm.Length] + strings.TrimPrefix(name, "AES-")
	case "RSASSA-PKCS1-v1_5":
		return "RS" + bits
	case "RSA-PSS":
		return "PS" + bits
	case "RSA-OAEP":
		return strings.TrimSuffix("RSA-OAEP-"+bits, "-1")
	}
	return ""
}
