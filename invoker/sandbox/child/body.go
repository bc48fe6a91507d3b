package child

import (
	"bytes"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/dataurl"
	"github.com/codesous/sous/invoker/sandbox/child/encoding"
)

// body is the body of a Request or a Response (https://fetch.spec.whatwg.org/#body-mixin).
// Most are whole when a script gets them, so reading settles without waiting. The body that a
// script makes of a stream is not: it is read to its end when the script asks for its
// content, or when it leaves the sandbox.
type body struct {
	data    []byte
	null    bool // there is none, not even an empty one
	used    bool
	flowing bool         // the content is that of stream, and data is empty
	abort   *abortion    // of the exchange that data came from, nil without a signal
	stream  *goja.Object // what the member body shows; nil until it was read
}

// abortion is what the signal of an exchange has done to a body of it that is whole, and to copies
// of that body.
type abortion struct {
	reason goja.Value // nil until the signal aborts
}

// bodied is a Request or a Response, which share the members of bodyMembers.
type bodied interface {
	content() *body
	headerList() *headers
}

// unlimited is the limit of a body that stays in the sandbox: the memory limit holds.
const unlimited = -1

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
	if b, contentType, ok := r.webBody(v); ok {
		return b, contentType
	}
	return &body{data: []byte(r.text(v).String())}, "text/plain;charset=UTF-8"
}

// usable throws a TypeError if the body was read, or its stream has a reader
// (https://fetch.spec.whatwg.org/#body-unusable). A null body can be read any number of
// times.
func (b *body) usable(r *realm) {
	if b.isUsed(r) {
		panic(r.vm.NewTypeError("Body is unusable: it has already been read"))
	}
	if b.stream != nil && r.callBuiltin("internal/webstreams", "isLocked", b.stream).ToBoolean() {
		panic(r.vm.NewTypeError("Body is unusable: its stream has a reader"))
	}
}

// isUsed is the member bodyUsed.
func (b *body) isUsed(r *realm) bool {
	return b.used || b.stream != nil && r.callBuiltin("internal/webstreams", "isDisturbed", b.stream).ToBoolean()
}

// take moves the content to another body: b counts as read.
func (b *body) take(r *realm) *body {
	b.usable(r)
	b.used = !b.null
	b.lock(r)
	if b.flowing {
		return &body{flowing: true, stream: b.stream}
	}
	return &body{data: b.data, null: b.null}
}

// copy returns a body with the same content, which can be read as well as b. The bytes of a
// whole body are shared, and never changed.
func (b *body) copy(r *realm) *body {
	b.usable(r)
	if !b.flowing {
		return &body{data: b.data, null: b.null, abort: b.abort}
	}
	var mine, theirs *goja.Object
	if branches, ok := r.callBuiltin("internal/webstreams", "tee", b.stream).(*goja.Object); ok {
		mine, _ = branches.Get("0").(*goja.Object)
		theirs, _ = branches.Get("1").(*goja.Object)
	}
	if mine == nil || theirs == nil { // the script replaced what a stream is made of
		panic(r.vm.NewTypeError("the body's stream cannot be copied"))
	}
	b.stream = mine
	return &body{flowing: true, stream: theirs}
}

// read uses the body up and resolves with what convert makes of its content. A stream is
// read to its end, or cancelled once it has more than limit bytes: the promise is then
// rejected with what tooLong makes. A body that is not usable throws.
func (b *body) read(r *realm, limit int, tooLong func() goja.Value, convert func(data []byte) goja.Value) *deferred {
	b.usable(r)
	d := r.newDeferred()
	if !b.flowing {
		b.used = !b.null
		b.lock(r)
		if b.abort != nil && b.abort.reason != nil && !b.null {
			must(d.reject(b.abort.reason))
			return d
		}
		must(d.settle(r, func() goja.Value { return convert(b.data) }))
		return d
	}
	then := r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
		must(d.settle(r, func() goja.Value {
			if goja.IsUndefined(call.Argument(0)) {
				panic(tooLong())
			}
			data, _ := bufferSource(call.Argument(0))
			if limit >= 0 && len(data) > limit {
				panic(tooLong())
			}
			return convert(data)
		}))
		return goja.Undefined()
	})
	failed := r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
		must(d.reject(call.Argument(0)))
		return goja.Undefined()
	})
	r.callBuiltin("internal/webstreams", "readWhole", b.stream, r.vm.ToValue(limit), then, failed)
	return d
}

