package child

import "github.com/dop251/goja"

// bodyStream is the body member of a Request or a Response. The body is whole when a script
// gets it, so the stream has one chunk. A script can hand it to a new Request or Response,
// as frameworks do to change headers, or read it through a reader. Scripts cannot make
// streams of their own: there is no global ReadableStream.
type bodyStream struct {
	body   *body
	locked bool
}

// bodyReader reads a bodyStream.
type bodyReader struct {
	stream *bodyStream // nil once released
}

func bodyStreamClass() *class[*bodyStream] {
	return &class[*bodyStream]{
		name: "ReadableStream",
		members: []member[*bodyStream]{
			{name: "locked", get: func(r *realm, s *bodyStream) goja.Value { return r.vm.ToValue(s.locked) }},
			{name: "getReader", call: func(r *realm, s *bodyStream, call goja.FunctionCall) goja.Value {
				if s.locked {
					panic(r.vm.NewTypeError("ReadableStream.getReader: the stream has a reader"))
				}
				if options, ok := call.Argument(0).(*goja.Object); ok && options.Get("mode") != nil {
					panic(r.vm.NewTypeError("ReadableStream.getReader: a body has no reader of that mode"))
				}
				s.locked = true
				return bodyReaderClass().instance(r, &bodyReader{s})
			}},
			{name: "cancel", call: func(r *realm, s *bodyStream, _ goja.FunctionCall) goja.Value {
				s.body.used = true
				return r.resolved(goja.Undefined())
			}},
		},
	}
}

func bodyReaderClass() *class[*bodyReader] {
	return &class[*bodyReader]{
		name: "ReadableStreamDefaultReader",
		members: []member[*bodyReader]{
			{name: "read", call: func(r *realm, reader *bodyReader, _ goja.FunctionCall) goja.Value {
				return r.promised(func() *deferred { return reader.read(r) })
			}},
			{name: "releaseLock", call: func(_ *realm, reader *bodyReader, _ goja.FunctionCall) goja.Value {
				if reader.stream != nil {
					reader.stream.locked = false
					reader.stream = nil
				}
				return goja.Undefined()
			}},
			{name: "cancel", call: func(r *realm, reader *bodyReader, _ goja.FunctionCall) goja.Value {
				if reader.stream != nil {
					reader.stream.body.used = true
				}
				return r.resolved(goja.Undefined())
			}},
		},
	}
}

// read resolves to {value, done}: the body once, unless it is empty or was read before, and
// then the end.
func (b *bodyReader) read(r *realm) *deferred {
	if b.stream == nil {
		panic(r.vm.NewTypeError("the reader was released"))
	}
	out := r.vm.NewObject()
	body := b.stream.body
	done := body.used || len(body.data) == 0
	body.used = true
	value := goja.Undefined()
	if !done {
		value = r.newBytes(append([]byte(nil), body.data...))
	}
	must(out.Set("value", value))
	must(out.Set("done", done))
	d := r.newDeferred()
	must(d.resolve(out))
	return d
}

// resolved returns a promise that is resolved with v.
func (r *realm) resolved(v goja.Value) goja.Value {
	d := r.newDeferred()
	must(d.resolve(v))
	return d.value(r)
}

// streamOf returns the stream of a body, the same object each time, null for a null body.
func (b *body) streamOf(r *realm) goja.Value {
	if b.null {
		return goja.Null()
	}
	if b.stream == nil {
		b.stream = bodyStreamClass().instance(r, &bodyStream{body: b})
	}
	return b.stream
}
