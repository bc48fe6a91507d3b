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

// maxRandomBytes is the largest array that getRandomValues fills (WebCrypto 10.1.1).
const maxRandomBytes = 65536

// crypto is the part of WebCrypto (https://w3c.github.io/webcrypto/) that
// webhooks and tokens need.
func crypto(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"randomUUID", function("randomUUID", 0, randomUUID)},
		{"getRandomValues", function("getRandomValues", 1, getRandomValues)},
		{"subtle", subtle},
	})
}

func randomUUID(r *realm, _ goja.FunctionCall) goja.Value {
	id, err := uuid.NewRandom()
	if err != nil {
		panic(r.newDOMException("OperationError", "no randomness: "+err.Error()))
	}
	return r.vm.ToValue(id.String())
}

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

// cryptoKey is a CryptoKey: an HMAC key.
type cryptoKey struct {
	raw         []byte
	hash        string
	extractable bool
	usages      []string
}

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

// subtle is crypto.subtle; what it computes is ready at once, its promises settled.
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

// algorithm reads an AlgorithmIdentifier: a name or an object with one.
func (r *realm) algorithm(v goja.Value) string {
	if obj, ok := v.(*goja.Object); ok {
		v = orUndefined(obj.Get("name"))
	}
	return strings.ToUpper(v.String())
}

// hasher returns the hash of a name, which must be one of SHA's.
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

func (r *realm) bytesOf(v goja.Value, what string) []byte {
	data, ok := bufferSource(v)
	if !ok {
		panic(r.vm.NewTypeError("crypto.subtle.%s: the data must be an ArrayBuffer or a view of one", what))
	}
	return data
}

func digest(r *realm, call goja.FunctionCall) goja.Value {
	h := r.hasher(r.algorithm(call.Argument(0)))()
	h.Write(r.bytesOf(call.Argument(1), "digest"))
	return r.vm.ToValue(r.vm.NewArrayBuffer(h.Sum(nil)))
}

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

func exportKey(r *realm, call goja.FunctionCall) goja.Value {
	k := receiver[*cryptoKey](r, call.Argument(1), "CryptoKey")
	if !k.extractable || call.Argument(0).String() != "raw" {
		panic(r.newDOMException("InvalidAccessError", "exportKey: the key cannot be exported in that way"))
	}
	return r.vm.ToValue(r.vm.NewArrayBuffer(slices.Clone(k.raw)))
}

// keyFor takes the key of sign or verify, which must be meant for that.
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

func (k *cryptoKey) mac(r *realm, data []byte) []byte {
	m := hmac.New(r.hasher(k.hash), k.raw)
	m.Write(data)
	return m.Sum(nil)
}
