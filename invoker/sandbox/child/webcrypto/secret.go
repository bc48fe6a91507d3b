package webcrypto

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"math/big"
	"slices"
)

// same compares in a time that does not depend on the contents.
func same(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// KeyLength returns how many bits a key that is derived has, nil for one that takes all that
// there are.
func KeyLength(p *Params) (*int, error) {
	switch p.Name {
	case "PBKDF2", "HKDF":
		return nil, nil
	case "HMAC":
		return macLength(p)
	}
	return p.Length, aesLength(*p.Length)
}

// macLength returns the length of an HMAC key: that of the hash's blocks, if none is given.
func macLength(p *Params) (*int, error) {
	if p.Length == nil {
		bits := hashOf(p.Hash).New().BlockSize() * 8
		return &bits, nil
	}
	if *p.Length <= 0 {
		return nil, operation("the length of the key must not be 0")
	}
	return p.Length, nil
}

func aesLength(bits int) error {
	switch bits {
	case 128, 192, 256:
		return nil
	}
	return operation("the length of an AES key must be 128, 192 or 256 bits, not %d", bits)
}

// maxSecretBits bounds the keys that are generated.
const maxSecretBits = 1 << 20

func (k *Key) generateSecret(p *Params) error {
	bits, err := KeyLength(p)
	if err != nil {
		return err
	}
	if *bits > maxSecretBits {
		return operation("the length of the key is more than %d bits", maxSecretBits)
	}
	k.secret = make([]byte, (*bits+7)/8)
	if _, err := rand.Read(k.secret); err != nil {
		return operation("no randomness: %v", err)
	}
	clearAfter(k.secret, *bits)
	k.Algorithm.Length, k.Algorithm.Hash = *bits, p.Hash
	return nil
}

// clearAfter clears the bits of the last byte that are beyond a length.
func clearAfter(b []byte, bits int) {
	if rest := bits % 8; rest != 0 {
		b[len(b)-1] &= byte(0xff << (8 - rest))
	}
}

// importSecret takes the bytes of an HMAC or AES key, or a JSON Web Key of type oct.
func (k *Key) importSecret(format string, m Material, p *Params, usages []string) error {
	if err := k.setType(Secret, usages); err != nil {
		return err
	}
	switch format {
	case Raw:
		k.secret = m.Bytes
	case JWKFormat:
		if m.JWK.Text["kty"] != "oct" {
			return badData(`the kty of the key must be "oct"`)
		}
		secret, ok := m.JWK.bytes("k")
		if !ok {
			return badData("the member k of the key must be base64url")
		}
		k.secret = secret
	default:
		return notSupported("a key of %s cannot be imported as %s", p.Name, format)
	}
	bits := len(k.secret) * 8
	use := "enc"
	if p.Name == "HMAC" {
		use = "sig"
		k.Algorithm.Hash = p.Hash
		switch {
		case bits == 0:
			return badData("the key is empty")
		case p.Length == nil:
		case *p.Length > bits || *p.Length <= bits-8:
			return badData("the key has %d bits, not %d", bits, *p.Length)
		default:
			bits = *p.Length
		}
	} else if aesLength(bits) != nil {
		return badData("an AES key must have 128, 192 or 256 bits, not %d", bits)
	}
	k.Algorithm.Length = bits
	if format == JWKFormat {
		return m.JWK.check(k.jwkAlgorithm(), use, k.Extractable, usages)
	}
	return nil
}

func (k *Key) exportSecret(format string) (Material, error) {
	switch format {
	case Raw:
		return Material{Bytes: slices.Clone(k.secret)}, nil
	case JWKFormat:
		j := k.newJWK("oct")
		j.setBytes("k", k.secret)
		j.Text["alg"] = k.jwkAlgorithm()
		return Material{JWK: j}, nil
	}
	return Material{}, notSupported("a key of %s cannot be exported as %s", k.Algorithm.Name, format)
}

func (k *Key) mac(data []byte) []byte {
	m := hmac.New(hashOf(k.Algorithm.Hash).New, k.secret)
	m.Write(data)
	return m.Sum(nil)
}

// The ciphers with AES.

func (k *Key) encryptAES(p *Params, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(k.secret)
	if err != nil {
		return nil, operation("%v", err)
	}
	switch p.Name {
	case "AES-GCM":
		sealed, size, err := seal(block, p, data)
		if err != nil {
			return nil, err
		}
		return sealed[:len(data)+size], nil // a shorter tag is the beginning of the whole one
	case "AES-CTR":
		return countered(block, p, data)
	case "AES-KW":
		return wrapped(block, data)
	}
	if len(p.IV) != aes.BlockSize {
		return nil, operation("the iv must have 16 bytes, not %d", len(p.IV))
	}
	padding := aes.BlockSize - len(data)%aes.BlockSize
	out := make([]byte, len(data)+padding)
	for i := copy(out, data); i < len(out); i++ {
		out[i] = byte(padding)
	}
	cipher.NewCBCEncrypter(block, p.IV).CryptBlocks(out, out)
	return out, nil
}

func (k *Key) decryptAES(p *Params, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(k.secret)
	if err != nil {
		return nil, operation("%v", err)
	}
	switch p.Name {
	case "AES-GCM":
		return open(block, p, data)
	case "AES-CTR":
		return countered(block, p, data)
	case "AES-KW":
		return unwrapped(block, data)
	}
	if len(p.IV) != aes.BlockSize {
		return nil, operation("the iv must have 16 bytes, not %d", len(p.IV))
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, operation("the data cannot be decrypted")
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, p.IV).CryptBlocks(out, data)
	padding := int(out[len(out)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, operation("the data cannot be decrypted")
	}
	for _, b := range out[len(out)-padding:] {
		if int(b) != padding {
			return nil, operation("the data cannot be decrypted")
		}
	}
	return out[:len(out)-padding], nil
}

// tagSize returns the length of a tag in bytes.
func tagSize(p *Params) (int, error) {
	if p.TagLength == nil {
		return 16, nil
	}
	switch *p.TagLength {
	case 32, 64, 96, 104, 112, 120, 128:
		return *p.TagLength / 8, nil
	}
	return 0, operation("the length of the tag must be 32, 64, 96, 104, 112, 120 or 128 bits, not %d", *p.TagLength)
}

// seal encrypts data with GCM and a tag of 16 bytes. size is that of the tag that p asks
// for.
func seal(block cipher.Block, p *Params, data []byte) (sealed []byte, size int, err error) {
	size, err = tagSize(p)
	if err != nil {
		return nil, 0, err
	}
	if len(p.IV) == 0 {
		return nil, 0, operation("the iv must not be empty")
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(p.IV))
	if err != nil {
		return nil, 0, operation("%v", err)
	}
	return gcm.Seal(nil, p.IV, data, p.Additional), size, nil
}

// open decrypts data with GCM. Its cipher is the same in both directions, so that a tag of any
// length is checked by making it once more.
func open(block cipher.Block, p *Params, data []byte) ([]byte, error) {
	size, err := tagSize(p)
	if err != nil {
		return nil, err
	}
	if len(data) < size {
		return nil, operation("the data is shorter than its tag")
	}
	tag := data[len(data)-size:]
	data = data[:len(data)-size]
	text, _, err := seal(block, p, data)
	if err != nil {
		return nil, err
	}
	text = text[:len(data):len(data)]
	again, _, err := seal(block, p, text)
	if err != nil {
		return nil, err
	}
	if !same(again[len(data):len(data)+size], tag) {
		return nil, operation("the authentication tag does not match the data")
	}
	return text, nil
}

// countered encrypts or decrypts with CTR. Only the last Length bits of a block's counter
// count, and begin again at 0.
func countered(block cipher.Block, p *Params, data []byte) ([]byte, error) {
	bits := *p.Length
	if len(p.Counter) != aes.BlockSize {
		return nil, operation("the counter must have 16 bytes, not %d", len(p.Counter))
	}
	if bits < 1 || bits > 128 {
		return nil, operation("the length of the counter must be from 1 to 128 bits, not %d", bits)
	}
	blocks := big.NewInt(int64((len(data) + aes.BlockSize - 1) / aes.BlockSize))
	values := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	if blocks.Cmp(values) > 0 {
		return nil, operation("the data has more blocks than the counter has values")
	}
	whole := new(big.Int).SetBytes(p.Counter)
	low := new(big.Int).Mod(whole, values)
	before := new(big.Int).Sub(values, low) // blocks until the counter begins again
	out := make([]byte, len(data))
	if blocks.Cmp(before) <= 0 {
		cipher.NewCTR(block, p.Counter).XORKeyStream(out, data)
		return out, nil
	}
	at := int(before.Int64()) * aes.BlockSize
	cipher.NewCTR(block, p.Counter).XORKeyStream(out[:at], data[:at])
	again := whole.Sub(whole, low).FillBytes(make([]byte, aes.BlockSize))
	cipher.NewCTR(block, again).XORKeyStream(out[at:], data[at:])
	return out, nil
}

// wrapIV is the initial value of a wrapped key (RFC 3394, 2.2.3.1).
const wrapIV = 0xa6a6a6a6a6a6a6a6

// wrapped encrypts a key (RFC 3394, 2.2.1).
func wrapped(block cipher.Block, data []byte) ([]byte, error) {
	if len(data)%8 != 0 || len(data) < 16 {
		return nil, operation("a key of %d bytes cannot be wrapped with AES-KW", len(data))
	}
	n := len(data) / 8
	out := make([]byte, 8+len(data))
	copy(out[8:], data)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], wrapIV)
	for j := range 6 {
		for i := 1; i <= n; i++ {
			copy(b[8:], out[8*i:])
			block.Encrypt(b[:], b[:])
			binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])^uint64(n*j+i))
			copy(out[8*i:], b[8:])
		}
	}
	copy(out, b[:8])
	return out, nil
}

