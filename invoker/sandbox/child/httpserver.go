package child

import (
	"bytes"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// serverModule is the module with the class Server of node:http.
const serverModule = "internal/httpserver"

// isServer reports whether an exported object is a Server of node:http or node:https. A program
// that has none did not evaluate the module.
func (r *realm) isServer(obj *goja.Object) bool {
	return r.node[serverModule] != nil && r.callBuiltin(serverModule, "isServer", obj).ToBoolean()
}

// serverHandler returns the handler fetch of a Server, a method of it. It takes the result of
// exchangeOf. Its promise resolves with a Response, or with undefined after an answer
// that was streamed.
func (r *realm) serverHandler() goja.Callable {
	serve, _ := goja.AssertFunction(r.builtin(serverModule).(*goja.Object).Get("serve"))
	return serve
}

// exchangeOf makes the request that a Server gets: {method, url, headers, body, remoteAddress,
// encrypted}. url is the path behind the alias with the query, headers a list of names and
// values in turn. An event that is not of an HTTP endpoint becomes the JSON body of a POST
// request, as in requestOf.
func (r *realm) exchangeOf(a *activation, event []byte) goja.Value {
	a.fetches = true
	e, ok := parsedHTTPEvent(event)
	method, target, data := e.RequestContext.HTTP.Method, e.target(), event
	list := [][2]string{{"content-type", "application/json"}, {"host", "localhost"}}
	if ok {
		list, data = e.headerList(), e.body(r)
	} else {
		method, target = http.MethodPost, "/"
	}
	var flat []any
	framed := false
	for _, h := range list {
		framed = framed || h[0] == "content-length" || h[0] == "transfer-encoding"
		flat = append(flat, h[0], h[1])
	}
	if len(data) > 0 && !framed { // parsers of bodies look whether there is one
		flat = append(flat, "content-length", strconv.Itoa(len(data)))
	}
	out := r.vm.NewObject()
	r.setAll(out, []property{
		{"method", method}, {"url", target}, {"headers", r.vm.NewArray(flat...)}, {"body", goja.Undefined()},
		{"remoteAddress", e.RequestContext.HTTP.SourceIP}, {"encrypted", e.Headers["x-forwarded-proto"] == "https"},
	})
	if len(data) > 0 {
		must(out.Set("body", r.newBytes(bytes.Clone(data))))
	}
	return out
}

// target returns the path behind the alias with the query, as received.
func (e *httpEvent) target() string {
	path := e.Path
	if path == "" {
		path = e.RawPath
	}
	if path == "" {
		path = "/"
	}
	if e.RawQuery != "" {
		path += "?" + e.RawQuery
	}
	return path
}

// serverRows are the natives of the Server of node:http.
func serverRows() []row {
	return []row{
		// A longer answer is streamed, if the caller takes a stream.
		{"maxWhole", func(r *realm) goja.Value { return r.vm.ToValue(api.MaxResultBytes) }},
		// A write is part of what may wait for the client.
		{"maxWrite", func(r *realm) goja.Value { return r.vm.ToValue(maxWaitingWrites / 8) }},
		{"answer", function("answer", 3, serverAnswer)},
		{"begin", function("begin", 3, serverBegin)},
		{"onLeft", function("onLeft", 1, serverOnLeft)},
	}
}

// serverAnswer is answer(status, headers, bytes): the Response of an answer that is whole.
func serverAnswer(r *realm, call goja.FunctionCall) goja.Value {
	p := r.serverHead(call)
	if data, ok := bufferSource(call.Argument(2)); ok {
		p.body = &body{data: bytes.Clone(data)}
		if _, typed := p.headers.get("content-type"); !typed && len(data) > 0 && utf8.Valid(data) {
			p.headers.list = append(p.headers.list, [2]string{"content-type", "text/plain; charset=utf-8"})
		}
	}
	return responseClass().instance(r, p)
}

// serverBegin is begin(status, headers, left): it begins an answer that is streamed. It
// returns its function write(bytes), which returns a promise if the next write must wait. left
// is called with the reason if the caller leaves.
func serverBegin(r *realm, call goja.FunctionCall) goja.Value {
	p := r.serverHead(call)
	if !r.effect() {
		return goja.Undefined()
	}
	s, err := r.act.openStream(p)
	if err != nil {
		panic(r.newError(api.CodeInternal, err.Error()))
	}
	s.cancel, _ = goja.AssertFunction(call.Argument(2))
	return r.newFunction("write", 1, func(call goja.FunctionCall) goja.Value { return s.pumped(r, call.Argument(0)) })
}

// serverHead makes a response without a body of (status, headers, …). Exceptions: a RangeError
// for a status that cannot end a request.
func (r *realm) serverHead(call goja.FunctionCall) *response {
	p := &response{body: &body{null: true}, headers: &headers{}, status: int(call.Argument(0).ToInteger()), kind: "default"}
	if p.status < 200 || p.status > 599 {
		panic(r.newNamedError("RangeError", "the status of an answer must be from 200 to 599, not "+strconv.Itoa(p.status)))
	}
	list, ok := call.Argument(1).(*goja.Object)
	if !ok {
		return p
	}
	n := list.Get("length").ToInteger()
	for i := int64(0); i+1 < n; i += 2 {
		name, value := list.Get(strconv.FormatInt(i, 10)), list.Get(strconv.FormatInt(i+1, 10))
		p.headers.add(r, name.String(), value.String())
	}
	return p
}

// serverOnLeft is onLeft(f): f is called with the reason when the caller of the activation
// leaves, as far as the platform learns of it.
func serverOnLeft(r *realm, call goja.FunctionCall) goja.Value {
	f, ok := goja.AssertFunction(call.Argument(0))
	if !ok || !r.effect() {
		return goja.Undefined()
	}
	a := r.act
	a.callerSignal(r)
	left := func(reason goja.Value) {
		_, err := f(goja.Undefined(), reason)
		must(err)
	}
	if a.signal.aborted {
		left(a.signal.reason)
	} else if a.head.Flags&wire.FlagEarly != 0 {
		a.signal.then = append(a.signal.then, left)
	}
	return goja.Undefined()
}
