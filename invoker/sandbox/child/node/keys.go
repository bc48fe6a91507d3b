package node

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/webcrypto"
)

func keyNatives() map[string]native {
	return map[string]native{
		"readKey": readKey, "exportKey": exportKey, "keyInfo": keyInfo, "publicOf": publicOf,
		"fromJWK": fromJWK, "toJWK": toJWK, "generateKey": generateKey, "sameKey": sameKey,
		"sign": sign, "verify": verify, "rsaEncrypt": rsaEncrypt, "rsaDecrypt": rsaDecrypt,
		"sharedSecret": sharedSecret, "pointOf": pointOf, "keyOfPoint": keyOfPoint,
	}
}

func unreadable(vm *goja.Runtime, what string) *goja.Object {
	return failure(vm, "Error", "ERR_OSSL_UNSUPPORTED", what)
}

// readKey is (bytes, format "pem" or "der", type of a DER key, whether it is private).
func readKey(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	raw, private := bytesOf(vm, call.Argument(0)), call.Argument(3).ToBoolean()
	var kind string
	if text(call, 1) == "pem" {
		block, _ := pem.Decode(raw)
		if block == nil {
			panic(unreadable(vm, "error:1E08010C:DECODER routines::unsupported"))
		}
		if block.Headers["DEK-Info"] != "" || block.Type == "ENCRYPTED PRIVATE KEY" {
			panic(failure(vm, "Error", "ERR_CS_UNSUPPORTED", "node:crypto: an encrypted private key is not available in functions; decrypt it first"))
		}
		raw, kind = block.Bytes, block.Type
	} else {
		kind = map[string]string{
			"pkcs1": "RSA PUBLIC KEY", "spki": "PUBLIC KEY", "pkcs8": "PRIVATE KEY", "sec1": "EC PRIVATE KEY",
		}[text(call, 2)]
		if private && kind == "RSA PUBLIC KEY" {
			kind = "RSA PRIVATE KEY"
		}
	}
	key, err := parseKey(kind, raw)
	if err != nil {
		panic(unreadable(vm, "the key cannot be read: "+err.Error()))
	}
	if isPrivate(key) == private {
		return keep(vm, key)
	}
	if private {
		panic(unreadable(vm, "the key is not a private key"))
	}
	return keep(vm, webcrypto.PublicPart(key))
}

// parseKey reads the DER of a PEM type.
func parseKey(kind string, der []byte) (any, error) {
	switch kind {
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(der)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(der)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(der)
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(der)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(der)
	case "CERTIFICATE":
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		return c.PublicKey, nil
	}
	return nil, fmt.Errorf("the type %q is not supported", kind)
}

func isPrivate(key any) bool {
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey, *ecdh.PrivateKey:
		return true
	}
	return false
}

func publicOf(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	return keep(vm, webcrypto.PublicPart(kept[any](vm, call.Argument(0))))
}

func sameKey(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	a, ok := kept[any](vm, call.Argument(0)).(interface {
		Equal(x crypto.PrivateKey) bool
	})
	if ok {
		return vm.ToValue(a.Equal(kept[any](vm, call.Argument(1))))
	}
	b, ok := kept[any](vm, call.Argument(0)).(interface{ Equal(x crypto.PublicKey) bool })
	return vm.ToValue(ok && b.Equal(kept[any](vm, call.Argument(1))))
}

// exportKey is (key, type "pkcs1", "spki", "pkcs8" or "sec1", whether as PEM).
func exportKey(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	der, kind, err := marshalKey(kept[any](vm, call.Argument(0)), text(call, 1))
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS", "The selected key encoding "+text(call, 1)+" cannot hold the key"))
	}
	if call.Argument(2).ToBoolean() {
		return vm.ToValue(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	}
	return buffer(vm, der)
}

var errKeyType = errors.New("the type of the key does not fit")