// unwrapped decrypts a key (RFC 3394, 2.2.2).
func unwrapped(block cipher.Block, data []byte) ([]byte, error) {
	if len(data)%8 != 0 || len(data) < 24 {
		return nil, operation("a wrapped key cannot have %d bytes", len(data))
	}
	n := len(data)/8 - 1
	out := slices.Clone(data[8:])
	var b [16]byte
	copy(b[:8], data)
	for j := 5; j >= 0; j-- {
		for i := n; i >= 1; i-- {
			binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])^uint64(n*j+i))
			copy(b[8:], out[8*(i-1):])
			block.Decrypt(b[:], b[:])
			copy(out[8*(i-1):], b[8:])
		}
	}
	if binary.BigEndian.Uint64(b[:8]) != wrapIV {
		return nil, operation("the integrity check of the wrapped key failed")
	}
	return out, nil
}

// Keys that others are derived from.

func (k *Key) importPassword(format string, m Material, usages []string) error {
	if err := k.setType(Secret, usages); err != nil {
		return err
	}
	if format != Raw {
		return notSupported("a key of %s cannot be imported as %s", k.Algorithm.Name, format)
	}
	if k.Extractable {
		return badSyntax("a key of %s cannot be extractable", k.Algorithm.Name)
	}
	k.secret = m.Bytes
	return nil
}

