package child

import (
	"crypto/rand"

	"github.com/dop251/goja"
	"github.com/google/uuid"
)

// maxRandomBytes is the largest array, in bytes, that getRandomValues fills (WebCrypto
// 10.1.1).
const maxRandomBytes = 65536

// cryptoClass describes the class of crypto, the Web Cryptography API (https://w3c.github.io/webcrypto/). Randomness is the
// kernel's, by the system call getrandom.
//
// A webhook's signature is checked by
//
//	const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret),
//		{name: "HMAC", hash: "SHA-256"}, false, ["verify"]);
//	const ok = await crypto.subtle.verify("HMAC", key, signature, body);
func cryptoClass() *class[*webCrypto] {
	return &class[*webCrypto]{
		name: "Crypto",
		members: []member[*webCrypto]{
			{name: "randomUUID", call: func(r *realm, _ *webCrypto, call goja.FunctionCall) goja.Value { return randomUUID(r, call) }},
			{name: "getRandomValues", length: 1, call: func(r *realm, _ *webCrypto, call goja.FunctionCall) goja.Value { return getRandomValues(r, call) }},
			{name: "subtle", get: func(r *realm, c *webCrypto) goja.Value {
				if c.subtle == nil {
					c.subtle = subtleClass().instance(r, subtleCrypto{})
				}
				return c.subtle
			}},
		},
	}
}

// webCrypto is the state of crypto, and subtleCrypto that of crypto.subtle, which has none.
type (
	webCrypto    struct{ subtle *goja.Object }
	subtleCrypto struct{}
)

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
	switch viewName(array.(*goja.Object)) {
	case "float32Array", "float64Array", "":
		panic(r.newDOMException("TypeMismatchError", "getRandomValues: the argument must be an integer typed array"))
	}
	if len(into) > maxRandomBytes {
		panic(r.newDOMException("QuotaExceededError", "getRandomValues: more than 65536 bytes were asked for"))
	}
	if _, err := rand.Read(into); err != nil {
		panic(r.newDOMException("OperationError", "no randomness: "+err.Error()))
	}
	return array
}