func marshalKey(key any, as string) (der []byte, kind string, err error) {
	switch as {
	case "pkcs8":
		der, err = x509.MarshalPKCS8PrivateKey(key)
		return der, "PRIVATE KEY", err
	case "spki":
		der, err = x509.MarshalPKIXPublicKey(key)
		return der, "PUBLIC KEY", err
	case "sec1":
		if k, ok := key.(*ecdsa.PrivateKey); ok {
			der, err = x509.MarshalECPrivateKey(k)
			return der, "EC PRIVATE KEY", err
		}
	case "pkcs1":
		switch k := key.(type) {
		case *rsa.PrivateKey:
			return x509.MarshalPKCS1PrivateKey(k), "RSA PRIVATE KEY", nil
		case *rsa.PublicKey:
			return x509.MarshalPKCS1PublicKey(k), "RSA PUBLIC KEY", nil
		}
	}
	return nil, "", errKeyType
}

// curves are the elliptic curves by their names in OpenSSL, and in JSON Web Keys.
func curves() []struct {
	name, jwk string
	curve     elliptic.Curve
} {
	return []struct {
		name, jwk string
		curve     elliptic.Curve
	}{
		{"prime256v1", "P-256", elliptic.P256()}, {"secp384r1", "P-384", elliptic.P384()},
		{"secp521r1", "P-521", elliptic.P521()}, {"secp224r1", "P-224", elliptic.P224()},
	}
}

func curveNamed(name string) elliptic.Curve {
	for _, c := range curves() {
		if c.name == name || c.jwk == name {
			return c.curve
		}
	}
	return nil
}

// keyInfo is (key): [type, size or curve, exponent].
func keyInfo(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	switch k := webcrypto.PublicPart(kept[any](vm, call.Argument(0))).(type) {
	case *rsa.PublicKey:
		return vm.NewArray("rsa", k.N.BitLen(), k.E)
	case *ecdsa.PublicKey:
		for _, c := range curves() {
			if c.curve == k.Curve {
				return vm.NewArray("ec", c.name, c.jwk)
			}
		}
	case ed25519.PublicKey:
		return vm.NewArray("ed25519")
	case *ecdh.PublicKey:
		return vm.NewArray("x25519")
	}
	return vm.NewArray("unknown")
}

// generateKey is (type, size or curve).
func generateKey(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	var key any
	var err error
	switch kind := text(call, 0); kind {
	case "rsa":
		if bits := integer(call, 1); bits < 1024 || bits > 8192 {
			panic(failure(vm, "RangeError", "ERR_OUT_OF_RANGE", "the size of an RSA key must be from 1024 to 8192 bits"))
		}
		key, err = rsa.GenerateKey(rand.Reader, integer(call, 1))
	case "ec":
		curve := curveNamed(text(call, 1))
		if curve == nil {
			panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name"))
		}
		key, err = ecdsa.GenerateKey(curve, rand.Reader)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "x25519":
		key, err = ecdh.X25519().GenerateKey(rand.Reader)
	default:
		panic(failure(vm, "Error", "ERR_CS_UNSUPPORTED", "node:crypto: keys of type "+kind+" are not available in functions"))
	}
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_OPERATION_FAILED", err.Error()))
	}
	return keep(vm, key)
}

// jwk reads the members of a JSON Web Key.
type jwk struct {
	vm  *goja.Runtime
	obj *goja.Object
}

func (j jwk) text(name string) string {
	if v := j.obj.Get(name); v != nil && !goja.IsUndefined(v) {
		return v.String()
	}
	return ""
}

func (j jwk) bytes(name string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(j.text(name))
	if err != nil || len(b) == 0 {
		panic(failure(j.vm, "TypeError", "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data"))
	}
	return b
}

func (j jwk) number(name string) *big.Int { return new(big.Int).SetBytes(j.bytes(name)) }

// fromJWK is (key, whether it is to be private).
func fromJWK(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	j := jwk{vm, call.Argument(0).ToObject(vm)}
	private := call.Argument(1).ToBoolean()
	if private && j.text("d") == "" {
		panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data: it is not a private key"))
	}
	var key any
	var err error
	switch kty := j.text("kty"); kty {
	case "RSA":
		key, err = j.rsa(private)
	case "EC":
		key, err = j.ec(private)
	case "OKP":
		key, err = j.okp(private)
	default:
		err = fmt.Errorf("kty %q is not supported", kty)
	}
	if err != nil {
		panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_JWK", "Invalid JWK data: "+err.Error()))
	}
	return keep(vm, key)
}

