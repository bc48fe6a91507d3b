package child

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// response is a Response (https://fetch.spec.whatwg.org/#response-class). kind is its type:
// basic for an answer of the host, default for one that a script made, error for
// Response.error.
type response struct {
	body       *body
	headers    *headers
	status     int
	statusText string
	url        string
	redirected bool
	kind       string
}

func (p *response) content() *body       { return p.body }
func (p *response) headerList() *headers { return p.headers }

// responseClass describes Response, with the statics json, error and redirect.
func responseClass() *class[*response] {
	return &class[*response]{
		name: "Response",
		construct: func(r *realm, call goja.ConstructorCall) *response {
			b, contentType := r.bodyOf(call.Argument(0))
			return r.newResponse(b, contentType, call.Argument(1))
		},
		members: append(bodyMembers[*response](),
			member[*response]{name: "status", get: func(r *realm, p *response) goja.Value { return r.vm.ToValue(p.status) }},
			member[*response]{name: "ok", get: func(r *realm, p *response) goja.Value {
				return r.vm.ToValue(p.status >= 200 && p.status <= 299)
			}},
			member[*response]{name: "statusText", get: func(r *realm, p *response) goja.Value { return r.vm.ToValue(p.statusText) }},
			member[*response]{name: "url", get: func(r *realm, p *response) goja.Value { return r.vm.ToValue(p.url) }},
			member[*response]{name: "redirected", get: func(r *realm, p *response) goja.Value { return r.vm.ToValue(p.redirected) }},
			member[*response]{name: "type", get: func(r *realm, p *response) goja.Value { return r.vm.ToValue(p.kind) }},
			member[*response]{name: "clone", call: func(r *realm, p *response, _ goja.FunctionCall) goja.Value {
				c := *p
				c.body = p.body.copy(r)
				c.headers = &headers{list: append([][2]string(nil), p.headers.list...), fixed: p.headers.fixed}
				return responseClass().instance(r, &c)
			}},
		),
		statics: []row{
			{"json", counted("json", func(r *realm, call goja.FunctionCall) goja.Value {
				text, ok, err := r.encodeJSON(call.Argument(0), wire.MaxCallBlob)
				r.thrownJSON("Response.json", ok, err)
				return responseClass().instance(r, r.newResponse(&body{data: text}, "application/json", call.Argument(1)))
			})},
			{"error", function("error", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
				return responseClass().instance(r, &response{body: &body{null: true}, headers: &headers{fixed: true}, kind: "error"})
			})},
			{"redirect", counted("redirect", redirect)},
		},
	}
}

// thrownJSON throws a TypeError if a value did not become JSON: ok and err are the results
// of encodeJSON. what names the function.
func (r *realm) thrownJSON(what string, ok bool, err error) {
	switch {
	case err == nil:
	case notEncodable(err):
		panic(r.vm.NewTypeError("%s: %s", what, err.Error()))
	default:
		must(err)
	}
	if !ok {
		panic(r.vm.NewTypeError("%s: the value is not JSON", what))
	}
}

// newResponse makes a response of a body and init, {status, statusText, headers}.
// contentType is the body's, which a header of init replaces. A status outside of 200 to
// 599 is a RangeError.
func (r *realm) newResponse(b *body, contentType string, init goja.Value) *response {
	p := &response{body: b, status: http.StatusOK, kind: "default", headers: &headers{}}
	options, ok := init.(*goja.Object)
	if !ok && init != nil && !goja.IsUndefined(init) && !goja.IsNull(init) {
		panic(r.vm.NewTypeError("Response: the options must be an object"))
	}
	if ok {
		if v := options.Get("status"); v != nil && !goja.IsUndefined(v) {
			p.status = int(v.ToInteger())
			if p.status < 200 || p.status > 599 {
				panic(r.newNamedError("RangeError", "Response: the status must be from 200 to 599"))
			}
		}
		if v := options.Get("statusText"); v != nil && !goja.IsUndefined(v) {
			p.statusText = r.text(v).String()
			if strings.ContainsFunc(p.statusText, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f || c > 0xff }) {
				panic(r.vm.NewTypeError("Response: the statusText has characters that it cannot have"))
			}
		}
		p.headers = r.newHeaders(options.Get("headers"))
	}
	if !b.null && bodiless(p.status) {
		panic(r.vm.NewTypeError("Response: an answer with the status %d has no body", p.status))
	}
	if _, ok := p.headers.get("content-type"); !ok && contentType != "" {
		p.headers.set(r, "content-type", contentType)
	}
	return p
}

// bodiless reports whether an answer of a status has no body (Fetch: null body status).
func bodiless(status int) bool {
	return slices.Contains([]int{http.StatusSwitchingProtocols, http.StatusEarlyHints, http.StatusNoContent, http.StatusResetContent, http.StatusNotModified}, status)
}

// redirect is Response.redirect(url, status), with status 302 by default.
func redirect(r *realm, call goja.FunctionCall) goja.Value {
	u, err := r.parseURL(call.Argument(0), nil)
	if err != nil {
		panic(r.vm.NewTypeError("Invalid URL: %s", call.Argument(0).String()))
	}
	status := http.StatusFound
	if v := call.Argument(1); !goja.IsUndefined(v) {
		status = int(v.ToInteger())
	}
	switch status {
	case 301, 302, 303, 307, 308:
	default:
		panic(r.newNamedError("RangeError", "Response.redirect: not a redirect status"))
	}
	p := &response{body: &body{null: true}, headers: &headers{}, status: status, kind: "default"}
	p.headers.set(r, "location", u.Href(false))
	p.headers.fixed = true
	return responseClass().instance(r, p)
}

// fetched makes the Response of the host's answer: head is a network.FetchResponse, blob the
// body or its beginning. The rest of the body ends with the signal, which may be nil.
func (r *realm) fetched(head, blob []byte, signal *abortSignal) goja.Value {
	var reply network.FetchResponse
	r.decode(head, &reply)
	whole := reply.Body == 0
	var g *gunzip
	if reply.Gzip {
		g = newGunzip(blob, whole)
		blob, whole = g.ahead()
	}
	content := &body{data: blob, null: whole && bodiless(reply.Status)}
	if whole && signal != nil {
		end := &abortion{}
		content.abort = end // and not the body: the signal would keep it
		signal.then = append(signal.then, func(reason goja.Value) { end.reason = reason })
	}
	if !whole {
		content = &body{flowing: true, stream: r.incomingBody(network.Handle{ID: reply.Body}, blob, g, signal)}
	}
	p := &response{
		body: content, headers: &headers{fixed: true}, kind: "basic",
		status: reply.Status, statusText: reply.StatusText, url: reply.URL, redirected: reply.Redirected,
	}
	for _, h := range reply.Headers {
		p.headers.list = append(p.headers.list, [2]string{strings.ToLower(h[0]), h[1]})
	}
	return responseClass().instance(r, p)
}
