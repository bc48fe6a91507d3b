package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
)

// csStorage is the document storage. Each operation takes its request as one object.
func csStorage(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"put", storageOperation("put", storageReply)},
		{"get", storageOperation("get", storageDocument)},
		{"list", storageOperation("list", storagePage)},
		{"delete", storageOperation("delete", storageNothing)},
		{"bulkPut", storageOperation("bulkPut", storageReply)},
		{"transact", storageOperation("transact", storageReply)},
	})
}

// storageOperation makes an operation. Its request goes as a value does, so that the
// texts in it are counted as they are written.
func storageOperation(op string, decode func(r *realm, head, blob []byte) goja.Value) func(*realm) goja.Value {
	return function(op, 1, func(r *realm, call goja.FunctionCall) goja.Value {
		return r.promised(func() *deferred {
			request, ok, err := r.encodeJSON(call.Argument(0), maxBlob)
			switch {
			case err == nil && !ok:
				r.badRequest("cs.storage." + op + ": the request must be an object")
			case notEncodable(err):
				r.badRequest("cs.storage." + op + ": the request is not JSON: " + err.Error())
			default:
				must(err)
			}
			d, _ := r.call("storage."+op, struct{}{}, request, func(head, blob []byte) goja.Value { return decode(r, head, blob) })
			return d
		})
	})
}

// badRequest throws that a request of the document storage is not of its form, as the
// storage does.
func (r *realm) badRequest(message string) {
	e := r.newError(api.CodeValidationFailed, message)
	must(e.DefineDataProperty("status", r.vm.ToValue(400), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	panic(e)
}

func storageReply(r *realm, head, _ []byte) goja.Value { return r.parsed(head) }
func storagePage(r *realm, _, blob []byte) goja.Value  { return r.parsed(blob) }
func storageNothing(*realm, []byte, []byte) goja.Value { return goja.Undefined() }

// storageDocument puts a document's value, which came beside it, into its place.
func storageDocument(r *realm, head, blob []byte) goja.Value {
	document, ok := r.parsed(head).(*goja.Object)
	if !ok {
		panic(r.newError(api.CodeInternal, "the host's answer cannot be read"))
	}
	must(document.Set("value", r.parsed(blob)))
	return document
}
