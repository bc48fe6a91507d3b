// Package webcrypto has the algorithms of the Web Cryptography API
// (https://w3c.github.io/webcrypto/), for crypto.subtle of the sandbox. It knows nothing of
// scripts: keys, parameters and JSON Web Keys are Go values, and an error is an *Error with
// the name of a DOMException.
package webcrypto

import (
	"crypto"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	_ "crypto/sha1" // the hashes of hashOf
	_ "crypto/sha256"
	_ "crypto/sha512"
)

// Error is a failure as the specification names it.
type Error struct {
	Name    string // of a DOMException
	Message string
}

func (e *Error) Error() string { return e.Name + ": " + e.Message }

func fail(name, format string, args ...any) *Error { return &Error{name, fmt.Sprintf(format, args...)} }

func operation(format string, args ...any) *Error { return fail("OperationError", format, args...) }
func badData(format string, args ...any) *Error   { return fail("DataError", format, args...) }
func badSyntax(format string, args ...any) *Error { return fail("SyntaxError", format, args...) }
func invalidAccess(format string, args ...any) *Error {
	return fail("InvalidAccessError", format, args...)
}
func notSupported(format string, args ...any) *Error {
	return fail("NotSupportedError", format, args...)
}

// The types of keys.
const (
	Secret  = "secret"
	Public  = "public"
	Private = "private"
)

// Key is a CryptoKey. It is not changed once it is made.
type Key struct {
	Type        string
	Algorithm   KeyAlgorithm
	Extractable bool
	Usages      []string

	secret []byte // of a secret key
	pair   any    // of others: a key of crypto/rsa, ecdsa, ed25519 or ecdh, by Type
}

// KeyAlgorithm is the algorithm of a key, with the members that the algorithm has.
type KeyAlgorithm struct {
	Name     string
	Hash     string
	Curve    string
	Length   int    // of a secret key, in bits
	Modulus  int    // its length in bits
	Exponent []byte // big-endian
}

// Params are an algorithm and the parameters of an operation. Members returns those that an
// operation reads.
type Params struct {
	Name       string
	Hash       string
	Curve      string
	Length     *int // in bits
	Modulus    int
	Exponent   []byte
	SaltLength int
	IV         []byte
	Additional []byte
	TagLength  *int
	Counter    []byte
	Label      []byte
	Salt       []byte
	Info       []byte
	Iterations int
	Public     *Key
}

// Operations, as the specification names them.
const (
	OpDigest    = "digest"
	OpGenerate  = "generateKey"
	OpImport    = "importKey"
	OpKeyLength = "get key length"
	OpSign      = "sign"
	OpVerify    = "verify"
	OpEncrypt   = "encrypt"
	OpDecrypt   = "decrypt"
	OpDerive    = "deriveBits"
	OpWrap      = "wrapKey"
	OpUnwrap    = "unwrapKey"
)

// Member is a member of an algorithm's parameters.
type Member struct {
	Name     string
	Optional bool
}

// names are the algorithms, as the specification writes them.
func names() []string {
	return []string{
		"SHA-1", "SHA-256", "SHA-384", "SHA-512", "HMAC", "ECDSA", "ECDH", "Ed25519", "X25519",
		"RSASSA-PKCS1-v1_5", "RSA-PSS", "RSA-OAEP", "AES-CBC", "AES-CTR", "AES-GCM", "AES-KW", "PBKDF2", "HKDF",
	}
}

// Members returns the name of an algorithm as the specification writes it, whatever its case,
// and the members of its parameters for an operation, which must not be changed. Error:
// NotSupportedError where the algorithm is unknown or does not support the operation.
func Members(op, name string) (canonical string, members []Member, err error) {
	for _, n := range names() {
		if strings.EqualFold(n, name) {
			canonical = n
		}
	}
	if canonical == "" {
		return "", nil, notSupported("the algorithm %q is not supported", name)
	}
	members, ok := parameters()[form{op, canonical}]
	if !ok {
		return "", nil, notSupported("the algorithm %s does not support the operation %s", canonical, op)
	}
	return canonical, members, nil
}

// form is an operation with an algorithm.
type form struct{ op, name string }

// parameters returns the members of the parameters of each form. The table is made once, when a
// script first asks: to make it takes as long as the hash of 8 KiB.
var parameters = sync.OnceValue(func() map[form][]Member {
	members := map[form][]Member{}
	for op, algorithms := range parameterTexts() {
		for name, text := range algorithms {
			var list []Member
			for member := range strings.FieldsSeq(text) {
				bare, optional := strings.CutSuffix(member, "?")
				list = append(list, Member{bare, optional})
			}
			members[form{op, name}] = list
		}
	}
	return members
})

