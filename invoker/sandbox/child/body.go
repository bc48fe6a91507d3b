package child

import (
	"bytes"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
)

// body is the body of a Request or a Response (https://fetch.spec.whatwg.org/#body-mixin).
// It is whole when a script gets it, so reading settles without waiting.
type body struct {
	data   []byte
	null   bool // there is none, not even an empty one
	used   bool
	stream goja.Value // what the member body shows; nil until it was read
}

// bodied is a Request or a Response, which share the members of bodyMembers.
type bodied interface {
	content() *body
	headerList() *headers
}

// bodyOf returns the body for v, a BodyInit (https://fetch.spec.whatwg.org/#bodyinit-unions),
// and the content type that it implies, "" for none. It accepts URLSearchParams, an
// ArrayBuffer or a view of one, which it copies, what webBody accepts, and takes any other
// value as text. The body for undefined and null is null.
func (r *realm) bodyOf(v goja.Value) (b *body, contentType string) {
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return &body{null: true}, ""
	}
	if p, ok := stateOf[*params](v); ok {
		return &body{data: []byte(encodeForm(p.list))}, "application/x-www-form-urlencoded;charset=UTF-8"
	}
	if data, ok := bufferSource(v); ok {
		return &body{data: bytes.Clone(data)}, ""
	}
	if data, contentType, ok := r.webBody(v); ok {
		return &body{data: data}, contentType
	}
	return &body{data: []byte(v.String())}, "text/plain;charset=UTF-8"
}

// take returns the data and marks the body as used. A second call throws a TypeError, because
// the body is unusable (https://fetch.spec.whatwg.org/#body-unusable). A null body can be
// read any number of times.
func (b *body) take(r *realm) []byte {
	if b.used {
		panic(r.vm.NewTypeError("Body is unusable: it has already been read"))
	}
	b.used = !b.null
	return b.data
}

// bodyMembers are the members that Request and Response share: headers, bodyUsed, text,
// json, arrayBuffer and bytes. The four methods return promises, which reject if the body
// was read before, and json also if it is not JSON.
func bodyMembers[T bodied]() []member[T] {
	read := func(name string, convert func(r *realm, data []byte) goja.Value) member[T] {
		return member[T]{name: name, call: func(r *realm, this T, _ goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				data := this.content().take(r)
				d := r.newDeferred()
				must(d.settle(r, func() goja.Value { return convert(r, data) }))
				return d
			})
		}}
	}
	return []member[T]{
		{name: "headers", get: func(r *realm, this T) goja.Value {
			h := this.headerList()
			if h.object == nil {
				h.object = headersClass().instance(r, h)
			}
			return h.object
		}},
		{name: "bodyUsed", get: func(r *realm, this T) goja.Value { return r.vm.ToValue(this.content().used) }},
		read("text", func(r *realm, data []byte) goja.Value { return r.vm.ToValue(decodedText(data)) }),
		read("json", func(r *realm, data []byte) goja.Value {
			return r.parsed(bytes.TrimPrefix(data, []byte("\ufeff")))
		}),
		read("arrayBuffer", func(r *realm, data []byte) goja.Value {
			return r.vm.ToValue(r.vm.NewArrayBuffer(bytes.Clone(data)))
		}),
		read("bytes", func(r *realm, data []byte) goja.Value { return r.newBytes(bytes.Clone(data)) }),
		{name: "blob", call: func(r *realm, this T, _ goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				data := r.newBytes(bytes.Clone(this.content().take(r)))
				contentType, _ := this.headerList().get("content-type")
				d := r.newDeferred()
				must(d.resolve(r.callBuiltin("internal/web", "blobOf", data, r.vm.ToValue(contentType))))
				return d
			})
		}},
		{name: "body", get: func(r *realm, this T) goja.Value { return this.content().streamed(r) }},
	}
}

// streamed returns the body as a stream, null if there is none. The stream has the data as
// one chunk, and uses the body when that is read.
func (b *body) streamed(r *realm) goja.Value {
	if b.null {
		return goja.Null()
	}
	if b.stream == nil {
		b.stream = r.callBuiltin("internal/webstreams", "bodyStream", r.newFunction("take", 0, func(goja.FunctionCall) goja.Value {
			return r.newBytes(bytes.Clone(b.take(r)))
		}))
	}
	return b.stream
}

// decodedText decodes UTF-8 as text() does: without its byte order mark, and with U+FFFD in
// place of each maximal invalid part.
func decodedText(data []byte) string {
	return encoding.DecodeUTF8(bytes.TrimPrefix(data, []byte("\ufeff")))
}
