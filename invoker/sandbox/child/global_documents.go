package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csDocuments is cs.storage, the document storage. Each operation takes its request as one
// object, the same as the body of the REST route of that name.
func csDocuments(r *realm) goja.Value {
	return r.newNamespace([]row{
		documentRow(wire.DocumentPut, documentsReply),
		documentRow(wire.DocumentGet, documentsDocument),
		documentRow(wire.DocumentList, documentsPage),
		documentRow(wire.DocumentDelete, documentsNothing),
		documentRow(wire.DocumentBulkPut, documentsReply),
		documentRow(wire.DocumentTransact, documentsReply),
	})
}

// documentRow makes the row of an operation. Its request travels as a value does, because
// the bytes of a document count as the script wrote them.
//
// answer makes the value of the reply, as wire declares it for each operation.
func documentRow(declared wire.DocumentCall, answer func(r *realm, head, blob []byte) goja.Value) row {
	op := declared.Op
	return row{op, function(op, 1, func(r *realm, call goja.FunctionCall) goja.Value {
		return r.promised(func() *deferred {
			request, ok, err := r.encodeJSON(call.Argument(0), wire.MaxCallBlob)
			switch {
			case err == nil && !ok:
				r.badRequest("cs.storage." + op + ": the request must be an object")
			case notEncodable(err):
				r.badRequest("cs.storage." + op + ": the request is not JSON: " + err.Error())
			default:
				must(err)
			}
			d, _ := r.call(declared.Name(), wire.None{}, request, func(head, blob []byte) goja.Value { return answer(r, head, blob) })
			return d
		})
	})}
}

// badRequest throws that a request of the document storage is not of its form, as the
// storage does.
func (r *realm) badRequest(message string) {
	e := r.newError(api.CodeDocumentInvalid, message)
	must(e.DefineDataProperty("status", r.vm.ToValue(400), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	panic(e)
}

// documentsReply answers a result that travels as the head.
func documentsReply(r *realm, head, _ []byte) goja.Value { return r.parsed(head) }

// documentsPage answers a page, which travels as the blob.
func documentsPage(r *realm, _, blob []byte) goja.Value { return r.parsed(blob) }

// documentsNothing answers an operation without a result.
func documentsNothing(*realm, []byte, []byte) goja.Value { return goja.Undefined() }

// documentsDocument adds a document's value, which the reply carries as its blob.
func documentsDocument(r *realm, head, blob []byte) goja.Value {
	document, ok := r.parsed(head).(*goja.Object)
	if !ok {
		panic(r.newError(api.CodeInternal, "the host's answer cannot be read"))
	}
	must(document.Set("value", r.parsed(blob)))
	return document
}