// parameterTexts returns the members of the parameters by operation and algorithm; optional ones
// end with ?.
func parameterTexts() map[string]map[string]string {
	forms := map[string]map[string]string{
		OpDigest: {"SHA-1": "", "SHA-256": "", "SHA-384": "", "SHA-512": ""},
		OpGenerate: {
			"HMAC": "hash length?", "ECDSA": "namedCurve", "ECDH": "namedCurve", "Ed25519": "", "X25519": "",
			"RSASSA-PKCS1-v1_5": "modulusLength publicExponent hash", "RSA-PSS": "modulusLength publicExponent hash",
			"RSA-OAEP": "modulusLength publicExponent hash",
			"AES-CBC":  "length", "AES-CTR": "length", "AES-GCM": "length", "AES-KW": "length",
		},
		OpImport: {
			"HMAC": "hash length?", "ECDSA": "namedCurve", "ECDH": "namedCurve", "Ed25519": "", "X25519": "",
			"RSASSA-PKCS1-v1_5": "hash", "RSA-PSS": "hash", "RSA-OAEP": "hash",
			"AES-CBC": "", "AES-CTR": "", "AES-GCM": "", "AES-KW": "", "PBKDF2": "", "HKDF": "",
		},
		OpKeyLength: {
			"HMAC": "hash length?", "AES-CBC": "length", "AES-CTR": "length", "AES-GCM": "length", "AES-KW": "length",
			"PBKDF2": "", "HKDF": "",
		},
		OpSign:    {"HMAC": "", "ECDSA": "hash", "Ed25519": "", "RSASSA-PKCS1-v1_5": "", "RSA-PSS": "saltLength"},
		OpEncrypt: {"RSA-OAEP": "label?", "AES-CBC": "iv", "AES-CTR": "counter length", "AES-GCM": "iv additionalData? tagLength?"},
		OpDerive: {
			"ECDH": "public", "X25519": "public", "PBKDF2": "salt iterations hash", "HKDF": "hash salt info",
		},
	}
	forms[OpVerify], forms[OpDecrypt] = forms[OpSign], forms[OpEncrypt]
	forms[OpWrap], forms[OpUnwrap] = maps.Clone(forms[OpEncrypt]), maps.Clone(forms[OpDecrypt])
	forms[OpWrap]["AES-KW"], forms[OpUnwrap]["AES-KW"] = "", ""
	return forms
}

// hashOf returns a hash by its name. Parameters have names that Members knows.
func hashOf(name string) crypto.Hash {
	switch name {
	case "SHA-1":
		return crypto.SHA1
	case "SHA-384":
		return crypto.SHA384
	case "SHA-512":
		return crypto.SHA512
	}
	return crypto.SHA256
}

// Digest returns the hash of data.
func Digest(name string, data []byte) []byte {
	h := hashOf(name).New()
	h.Write(data)
	return h.Sum(nil)
}

// usagesOf returns the usages that keys of an algorithm and a type can have.
func usagesOf(name, kind string) []string {
	switch name {
	case "HMAC":
		return []string{"sign", "verify"}
	case "AES-CBC", "AES-CTR", "AES-GCM":
		return []string{"encrypt", "decrypt", "wrapKey", "unwrapKey"}
	case "AES-KW":
		return []string{"wrapKey", "unwrapKey"}
	case "PBKDF2", "HKDF":
		return []string{"deriveKey", "deriveBits"}
	case "RSA-OAEP":
		if kind == Public {
			return []string{"encrypt", "wrapKey"}
		}
		return []string{"decrypt", "unwrapKey"}
	case "ECDH", "X25519":
		if kind == Public {
			return nil
		}
		return []string{"deriveKey", "deriveBits"}
	}
	if kind == Public {
		return []string{"verify"}
	}
	return []string{"sign"}
}

// Usages are all usages, in the order in which a key shows them.
func Usages() []string {
	return []string{"encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"}
}

// only returns those of usages that are among allowed, in their order and once.
func only(usages, allowed []string) []string {
	out := []string{}
	for _, u := range Usages() {
		if slices.Contains(usages, u) && slices.Contains(allowed, u) {
			out = append(out, u)
		}
	}
	return out
}

// foreign returns the first usage that is not among allowed.
func foreign(usages, allowed []string) (usage string, found bool) {
	for _, u := range usages {
		if !slices.Contains(allowed, u) {
			return u, true
		}
	}
	return "", false
}

// usable checks that a key is for an algorithm and a use.
func usable(p *Params, k *Key, usage string) error {
	switch {
	case p.Name != k.Algorithm.Name:
		return invalidAccess("the key is for %s, not for %s", k.Algorithm.Name, p.Name)
	case !slices.Contains(k.Usages, usage):
		return invalidAccess("the key's usages do not include %s", usage)
	}
	return nil
}

// Generate makes a secret key, or a pair of a public and a private key; private is nil for a
// secret one.
func Generate(p *Params, extractable bool, usages []string) (key, private *Key, err error) {
	made := &Key{Type: Private, Algorithm: KeyAlgorithm{Name: p.Name}, Extractable: extractable}
	allowed := append(usagesOf(p.Name, Public), usagesOf(p.Name, Private)...)
	if u, found := foreign(usages, allowed); found {
		return nil, nil, badSyntax("a key of %s cannot have the usage %s", p.Name, u)
	}
	switch p.Name {
	case "HMAC", "AES-CBC", "AES-CTR", "AES-GCM", "AES-KW":
		made.Type = Secret
		err = made.generateSecret(p)
	case "RSASSA-PKCS1-v1_5", "RSA-PSS", "RSA-OAEP":
		err = made.generateRSA(p)
	default:
		err = made.generateCurve(p)
	}
	if err != nil {
		return nil, nil, err
	}
	made.Usages = only(usages, usagesOf(p.Name, made.Type))
	if len(made.Usages) == 0 {
		return nil, nil, badSyntax("the key has no usages")
	}
	if made.Type == Secret {
		return made, nil, nil
	}
	public := &Key{Type: Public, Algorithm: made.Algorithm, Extractable: true, Usages: only(usages, usagesOf(p.Name, Public)), pair: PublicPart(made.pair)}
	return public, made, nil
}