func (j jwk) rsa(private bool) (any, error) {
	e := j.number("e")
	if !e.IsInt64() || e.Int64() > 1<<31-1 {
		return nil, errors.New("the exponent is too large")
	}
	public := rsa.PublicKey{N: j.number("n"), E: int(e.Int64())}
	if !private {
		return &public, nil
	}
	key := &rsa.PrivateKey{PublicKey: public, D: j.number("d"), Primes: []*big.Int{j.number("p"), j.number("q")}}
	key.Precompute()
	return key, key.Validate()
}

func (j jwk) ec(private bool) (any, error) {
	curve := curveNamed(j.text("crv"))
	if curve == nil {
		return nil, fmt.Errorf("the curve %q is not supported", j.text("crv"))
	}
	size := (curve.Params().BitSize + 7) / 8
	x, y := j.number("x"), j.number("y")
	if x.BitLen() > 8*size || y.BitLen() > 8*size {
		return nil, errors.New("the point is not on the curve")
	}
	point := append([]byte{4}, x.FillBytes(make([]byte, size))...)
	public, err := ecdsa.ParseUncompressedPublicKey(curve, append(point, y.FillBytes(make([]byte, size))...))
	if err != nil || !private {
		return public, err
	}
	d := j.number("d")
	if d.BitLen() > 8*size {
		return nil, errors.New("the private key is too large")
	}
	key, err := ecdsa.ParseRawPrivateKey(curve, d.FillBytes(make([]byte, size)))
	if err == nil && !key.PublicKey.Equal(public) {
		err = errors.New("the keys do not belong together")
	}
	return key, err
}

func (j jwk) okp(private bool) (any, error) {
	crv, x := j.text("crv"), j.bytes("x")
	switch {
	case crv == "Ed25519" && private:
		seed := j.bytes("d")
		if len(seed) != ed25519.SeedSize {
			return nil, errors.New("the private key must have 32 bytes")
		}
		return ed25519.NewKeyFromSeed(seed), nil
	case crv == "Ed25519":
		if len(x) != ed25519.PublicKeySize {
			return nil, errors.New("the public key must have 32 bytes")
		}
		return ed25519.PublicKey(x), nil
	case crv == "X25519" && private:
		return ecdh.X25519().NewPrivateKey(j.bytes("d"))
	case crv == "X25519":
		return ecdh.X25519().NewPublicKey(x)
	}
	return nil, fmt.Errorf("the curve %q is not supported", crv)
}

// toJWK is (key).
func toJWK(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	key := kept[any](vm, call.Argument(0))
	out := vm.NewObject()
	set := func(name string, b []byte) { must(out.Set(name, base64.RawURLEncoding.EncodeToString(b))) }
	kind := func(kty, crv string) {
		must(out.Set("kty", kty))
		if crv != "" {
			must(out.Set("crv", crv))
		}
	}
	switch k := webcrypto.PublicPart(key).(type) {
	case *rsa.PublicKey:
		kind("RSA", "")
		set("n", k.N.Bytes())
		set("e", big.NewInt(int64(k.E)).Bytes())
		if p, ok := key.(*rsa.PrivateKey); ok && len(p.Primes) == 2 {
			set("d", p.D.Bytes())
			set("p", p.Primes[0].Bytes())
			set("q", p.Primes[1].Bytes())
			set("dp", p.Precomputed.Dp.Bytes())
			set("dq", p.Precomputed.Dq.Bytes())
			set("qi", p.Precomputed.Qinv.Bytes())
		}
	case *ecdsa.PublicKey:
		for _, c := range curves() {
			if c.curve == k.Curve {
				kind("EC", c.jwk)
			}
		}
		point, err := k.Bytes()
		must(err)
		half := len(point) / 2
		set("x", point[1:1+half])
		set("y", point[1+half:])
		if p, ok := key.(*ecdsa.PrivateKey); ok {
			d, err := p.Bytes()
			must(err)
			set("d", d)
		}
	case ed25519.PublicKey:
		kind("OKP", "Ed25519")
		set("x", k)
		if p, ok := key.(ed25519.PrivateKey); ok {
			set("d", p.Seed())
		}
	case *ecdh.PublicKey:
		kind("OKP", "X25519")
		set("x", k.Bytes())
		if p, ok := key.(*ecdh.PrivateKey); ok {
			set("d", p.Bytes())
		}
	}
	return out
}