// bodyMembers are the members that Request and Response share: headers, body, bodyUsed,
// text, json, arrayBuffer, bytes, blob and formData. The methods return promises, which
// reject if the body was read before, and json and formData also if it is not of that form.
func bodyMembers[T bodied]() []member[T] {
	read := func(name string, convert func(r *realm, this T, data []byte) goja.Value) member[T] {
		return member[T]{name: name, promise: true, call: func(r *realm, this T, _ goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				return this.content().read(r, unlimited, nil, func(data []byte) goja.Value { return convert(r, this, data) })
			})
		}}
	}
	web := func(name, maker string) member[T] {
		return read(name, func(r *realm, this T, data []byte) goja.Value {
			contentType, _ := this.headerList().get("content-type")
			if maker == "blobOf" {
				contentType, _ = dataurl.MediaType(contentType)
			}
			return r.callBuiltin("internal/web", maker, r.newBytes(bytes.Clone(data)), r.vm.ToValue(contentType))
		})
	}
	return []member[T]{
		{name: "headers", get: func(r *realm, this T) goja.Value {
			h := this.headerList()
			if h.object == nil {
				h.object = headersClass().instance(r, h)
			}
			return h.object
		}},
		{name: "bodyUsed", get: func(r *realm, this T) goja.Value { return r.vm.ToValue(this.content().isUsed(r)) }},
		read("text", func(r *realm, _ T, data []byte) goja.Value { return r.vm.ToValue(decodedText(data)) }),
		read("json", func(r *realm, _ T, data []byte) goja.Value {
			return r.parsed(bytes.TrimPrefix(data, []byte("\ufeff")))
		}),
		read("arrayBuffer", func(r *realm, _ T, data []byte) goja.Value {
			return r.vm.ToValue(r.vm.NewArrayBuffer(bytes.Clone(data)))
		}),
		read("bytes", func(r *realm, _ T, data []byte) goja.Value { return r.newBytes(bytes.Clone(data)) }),
		web("blob", "blobOf"),
		web("formData", "formOf"),
		{name: "body", get: func(r *realm, this T) goja.Value { return this.content().streamed(r) }},
	}
}

// streamed returns the body as a stream, null if there is none. The stream of a whole body
// has the data as one chunk, and uses the body when that is read.
func (b *body) streamed(r *realm) goja.Value {
	if b.null {
		return goja.Null()
	}
	if b.stream == nil {
		b.stream = r.callBuiltin("internal/webstreams", "bodyStream", r.newFunction("take", 0, func(goja.FunctionCall) goja.Value {
			if b.used {
				panic(r.vm.NewTypeError("Body is unusable: it has already been read"))
			}
			if b.abort != nil && b.abort.reason != nil {
				panic(b.abort.reason)
			}
			b.used = true
			return r.newBytes(bytes.Clone(b.data))
		})).(*goja.Object)
		if b.used {
			b.lock(r)
		}
	}
	return b.stream
}

// lock acquires a reader of the stream of a whole body that was used, and keeps it, as the
// specification's steps do to read it: scripts see that the stream is locked.
func (b *body) lock(r *realm) {
	if b.stream != nil && b.used && !b.flowing {
		r.callBuiltin("internal/webstreams", "lock", b.stream)
	}
}

// decodedText decodes UTF-8 as text() does: without its byte order mark, and with U+FFFD in
// place of each maximal invalid part.
func decodedText(data []byte) string {
	return encoding.DecodeUTF8(bytes.TrimPrefix(data, []byte("\ufeff")))
}
