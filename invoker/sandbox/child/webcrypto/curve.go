package webcrypto

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
)

// curveOf returns a curve of ECDSA and ECDH by its name.
func curveOf(name string) (elliptic.Curve, error) {
	switch name {
	case "P-256":
		return elliptic.P256(), nil
	case "P-384":
		return elliptic.P384(), nil
	case "P-521":
		return elliptic.P521(), nil
	}
	return nil, notSupported("the curve %q is not supported", name)
}

// PublicPart returns the public key of any key of a pair.
func PublicPart(pair any) any {
	switch k := pair.(type) {
	case *rsa.PrivateKey:
		return &k.PublicKey
	case *ecdsa.PrivateKey:
		return &k.PublicKey
	case ed25519.PrivateKey:
		return k.Public().(ed25519.PublicKey)
	case *ecdh.PrivateKey:
		return k.PublicKey()
	}
	return pair
}

func (k *Key) generateCurve(p *Params) error {
	var err error
	switch p.Name {
	case "Ed25519":
		_, k.pair, err = ed25519.GenerateKey(rand.Reader)
	case "X25519":
		k.pair, err = ecdh.X25519().GenerateKey(rand.Reader)
	default:
		curve, unknown := curveOf(p.Curve)
		if unknown != nil {
			return unknown
		}
		k.Algorithm.Curve = p.Curve
		k.pair, err = ecdsa.GenerateKey(curve, rand.Reader)
	}
	if err != nil {
		return operation("%v", err)
	}
	return nil
}

func (k *Key) importCurve(format string, m Material, p *Params, usages []string) error {
	if p.Name == "ECDSA" || p.Name == "ECDH" {
		if _, err := curveOf(p.Curve); err != nil {
			return err
		}
		k.Algorithm.Curve = p.Curve
	}
	kind := Public
	if format == PKCS8 {
		kind = Private
	} else if format == JWKFormat {
		if _, hasPrivate := m.JWK.Text["d"]; hasPrivate {
			kind = Private
		}
	}
	if err := k.setType(kind, usages); err != nil {
		return err
	}
	var pair any
	var err error
	switch format {
	case SPKI:
		pair, err = x509.ParsePKIXPublicKey(m.Bytes)
	case PKCS8:
		pair, err = x509.ParsePKCS8PrivateKey(m.Bytes)
	case Raw:
		pair, err = k.fromPoint(m.Bytes)
	case JWKFormat:
		pair, err = k.fromJWK(m.JWK, usages)
	default:
		return notSupported("a key of %s cannot be imported as %s", p.Name, format)
	}
	if bad, ok := err.(*Error); ok { //nolint:errorlint // it is not wrapped
		return bad
	}
	if err != nil || !k.fits(pair) {
		return badData("the data is not a %s key of %s", kind, p.Name)
	}
	k.pair = pair
	return nil
}

// fits reports whether a key is of the type, the algorithm and the curve of k.
func (k *Key) fits(pair any) bool {
	switch key := pair.(type) {
	case ed25519.PublicKey:
		return k.Type == Public && k.Algorithm.Name == "Ed25519"
	case ed25519.PrivateKey:
		return k.Type == Private && k.Algorithm.Name == "Ed25519"
	case *ecdh.PublicKey:
		return k.Type == Public && k.Algorithm.Name == "X25519"
	case *ecdh.PrivateKey:
		return k.Type == Private && k.Algorithm.Name == "X25519"
	case *ecdsa.PublicKey:
		return k.Type == Public && k.Algorithm.Curve == key.Curve.Params().Name
	case *ecdsa.PrivateKey:
		return k.Type == Private && k.Algorithm.Curve == key.Curve.Params().Name
	}
	return false
}

// fromPoint reads a public key without a frame.
func (k *Key) fromPoint(b []byte) (any, error) {
	switch k.Algorithm.Name {
	case "Ed25519":
		if len(b) != ed25519.PublicKeySize {
			return nil, badData("the key must have 32 bytes, not %d", len(b))
		}
		return ed25519.PublicKey(b), nil
	case "X25519":
		return ecdh.X25519().NewPublicKey(b)
	}
	curve, err := curveOf(k.Algorithm.Curve)
	if err != nil {
		return nil, err
	}
	if len(b) > 0 && (b[0] == 2 || b[0] == 3) { // compressed
		x, y := elliptic.UnmarshalCompressed(curve, b)
		if x == nil {
			return nil, badData("the point is not on the curve")
		}
		size := (curve.Params().BitSize + 7) / 8
		b = append([]byte{4}, x.FillBytes(make([]byte, size))...)
		b = append(b, y.FillBytes(make([]byte, size))...)
	}
	return ecdsa.ParseUncompressedPublicKey(curve, b)
}

