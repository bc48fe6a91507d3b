package webcrypto

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
)

// The lengths of the RSA keys that are made, in bits.
const (
	minModulus = 1024
	maxModulus = 8192
)

// maxPrivateBytes bounds the encoding of a private key. One with a modulus of maxModulus bits
// takes less than 5 KB; to check a much larger one takes minutes, which no deadline of a script
// interrupts.
const maxPrivateBytes = 16 << 10

func (k *Key) generateRSA(p *Params) error {
	if p.Modulus < minModulus || p.Modulus > maxModulus {
		return operation("the length of the modulus must be from %d to %d bits, not %d", minModulus, maxModulus, p.Modulus)
	}
	if !bytes.Equal(bytes.TrimLeft(p.Exponent, "\x00"), []byte{1, 0, 1}) {
		return operation("the public exponent must be 65537")
	}
	made, err := rsa.GenerateKey(rand.Reader, p.Modulus)
	if err != nil {
		return operation("%v", err)
	}
	return k.setRSA(made, &made.PublicKey, p.Hash)
}

// setRSA keeps a key and describes it. A larger modulus than those that are generated would
// take time that no deadline of a script interrupts.
func (k *Key) setRSA(pair any, public *rsa.PublicKey, hash string) error {
	if public.N.BitLen() > maxModulus {
		return badData("the modulus has more than %d bits", maxModulus)
	}
	k.pair = pair
	k.Algorithm.Hash = hash
	k.Algorithm.Modulus = public.N.BitLen()
	k.Algorithm.Exponent = big.NewInt(int64(public.E)).Bytes()
	return nil
}

func (k *Key) importRSA(format string, m Material, p *Params, usages []string) error {
	switch format {
	case SPKI:
		if err := k.setType(Public, usages); err != nil {
			return err
		}
		parsed, err := x509.ParsePKIXPublicKey(m.Bytes)
		public, ok := parsed.(*rsa.PublicKey)
		if err != nil || !ok {
			return badData("the data is not the public key of an RSA pair")
		}
		return k.setRSA(public, public, p.Hash)
	case PKCS8:
		if err := k.setType(Private, usages); err != nil {
			return err
		}
		if len(m.Bytes) > maxPrivateBytes {
			return badData("the private key has more than %d bytes", maxPrivateBytes)
		}
		parsed, err := x509.ParsePKCS8PrivateKey(m.Bytes)
		private, ok := parsed.(*rsa.PrivateKey)
		if err != nil || !ok {
			return badData("the data is not the private key of an RSA pair")
		}
		if len(private.Primes) != 2 {
			return notSupported("a key of %d primes is not supported", len(private.Primes))
		}
		return k.setRSA(private, &private.PublicKey, p.Hash)
	case JWKFormat:
		return k.importRSAFromJWK(m.JWK, p, usages)
	}
	return notSupported("a key of %s cannot be imported as %s", p.Name, format)
}

func (k *Key) importRSAFromJWK(j *JWK, p *Params, usages []string) error {
	_, hasPrivate := j.Text["d"]
	kind, use := Public, "sig"
	if hasPrivate {
		kind = Private
	}
	if p.Name == "RSA-OAEP" {
		use = "enc"
	}
	if err := k.setType(kind, usages); err != nil {
		return err
	}
	if j.Text["kty"] != "RSA" {
		return badData(`the kty of the key must be "RSA"`)
	}
	k.Algorithm.Hash = p.Hash
	if err := j.check(k.jwkAlgorithm(), use, k.Extractable, usages); err != nil {
		return err
	}
	bad := false
	number := func(name string) *big.Int {
		b, ok := j.bytes(name)
		n := new(big.Int).SetBytes(b)
		bad = bad || !ok || len(b) == 0 || n.BitLen() > maxModulus
		return n
	}
	e := number("e")
	public := rsa.PublicKey{N: number("n"), E: int(e.Int64())}
	if bad || !e.IsInt64() || e.Int64() < 2 || e.Int64() > 1<<31-1 {
		return badData("the members n and e of the key are not those of an RSA key of at most %d bits", maxModulus)
	}
	if !hasPrivate {
		return k.setRSA(&public, &public, p.Hash)
	}
	if j.Others {
		return notSupported("an RSA key with more than two primes is not supported")
	}
	private := &rsa.PrivateKey{PublicKey: public, D: number("d"), Primes: []*big.Int{number("p"), number("q")}}
	for _, name := range []string{"dp", "dq", "qi"} {
		number(name)
	}
	if bad {
		return badData("the key lacks a member of a private RSA key, or one has more than %d bits", maxModulus)
	}
	if err := private.Validate(); err != nil {
		return badData("the members of the key do not belong together: %v", err)
	}
	private.Precompute()
	return k.setRSA(private, &private.PublicKey, p.Hash)
}

