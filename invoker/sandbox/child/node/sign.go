package node

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"math/big"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/webcrypto"
)

// RSA paddings, by their numbers in OpenSSL.
const (
	paddingPKCS1 = 1
	paddingOAEP  = 4
	paddingPSS   = 6
)

// cryptoHash returns the hash of a name as signatures know it, 0 if there is none.
func cryptoHash(name string) crypto.Hash {
	name = strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(name), "sha-", "sha"), "rsa-")
	return map[string]crypto.Hash{
		"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256,
		"sha384": crypto.SHA384, "sha512": crypto.SHA512, "sha512-256": crypto.SHA512_256,
		"sha3-256": crypto.SHA3_256, "sha3-384": crypto.SHA3_384, "sha3-512": crypto.SHA3_512,
	}[name]
}

// signature is what sign and verify have in common: (key, digest, data, padding, length of
// the salt, whether an ECDSA signature is r and s without ASN.1, …).
type signature struct {
	key    any
	hash   crypto.Hash
	data   []byte
	digest []byte
	pss    *rsa.PSSOptions
	plain  bool
}

func newSignature(vm *goja.Runtime, call goja.FunctionCall) signature {
	s := signature{key: kept[any](vm, call.Argument(0)), data: bytesOf(vm, call.Argument(2)), plain: call.Argument(5).ToBoolean()}
	switch webcrypto.PublicPart(s.key).(type) {
	case ed25519.PublicKey:
		return s
	case *ecdh.PublicKey:
		panic(failure(vm, "Error", "ERR_OSSL_EVP_OPERATION_NOT_SUPPORTED_FOR_THIS_KEYTYPE", "operation not supported for this keytype"))
	}
	name := "sha256"
	if given(call, 1) {
		name = text(call, 1)
	}
	s.hash = cryptoHash(name)
	if s.hash == 0 {
		panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_DIGEST", "Invalid digest: "+name))
	}
	h := mustDigest(vm, name)()
	h.Write(s.data)
	s.digest = h.Sum(nil)
	switch padding := integer(call, 3); padding {
	case 0, paddingPKCS1:
	case paddingPSS:
		salt := rsa.PSSSaltLengthAuto
		if given(call, 4) && integer(call, 4) != -2 {
			salt = integer(call, 4) // -1 is that of the hash here, too
		}
		s.pss = &rsa.PSSOptions{SaltLength: salt, Hash: s.hash}
	default:
		panic(failure(vm, "Error", "ERR_OSSL_RSA_ILLEGAL_OR_UNSUPPORTED_PADDING_MODE", "illegal or unsupported padding mode"))
	}
	return s
}

func sign(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	s := newSignature(vm, call)
	var out []byte
	var err error
	switch k := s.key.(type) {
	case *rsa.PrivateKey:
		if s.pss != nil {
			out, err = rsa.SignPSS(rand.Reader, k, s.hash, s.digest, s.pss)
		} else {
			out, err = rsa.SignPKCS1v15(nil, k, s.hash, s.digest)
		}
	case *ecdsa.PrivateKey:
		out, err = ecdsa.SignASN1(rand.Reader, k, s.digest)
		if err == nil && s.plain {
			out, err = plainSignature(out, (k.Curve.Params().BitSize+7)/8)
		}
	case ed25519.PrivateKey:
		out = ed25519.Sign(k, s.data)
	default:
		err = errKeyType
	}
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_OPERATION_FAILED", "sign: "+err.Error()))
	}
	return buffer(vm, out)
}

// points are the numbers of an ECDSA signature.
type points struct{ R, S *big.Int }

// plainSignature turns an ASN.1 signature into r and s, each of size bytes.
func plainSignature(der []byte, size int) ([]byte, error) {
	var p points
	if _, err := asn1.Unmarshal(der, &p); err != nil {
		return nil, err
	}
	return append(p.R.FillBytes(make([]byte, size)), p.S.FillBytes(make([]byte, size))...), nil
}

// verify has the signature as the seventh argument.
func verify(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	s, sig := newSignature(vm, call), bytesOf(vm, call.Argument(6))
	ok := false
	switch k := webcrypto.PublicPart(s.key).(type) {
	case *rsa.PublicKey:
		if s.pss != nil {
			ok = rsa.VerifyPSS(k, s.hash, s.digest, sig, s.pss) == nil
		} else {
			ok = rsa.VerifyPKCS1v15(k, s.hash, s.digest, sig) == nil
		}
	case *ecdsa.PublicKey:
		if s.plain {
			size := (k.Curve.Params().BitSize + 7) / 8
			if len(sig) != 2*size {
				return vm.ToValue(false)
			}
			der, err := asn1.Marshal(points{new(big.Int).SetBytes(sig[:size]), new(big.Int).SetBytes(sig[size:])})
			if err != nil {
				return vm.ToValue(false)
			}
			sig = der
		}
		ok = ecdsa.VerifyASN1(k, s.digest, sig)
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, s.data, sig)
	}
	return vm.ToValue(ok)
}

