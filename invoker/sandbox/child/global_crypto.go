package child

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/google/uuid"
)

// maxRandomBytes is the largest array, in bytes, that getRandomValues fills (WebCrypto
// 10.1.1).
const maxRandomBytes = 65536

// crypto is the part of WebCrypto (https://w3c.github.io/webcrypto/) that webhooks and
// tokens need: random values, digests, and HMAC. There are no ciphers and no asymmetric
// keys. Randomness is the kernel's, by the system call getrandom.
//
// A webhook's signature is checked by
//
//	const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret),
//		{name: "HMAC", hash: "SHA-256"}, false, ["verify"]);
//	const ok = await crypto.subtle.verify("HMAC", key, signature, body);
func crypto(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"randomUUID", function("randomUUID", 0, randomUUID)},
		{"getRandomValues", function("getRandomValues", 1, getRandomValues)},
		{"subtle", subtle},
	})
}

// randomUUID returns a random UUID (RFC 9562, version 4) in lower case.
func randomUUID(r *realm, _ goja.FunctionCall) goja.Value {
	id, err := uuid.NewRandom()
	if err != nil {
		panic(r.newDOMException("OperationError", "no randomness: "+err.Error()))
	}
	return r.vm.ToValue(id.String())
}

// getRandomValues fills a typed array and returns it. More than maxRandomBytes is a
// QuotaExceededError.
func getRandomValues(r *realm, call goja.FunctionCall) goja.Value {
	array := call.Argument(0)
	into, ok := bufferSource(array)
	if !ok || array.ExportType() == bufferType {
		panic(r.vm.NewTypeError("getRandomValues: the argument must be an integer typed array"))
	}
	if len(into) > maxRandomBytes {
		panic(r.newDOMException("QuotaExceededError", "getRandomValues: more than 65536 bytes were asked for"))
	}
	if _, err := rand.Read(into); err != nil {
		panic(r.newDOMException("OperationError", "no randomness: "+err.Error()))
	}
	return array
}

// cryptoKey is a CryptoKey: an HMAC key. hash is the name of its hash function, SHA-256 for
// example.
type cryptoKey struct {
	raw         []byte
	hash        string
	extractable bool
	usages      []string
}

// keyClass describes CryptoKey, whose objects only importKey makes.
func keyClass() *class[*cryptoKey] {
	return &class[*cryptoKey]{
		name: "CryptoKey",
		members: []member[*cryptoKey]{
			{name: "type", get: func(r *realm, _ *cryptoKey) goja.Value { return r.vm.ToValue("secret") }},
			{name: "extractable", get: func(r *realm, k *cryptoKey) goja.Value { return r.vm.ToValue(k.extractable) }},
			{name: "usages", get: func(r *realm, k *cryptoKey) goja.Value {
				values := []any{}
				for _, u := range k.usages {
					values = append(values, u)
				}
				return r.vm.NewArray(values...)
			}},
			{name: "algorithm", get: func(r *realm, k *cryptoKey) goja.Value {
				named := r.vm.NewObject()
				must(named.Set("name", k.hash))
				algorithm := r.vm.NewObject()
				must(algorithm.Set("name", "HMAC"))
				must(algorithm.Set("hash", named))
				must(algorithm.Set("length", len(k.raw)*8))
				return algorithm
			}},
		},
	}
}

// subtle is crypto.subtle. Its results are computed before its functions return, so their
// promises are settled, and a large input blocks the script until it is done.
func subtle(r *realm) goja.Value {
	promised := func(name string, length int, compute func(*realm, goja.FunctionCall) goja.Value) row {
		return row{name, function(name, length, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				v := compute(r, call)
				d := r.newDeferred()
				must(d.resolve(v))
				return d
			})
		})}
	}
	return r.newNamespace([]row{
		promised("digest", 2, digest),
		promised("importKey", 5, importKey),
		promised("exportKey", 2, exportKey),
		promised("sign", 3, func(r *realm, call goja.FunctionCall) goja.Value {
			k := r.keyFor(call, "sign")
			return r.vm.ToValue(r.vm.NewArrayBuffer(k.mac(r, r.bytesOf(call.Argument(2), "sign"))))
		}),
		promised("verify", 4, func(r *realm, call goja.FunctionCall) goja.Value {
			k := r.keyFor(call, "verify")
			mac := k.mac(r, r.bytesOf(call.Argument(3), "verify"))
			return r.vm.ToValue(hmac.Equal(mac, r.bytesOf(call.Argument(2), "verify")))
		}),
	})
}