// webRSA makes a JSON Web Key.
func (k *Key) webRSA() *JWK {
	j := k.newJWK("RSA")
	public := PublicPart(k.pair).(*rsa.PublicKey)
	j.setBytes("n", public.N.Bytes())
	j.setBytes("e", big.NewInt(int64(public.E)).Bytes())
	if p, ok := k.pair.(*rsa.PrivateKey); ok && len(p.Primes) == 2 {
		p.Precompute()
		for name, n := range map[string]*big.Int{
			"d": p.D, "p": p.Primes[0], "q": p.Primes[1], "dp": p.Precomputed.Dp, "dq": p.Precomputed.Dq, "qi": p.Precomputed.Qinv,
		} {
			j.setBytes(name, n.Bytes())
		}
	}
	j.Text["alg"] = k.jwkAlgorithm()
	return j
}

// pss returns the options of a signature. crypto/rsa takes a salt of no bytes for one of any
// length.
func (k *Key) pss(p *Params) (*rsa.PSSOptions, error) {
	if p.SaltLength == 0 {
		return nil, notSupported("RSA-PSS without a salt is not supported")
	}
	return &rsa.PSSOptions{SaltLength: p.SaltLength, Hash: hashOf(k.Algorithm.Hash)}, nil
}

func (k *Key) signRSA(p *Params, data []byte) ([]byte, error) {
	private, ok := k.pair.(*rsa.PrivateKey)
	if !ok {
		return nil, invalidAccess("the key is not private")
	}
	hash, digest := hashOf(k.Algorithm.Hash), Digest(k.Algorithm.Hash, data)
	var out []byte
	var err error
	if p.Name == "RSA-PSS" {
		options, bad := k.pss(p)
		if bad != nil {
			return nil, bad
		}
		// crypto/rsa allocates the salt before it looks at the size.
		if most := (private.N.BitLen()-1+7)/8 - hash.Size() - 2; p.SaltLength > most {
			return nil, operation("the salt must have at most %d bytes", most)
		}
		out, err = rsa.SignPSS(rand.Reader, private, hash, digest, options)
	} else {
		out, err = rsa.SignPKCS1v15(nil, private, hash, digest)
	}
	if err != nil {
		return nil, operation("%v", err)
	}
	return out, nil
}

func (k *Key) verifyRSA(p *Params, signature, data []byte) (bool, error) {
	public, ok := k.pair.(*rsa.PublicKey)
	if !ok {
		return false, invalidAccess("the key is not public")
	}
	hash, digest := hashOf(k.Algorithm.Hash), Digest(k.Algorithm.Hash, data)
	if p.Name != "RSA-PSS" {
		return rsa.VerifyPKCS1v15(public, hash, digest, signature) == nil, nil
	}
	options, err := k.pss(p)
	if err != nil {
		return false, err
	}
	return rsa.VerifyPSS(public, hash, digest, signature, options) == nil, nil
}

func (k *Key) encryptRSA(p *Params, data []byte) ([]byte, error) {
	public, ok := k.pair.(*rsa.PublicKey)
	if !ok {
		return nil, invalidAccess("the key is not public")
	}
	out, err := rsa.EncryptOAEP(hashOf(k.Algorithm.Hash).New(), rand.Reader, public, data, p.Label)
	if err != nil {
		return nil, operation("%v", err)
	}
	return out, nil
}

func (k *Key) decryptRSA(p *Params, data []byte) ([]byte, error) {
	private, ok := k.pair.(*rsa.PrivateKey)
	if !ok {
		return nil, invalidAccess("the key is not private")
	}
	out, err := rsa.DecryptOAEP(hashOf(k.Algorithm.Hash).New(), nil, private, data, p.Label)
	if err != nil {
		return nil, operation("the data cannot be decrypted")
	}
	return out, nil
}