// rsaEncrypt is (key, view, padding, digest, label).
func rsaEncrypt(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	k, ok := webcrypto.PublicPart(kept[any](vm, call.Argument(0))).(*rsa.PublicKey)
	if !ok {
		panic(failure(vm, "Error", "ERR_CRYPTO_INCOMPATIBLE_KEY", "the key is not an RSA key"))
	}
	var out []byte
	var err error
	if integer(call, 2) == paddingOAEP {
		out, err = rsa.EncryptOAEP(mustDigest(vm, text(call, 3))(), rand.Reader, k, bytesOf(vm, call.Argument(1)), bytesOf(vm, call.Argument(4)))
	} else {
		out, err = rsa.EncryptPKCS1v15(rand.Reader, k, bytesOf(vm, call.Argument(1))) //nolint:staticcheck // it is what the script asked for
	}
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_OPERATION_FAILED", "publicEncrypt: "+err.Error()))
	}
	return buffer(vm, out)
}

func rsaDecrypt(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	k, ok := kept[any](vm, call.Argument(0)).(*rsa.PrivateKey)
	if !ok {
		panic(failure(vm, "Error", "ERR_CRYPTO_INCOMPATIBLE_KEY", "the key is not a private RSA key"))
	}
	var out []byte
	var err error
	if integer(call, 2) == paddingOAEP {
		out, err = rsa.DecryptOAEP(mustDigest(vm, text(call, 3))(), nil, k, bytesOf(vm, call.Argument(1)), bytesOf(vm, call.Argument(4)))
	} else {
		out, err = rsa.DecryptPKCS1v15(nil, k, bytesOf(vm, call.Argument(1))) //nolint:staticcheck // it is what the script asked for
	}
	if err != nil {
		panic(failure(vm, "Error", "ERR_OSSL_RSA_OAEP_DECODING_ERROR", "oaep decoding error"))
	}
	return buffer(vm, out)
}

// exchange returns a key for an exchange of keys.
func exchange(key any) (private *ecdh.PrivateKey, public *ecdh.PublicKey) {
	switch k := key.(type) {
	case *ecdh.PrivateKey:
		return k, k.PublicKey()
	case *ecdh.PublicKey:
		return nil, k
	case *ecdsa.PrivateKey:
		private, _ = k.ECDH() // fails for P-224, and is nil then
		if private != nil {
			public = private.PublicKey()
		}
	case *ecdsa.PublicKey:
		public, _ = k.ECDH()
	}
	return private, public
}

// sharedSecret is (private key, public key).
func sharedSecret(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	private, _ := exchange(kept[any](vm, call.Argument(0)))
	_, public := exchange(kept[any](vm, call.Argument(1)))
	if private == nil || public == nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_INCOMPATIBLE_KEY", "Incompatible key types for an exchange of keys"))
	}
	secret, err := private.ECDH(public)
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_INCOMPATIBLE_KEY", err.Error()))
	}
	return buffer(vm, secret)
}

// pointOf is (key, whether the private part is meant): the key without a frame.
func pointOf(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	private, public := exchange(kept[any](vm, call.Argument(0)))
	switch {
	case public == nil:
		panic(failure(vm, "Error", "ERR_CRYPTO_INVALID_CURVE", "the curve has no exchange of keys"))
	case call.Argument(1).ToBoolean() && private != nil:
		return buffer(vm, private.Bytes())
	}
	return buffer(vm, public.Bytes())
}

// keyOfPoint is (curve, view, whether it is a private key).
func keyOfPoint(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	curve, raw := curveNamed(text(call, 0)), bytesOf(vm, call.Argument(1))
	if curve == nil {
		panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_CURVE", "Invalid EC curve name"))
	}
	var key any
	var err error
	if call.Argument(2).ToBoolean() {
		key, err = ecdsa.ParseRawPrivateKey(curve, raw)
	} else {
		key, err = ecdsa.ParseUncompressedPublicKey(curve, raw)
	}
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY", "the key is not valid for the curve"))
	}
	return keep(vm, key)
}