// maxDerivedBits bounds the bits that are derived at once.
const maxDerivedBits = 1 << 24

// DeriveBits derives bits of a key with the usage usage; length is nil for all that there
// are.
func DeriveBits(p *Params, k *Key, usage string, length *int) ([]byte, error) {
	if err := usable(p, k, usage); err != nil {
		return nil, err
	}
	if p.Name == "ECDH" || p.Name == "X25519" {
		return k.exchange(p, length)
	}
	if length == nil || *length%8 != 0 {
		return nil, operation("the length must be a multiple of 8")
	}
	if *length < 0 || *length > maxDerivedBits {
		return nil, operation("the length must be at most %d bits", maxDerivedBits)
	}
	var out []byte
	var err error
	hash := hashOf(p.Hash).New
	if p.Name == "PBKDF2" {
		if p.Iterations < 1 {
			return nil, operation("the number of iterations must be at least 1")
		}
		if *length == 0 {
			return []byte{}, nil
		}
		out, err = pbkdf2.Key(hash, string(k.secret), p.Salt, p.Iterations, *length/8)
	} else {
		out, err = hkdf.Key(hash, k.secret, p.Salt, string(p.Info), *length/8)
	}
	if err != nil {
		return nil, operation("%v", err)
	}
	return out, nil
}