// fromJWK reads a JSON Web Key.
func (k *Key) fromJWK(j *JWK, usages []string) (any, error) {
	kty, crv, alg, use := "EC", k.Algorithm.Curve, "", "sig"
	switch k.Algorithm.Name {
	case "ECDSA":
		alg = map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[crv]
	case "Ed25519":
		kty, crv, alg = "OKP", "Ed25519", "Ed25519 EdDSA"
	case "X25519":
		kty, crv, use = "OKP", "X25519", "enc"
	default:
		use = "enc"
	}
	switch {
	case j.Text["kty"] != kty:
		return nil, badData("the kty of the key must be %q", kty)
	case j.Text["crv"] != crv:
		return nil, badData("the crv of the key must be %q", crv)
	}
	if err := j.check(alg, use, k.Extractable, usages); err != nil {
		return nil, err
	}
	point, ok := j.bytes("x")
	if kty == "EC" {
		y, hasY := j.bytes("y")
		curve, err := curveOf(crv)
		if err != nil {
			return nil, err
		}
		size := (curve.Params().BitSize + 7) / 8
		ok = ok && hasY && len(point) == size && len(y) == size
		point = append(append([]byte{4}, point...), y...)
	}
	if !ok {
		return nil, badData("the point of the key is not of its curve")
	}
	public, err := k.fromPoint(point)
	if err != nil || k.Type == Public {
		return public, err
	}
	d, ok := j.bytes("d")
	if !ok {
		return nil, badData("the member d of the key must be base64url")
	}
	return k.fromScalar(d, public)
}

// fromScalar reads a private key without a frame, which must be that of a public one.
func (k *Key) fromScalar(d []byte, public any) (any, error) {
	mismatch := badData("the private key is not that of the public key")
	switch p := public.(type) {
	case ed25519.PublicKey:
		if len(d) != ed25519.SeedSize {
			return nil, badData("the private key must have 32 bytes, not %d", len(d))
		}
		private := ed25519.NewKeyFromSeed(d)
		if !bytes.Equal(private[ed25519.SeedSize:], p) {
			return nil, mismatch
		}
		return private, nil
	case *ecdh.PublicKey:
		private, err := ecdh.X25519().NewPrivateKey(d)
		if err == nil && !private.PublicKey().Equal(p) {
			return nil, mismatch
		}
		return private, err
	case *ecdsa.PublicKey:
		private, err := ecdsa.ParseRawPrivateKey(p.Curve, d)
		if err == nil && !private.PublicKey.Equal(p) {
			return nil, mismatch
		}
		return private, err
	}
	return nil, mismatch
}

// exportPair returns a key of a pair in a format.
func (k *Key) exportPair(format string) (Material, error) {
	switch format {
	case SPKI:
		if k.Type != Public {
			return Material{}, invalidAccess("the format spki is for public keys")
		}
		der, err := x509.MarshalPKIXPublicKey(k.pair)
		return material(der, err)
	case PKCS8:
		if k.Type != Private {
			return Material{}, invalidAccess("the format pkcs8 is for private keys")
		}
		der, err := x509.MarshalPKCS8PrivateKey(k.pair)
		return material(der, err)
	case JWKFormat:
		if _, ok := PublicPart(k.pair).(*rsa.PublicKey); ok {
			return Material{JWK: k.webRSA()}, nil
		}
		return k.curveToJWK()
	case Raw:
		if k.Type != Public {
			return Material{}, invalidAccess("the format raw is for public keys")
		}
		switch public := k.pair.(type) {
		case ed25519.PublicKey:
			return Material{Bytes: bytes.Clone(public)}, nil
		case *ecdh.PublicKey:
			return Material{Bytes: public.Bytes()}, nil
		case *ecdsa.PublicKey:
			point, err := public.Bytes()
			return material(point, err)
		}
	}
	return Material{}, notSupported("a key of %s cannot be exported as %s", k.Algorithm.Name, format)
}