// Material is a key outside of a CryptoKey: bytes, or a JSON Web Key for the format jwk.
type Material struct {
	Bytes []byte
	JWK   *JWK
}

// The formats of keys.
const (
	Raw       = "raw"
	SPKI      = "spki"
	PKCS8     = "pkcs8"
	JWKFormat = "jwk"
)

// Import makes a key of m, whose bytes it keeps.
func Import(format string, m Material, p *Params, extractable bool, usages []string) (*Key, error) {
	k := &Key{Algorithm: KeyAlgorithm{Name: p.Name}, Extractable: extractable}
	var err error
	switch p.Name {
	case "HMAC", "AES-CBC", "AES-CTR", "AES-GCM", "AES-KW":
		err = k.importSecret(format, m, p, usages)
	case "PBKDF2", "HKDF":
		err = k.importPassword(format, m, usages)
	case "RSASSA-PKCS1-v1_5", "RSA-PSS", "RSA-OAEP":
		err = k.importRSA(format, m, p, usages)
	default:
		err = k.importCurve(format, m, p, usages)
	}
	if err != nil {
		return nil, err
	}
	k.Usages = only(usages, Usages())
	if k.Type != Public && len(usages) == 0 {
		return nil, badSyntax("the key has no usages")
	}
	return k, nil
}

// setType sets the type of a key that is imported, whose usages must fit it.
func (k *Key) setType(kind string, usages []string) error {
	k.Type = kind
	if u, found := foreign(usages, usagesOf(k.Algorithm.Name, kind)); found {
		return badSyntax("a %s key of %s cannot have the usage %s", kind, k.Algorithm.Name, u)
	}
	return nil
}

// Export returns a key in a format.
func Export(format string, k *Key) (Material, error) {
	switch k.Algorithm.Name {
	case "PBKDF2", "HKDF":
		return Material{}, notSupported("a key of %s cannot be exported", k.Algorithm.Name)
	}
	if !k.Extractable {
		return Material{}, invalidAccess("the key is not extractable")
	}
	if k.Type == Secret {
		return k.exportSecret(format)
	}
	return k.exportPair(format)
}

// Sign signs data.
func Sign(p *Params, k *Key, data []byte) ([]byte, error) {
	if err := usable(p, k, "sign"); err != nil {
		return nil, err
	}
	switch p.Name {
	case "HMAC":
		return k.mac(data), nil
	case "ECDSA", "Ed25519":
		return k.signCurve(p, data)
	}
	return k.signRSA(p, data)
}

// Verify reports whether a signature is that of data.
func Verify(p *Params, k *Key, signature, data []byte) (bool, error) {
	if err := usable(p, k, "verify"); err != nil {
		return false, err
	}
	switch p.Name {
	case "HMAC":
		return same(k.mac(data), signature), nil
	case "ECDSA", "Ed25519":
		return k.verifyCurve(p, signature, data), nil
	}
	return k.verifyRSA(p, signature, data)
}

// Encrypt encrypts data.
func Encrypt(p *Params, k *Key, data []byte) ([]byte, error) {
	if err := usable(p, k, "encrypt"); err != nil {
		return nil, err
	}
	return k.encrypt(p, data)
}

// Decrypt decrypts data. Error: OperationError if authentication or padding fails.
func Decrypt(p *Params, k *Key, data []byte) ([]byte, error) {
	if err := usable(p, k, "decrypt"); err != nil {
		return nil, err
	}
	return k.decrypt(p, data)
}

// Wrap encrypts the bytes of a key.
func Wrap(p *Params, k *Key, data []byte) ([]byte, error) {
	if err := usable(p, k, "wrapKey"); err != nil {
		return nil, err
	}
	return k.encrypt(p, data)
}

// Unwrap decrypts the bytes of a key.
func Unwrap(p *Params, k *Key, data []byte) ([]byte, error) {
	if err := usable(p, k, "unwrapKey"); err != nil {
		return nil, err
	}
	return k.decrypt(p, data)
}

func (k *Key) encrypt(p *Params, data []byte) ([]byte, error) {
	if p.Name == "RSA-OAEP" {
		return k.encryptRSA(p, data)
	}
	return k.encryptAES(p, data)
}

func (k *Key) decrypt(p *Params, data []byte) ([]byte, error) {
	if p.Name == "RSA-OAEP" {
		return k.decryptRSA(p, data)
	}
	return k.decryptAES(p, data)
}