// algorithm reads an AlgorithmIdentifier, a name or an object with one, and returns the
// name in upper case.
func (r *realm) algorithm(v goja.Value) string {
	if obj, ok := v.(*goja.Object); ok {
		v = orUndefined(obj.Get("name"))
	}
	return strings.ToUpper(v.String())
}

// hasher returns the hash of a name: SHA-1, SHA-256, SHA-384 or SHA-512. Other names are a
// NotSupportedError.
func (r *realm) hasher(name string) func() hash.Hash {
	switch name {
	case "SHA-1":
		return sha1.New
	case "SHA-256":
		return sha256.New
	case "SHA-384":
		return sha512.New384
	case "SHA-512":
		return sha512.New
	}
	panic(r.newDOMException("NotSupportedError", "the algorithm "+name+" is not supported; use SHA-1, SHA-256, SHA-384 or SHA-512"))
}

// bytesOf returns the bytes of an ArrayBuffer or a view, in place; what names the function
// in the TypeError for other values.
func (r *realm) bytesOf(v goja.Value, what string) []byte {
	data, ok := bufferSource(v)
	if !ok {
		panic(r.vm.NewTypeError("crypto.subtle.%s: the data must be an ArrayBuffer or a view of one", what))
	}
	return data
}

// digest is subtle.digest(algorithm, data).
func digest(r *realm, call goja.FunctionCall) goja.Value {
	h := r.hasher(r.algorithm(call.Argument(0)))()
	h.Write(r.bytesOf(call.Argument(1), "digest"))
	return r.vm.ToValue(r.vm.NewArrayBuffer(h.Sum(nil)))
}

// importKey is subtle.importKey("raw", data, {name: "HMAC", hash}, extractable, usages).
// Other formats and algorithms are a NotSupportedError; an empty key is a DataError.
func importKey(r *realm, call goja.FunctionCall) goja.Value {
	if format := call.Argument(0).String(); format != "raw" {
		panic(r.newDOMException("NotSupportedError", "importKey: the format "+format+" is not supported; use raw"))
	}
	algorithm, ok := call.Argument(2).(*goja.Object)
	if !ok || r.algorithm(algorithm) != "HMAC" {
		panic(r.newDOMException("NotSupportedError", "importKey: only HMAC keys are supported"))
	}
	k := &cryptoKey{
		raw:         slices.Clone(r.bytesOf(call.Argument(1), "importKey")),
		hash:        r.algorithm(orUndefined(algorithm.Get("hash"))),
		extractable: call.Argument(3).ToBoolean(),
	}
	r.hasher(k.hash)
	r.vm.ForOf(call.Argument(4), func(v goja.Value) bool {
		k.usages = append(k.usages, v.String())
		return true
	})
	if len(k.raw) == 0 {
		panic(r.newDOMException("DataError", "importKey: the key is empty"))
	}
	return keyClass().instance(r, k)
}

// exportKey is subtle.exportKey("raw", key), for a key that was imported as extractable.
func exportKey(r *realm, call goja.FunctionCall) goja.Value {
	k := receiver[*cryptoKey](r, call.Argument(1), "CryptoKey")
	if !k.extractable || call.Argument(0).String() != "raw" {
		panic(r.newDOMException("InvalidAccessError", "exportKey: the key cannot be exported in that way"))
	}
	return r.vm.ToValue(r.vm.NewArrayBuffer(slices.Clone(k.raw)))
}

// keyFor takes the key of sign or verify, which must have usage among its usages: otherwise
// an InvalidAccessError.
func (r *realm) keyFor(call goja.FunctionCall, usage string) *cryptoKey {
	if name := r.algorithm(call.Argument(0)); name != "HMAC" {
		panic(r.newDOMException("NotSupportedError", usage+": the algorithm "+name+" is not supported; use HMAC"))
	}
	k := receiver[*cryptoKey](r, call.Argument(1), "CryptoKey")
	if !slices.Contains(k.usages, usage) {
		panic(r.newDOMException("InvalidAccessError", "the key's usages do not include "+usage))
	}
	return k
}

// mac returns the HMAC of data (RFC 2104).
func (k *cryptoKey) mac(r *realm, data []byte) []byte {
	m := hmac.New(r.hasher(k.hash), k.raw)
	m.Write(data)
	return m.Sum(nil)
}