func material(b []byte, err error) (Material, error) {
	if err != nil {
		return Material{}, operation("%v", err)
	}
	return Material{Bytes: b}, nil
}

// curveToJWK makes a JSON Web Key.
func (k *Key) curveToJWK() (Material, error) {
	j := k.newJWK("OKP")
	j.Text["crv"] = k.Algorithm.Name
	switch public := PublicPart(k.pair).(type) {
	case ed25519.PublicKey:
		j.Text["alg"] = "Ed25519"
		j.setBytes("x", public)
	case *ecdh.PublicKey:
		j.setBytes("x", public.Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			return Material{}, operation("%v", err)
		}
		half := len(point) / 2
		j.Text["kty"], j.Text["crv"] = "EC", k.Algorithm.Curve
		j.setBytes("x", point[1:1+half])
		j.setBytes("y", point[1+half:])
	}
	switch private := k.pair.(type) {
	case ed25519.PrivateKey:
		j.setBytes("d", private.Seed())
	case *ecdh.PrivateKey:
		j.setBytes("d", private.Bytes())
	case *ecdsa.PrivateKey:
		d, err := private.Bytes()
		if err != nil {
			return Material{}, operation("%v", err)
		}
		j.setBytes("d", d)
	}
	return Material{JWK: j}, nil
}

// numbers are those of an ECDSA signature.
type numbers struct{ R, S *big.Int }

func (k *Key) signCurve(p *Params, data []byte) ([]byte, error) {
	switch private := k.pair.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(private, data), nil
	case *ecdsa.PrivateKey:
		der, err := ecdsa.SignASN1(rand.Reader, private, Digest(p.Hash, data))
		var n numbers
		if err == nil {
			_, err = asn1.Unmarshal(der, &n)
		}
		if err != nil {
			return nil, operation("%v", err)
		}
		size := (private.Curve.Params().BitSize + 7) / 8
		return append(n.R.FillBytes(make([]byte, size)), n.S.FillBytes(make([]byte, size))...), nil
	}
	return nil, invalidAccess("the key is not private")
}

func (k *Key) verifyCurve(p *Params, signature, data []byte) bool {
	switch public := k.pair.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(public, data, signature)
	case *ecdsa.PublicKey:
		size := (public.Curve.Params().BitSize + 7) / 8
		if len(signature) != 2*size {
			return false
		}
		der, err := asn1.Marshal(numbers{new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])})
		return err == nil && ecdsa.VerifyASN1(public, Digest(p.Hash, data), der)
	}
	return false
}

// exchange derives the secret that two keys have in common.
func (k *Key) exchange(p *Params, length *int) ([]byte, error) {
	other := p.Public
	switch {
	case k.Type != Private:
		return nil, invalidAccess("the key is not private")
	case other.Type != Public:
		return nil, invalidAccess("the other key is not public")
	case other.Algorithm.Name != k.Algorithm.Name || other.Algorithm.Curve != k.Algorithm.Curve:
		return nil, invalidAccess("the keys are not of one algorithm and curve")
	}
	private, ok := k.pair.(*ecdh.PrivateKey)
	public, ok2 := other.pair.(*ecdh.PublicKey)
	var err error
	if p.Name == "ECDH" {
		a, okA := k.pair.(*ecdsa.PrivateKey)
		b, okB := other.pair.(*ecdsa.PublicKey)
		ok, ok2 = okA, okB
		if okA && okB {
			private, err = a.ECDH()
			if err == nil {
				public, err = b.ECDH()
			}
		}
	}
	if !ok || !ok2 || err != nil {
		return nil, operation("the keys cannot be used")
	}
	secret, err := private.ECDH(public)
	if err != nil {
		return nil, operation("%v", err)
	}
	if length == nil {
		return secret, nil
	}
	if *length < 0 || *length > len(secret)*8 {
		return nil, operation("the secret has %d bits, not %d", len(secret)*8, *length)
	}
	secret = secret[:(*length+7)/8]
	clearAfter(secret, *length)
	return secret, nil
}
