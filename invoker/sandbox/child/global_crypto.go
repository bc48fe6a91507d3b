package child

import (
	"crypto/rand"

	"github.com/dop251/goja"
	"github.com/google/uuid"
)

// maxRandomBytes is the largest array, in bytes, that getRandomValues fills (WebCrypto
// 10.1.1).
const maxRandomBytes = 65536

// crypto is the Web Cryptography API (https://w3c.github.io/webcrypto/). Randomness is the
// kernel's, by the system call getrandom.
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
