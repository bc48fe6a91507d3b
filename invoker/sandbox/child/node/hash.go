package node

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"crypto/subtle"
	"encoding"
	"hash"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/ripemd160" //nolint:staticcheck // it is what the script asked for
	"golang.org/x/crypto/scrypt"
)

// digests are the hashes by their names in OpenSSL.
func digests() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{
		"md5": md5.New, "sha1": sha1.New, "ripemd160": ripemd160.New,
		"sha224": sha256.New224, "sha256": sha256.New,
		"sha384": sha512.New384, "sha512": sha512.New, "sha512-224": sha512.New512_224, "sha512-256": sha512.New512_256,
		"sha3-224":   func() hash.Hash { return sha3.New224() },
		"sha3-256":   func() hash.Hash { return sha3.New256() },
		"sha3-384":   func() hash.Hash { return sha3.New384() },
		"sha3-512":   func() hash.Hash { return sha3.New512() },
		"blake2b512": func() hash.Hash { h, _ := blake2b.New512(nil); return h }, // fails only with a key
		"blake2s256": func() hash.Hash { h, _ := blake2s.New256(nil); return h },
	}
}

// digestOf returns the hash of a name, nil if it is not known.
func digestOf(name string) func() hash.Hash {
	name = strings.ToLower(name)
	switch name {
	case "rsa-sha1", "rsa-sha256", "rsa-sha224", "rsa-sha384", "rsa-sha512", "rsa-md5":
		name = strings.TrimPrefix(name, "rsa-")
	case "sha-1", "sha-224", "sha-256", "sha-384", "sha-512":
		name = strings.Replace(name, "-", "", 1)
	case "sha512/256", "sha512/224":
		name = strings.Replace(name, "/", "-", 1)
	case "rmd160", "ripemd":
		name = "ripemd160"
	}
	return digests()[name]
}

func mustDigest(vm *goja.Runtime, name string) func() hash.Hash {
	h := digestOf(name)
	if h == nil {
		panic(failure(vm, "TypeError", "ERR_CRYPTO_INVALID_DIGEST", "Invalid digest: "+name))
	}
	return h
}

func cryptoNatives() map[string]native {
	functions := map[string]native{
		// hash is (name): a hash that update adds to.
		"hash": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			h := digestOf(text(call, 0))
			if h == nil {
				panic(failure(vm, "Error", "ERR_OSSL_EVP_UNSUPPORTED", "Digest method not supported"))
			}
			return keep(vm, h())
		},
		"hmac": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			h := digestOf(text(call, 0))
			if h == nil {
				panic(failure(vm, "Error", "ERR_CRYPTO_INVALID_DIGEST", "Invalid digest: "+text(call, 0)))
			}
			return keep(vm, hmac.New(h, bytesOf(vm, call.Argument(1))))
		},
		// update is (hash, view or text).
		"update": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			h := kept[hash.Hash](vm, call.Argument(0))
			if s, ok := call.Argument(1).(goja.String); ok {
				h.Write([]byte(s.String()))
			} else {
				h.Write(bytesOf(vm, call.Argument(1)))
			}
			return goja.Undefined()
		},
		"digest": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return buffer(vm, kept[hash.Hash](vm, call.Argument(0)).Sum(nil))
		},
		"copyHash": copyHash,
		"hashes": func(vm *goja.Runtime, _ goja.FunctionCall) goja.Value {
			var names []string
			for name := range digests() {
				names = append(names, name)
			}
			slices.Sort(names)
			return vm.ToValue(names)
		},
		"random": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			if _, err := rand.Read(bytesOf(vm, call.Argument(0))); err != nil {
				panic(failure(vm, "Error", "ERR_CRYPTO_OPERATION_FAILED", "no randomness: "+err.Error()))
			}
			return goja.Undefined()
		},
		"equal": func(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
			return vm.ToValue(subtle.ConstantTimeCompare(bytesOf(vm, call.Argument(0)), bytesOf(vm, call.Argument(1))) == 1)
		},
		"pbkdf2": pbkdf2Key, "hkdf": hkdfKey, "scrypt": scryptKey,
	}
	for name, f := range cipherNatives() {
		functions[name] = f
	}
	for name, f := range keyNatives() {
		functions[name] = f
	}
	return functions
}

// buffer makes an ArrayBuffer of b, which is not used otherwise.
func buffer(vm *goja.Runtime, b []byte) goja.Value { return vm.ToValue(vm.NewArrayBuffer(b)) }

// copyHash is (name, hash): another with the same state. The hashes of the x/crypto modules
// and of the standard library keep it in a form of their own.
func copyHash(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	from, ok := kept[hash.Hash](vm, call.Argument(1)).(encoding.BinaryMarshaler)
	into := mustDigest(vm, text(call, 0))()
	to, ok2 := into.(encoding.BinaryUnmarshaler)
	if ok && ok2 {
		if state, err := from.MarshalBinary(); err == nil && to.UnmarshalBinary(state) == nil {
			return keep(vm, into)
		}
	}
	panic(failure(vm, "Error", "ERR_CS_UNSUPPORTED", "node:crypto: copy of a "+text(call, 0)+" hash is not available in functions"))
}

// pbkdf2Key is (password, salt, iterations, length, digest).
func pbkdf2Key(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	h := mustDigest(vm, text(call, 4))
	key, err := pbkdf2.Key(h, string(bytesOf(vm, call.Argument(0))), bytesOf(vm, call.Argument(1)), integer(call, 2), integer(call, 3))
	return derived(vm, key, err)
}

// hkdfKey is (digest, key, salt, info, length).
func hkdfKey(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	h := mustDigest(vm, text(call, 0))
	size := integer(call, 4)
	if size > 255*h().Size() {
		panic(failure(vm, "RangeError", "ERR_CRYPTO_INVALID_KEYLEN", "Invalid key length"))
	}
	key, err := hkdf.Key(h, bytesOf(vm, call.Argument(1)), bytesOf(vm, call.Argument(2)), string(bytesOf(vm, call.Argument(3))), size)
	return derived(vm, key, err)
}

// scryptKey is (password, salt, length, cost, block size, parallelization, maximal memory).
func scryptKey(vm *goja.Runtime, call goja.FunctionCall) goja.Value {
	n, r, p := integer(call, 3), integer(call, 4), integer(call, 5)
	if n < 2 || r < 1 || p < 1 || n&(n-1) != 0 || 128*n*r > integer(call, 6) {
		panic(failure(vm, "RangeError", "ERR_CRYPTO_INVALID_SCRYPT_PARAMS", "Invalid scrypt params: memory limit exceeded or cost not a power of two"))
	}
	key, err := scrypt.Key(bytesOf(vm, call.Argument(0)), bytesOf(vm, call.Argument(1)), n, r, p, integer(call, 2))
	return derived(vm, key, err)
}

func derived(vm *goja.Runtime, key []byte, err error) goja.Value {
	if err != nil {
		panic(failure(vm, "Error", "ERR_CRYPTO_OPERATION_FAILED", "key derivation: "+err.Error()))
	}
	return buffer(vm, key)
}
