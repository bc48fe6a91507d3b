package child

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/child/dataurl"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// fetch asks the host for an exchange (https://fetch.spec.whatwg.org/#fetch-method). The
// host answers with the head of the response and what of its body arrives at once; it decides
// on capabilities, redirects and addresses (hostcall/fetch.go). A failure of the exchange rejects
// with a TypeError that has a code:
//
//	const r = await fetch("https://api.example.com/v1/items", {method: "POST", body: "{}"});
//	if (!r.ok) throw new Error("status " + r.status);
//	return r.json();
//
// A stream is read to its end before the request is sent. If the signal aborts, the promise
// rejects with its reason, and the host ends the exchange; the server may have got the request.
func fetch(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		q := r.newRequest(call.Argument(0), call.Argument(1))
		signal := cmp.Or(q.signal, q.follows)
		if signal != nil && signal.aborted {
			panic(signal.reason)
		}
		switch scheme, _, _ := strings.Cut(q.url, ":"); scheme {
		case "http", "https":
		case "data":
			return r.fetchData(q)
		default:
			panic(r.vm.NewTypeError("fetch: the scheme %q is not supported; use http, https or data", scheme))
		}
		head := network.FetchRequest{URL: q.url, Method: q.method, Headers: q.headers.list, Redirect: q.redirect}
		if head.Headers == nil {
			head.Headers = [][2]string{}
		}
		if !q.body.flowing {
			return r.exchange(head, q.body.data, signal)
		}
		var unsent *deferred // as exchange, the signal does not keep the response
		d := q.body.read(r, wire.MaxCallBlob, r.bodyTooLong, func(data []byte) goja.Value {
			if signal != nil && signal.aborted {
				panic(signal.reason)
			}
			unsent = nil
			return r.exchange(head, data, signal).value(r)
		})
		if signal != nil {
			unsent = d
			signal.then = append(signal.then, func(reason goja.Value) {
				r.callBuiltin("internal/webstreams", "cancelWhole", q.body.stream, reason)
				if unsent != nil {
					must(unsent.reject(reason))
				}
			})
		}
		return d
	})
}

// bodyTooLong is the error of a body or value of more than wire.MaxCallBlob.
func (r *realm) bodyTooLong() goja.Value {
	return r.newError(api.CodeHostInvalidArgument, "a body or value of more than 6 MiB cannot leave the sandbox")
}

// exchange sends a request whose body is whole.
func (r *realm) exchange(head network.FetchRequest, body []byte, signal *abortSignal) *deferred {
	d, id := r.call(network.Fetch.Name, head, body, func(head, blob []byte) goja.Value {
		return r.fetched(head, blob, signal)
	})
	r.failsAs(id, "TypeError")
	if signal != nil {
		// The promise is not kept here: a signal of many requests would keep all their responses.
		signal.then = append(signal.then, func(reason goja.Value) {
			if waiting := r.abandon(id, r.closeLate); waiting != nil {
				must(waiting.reject(reason))
			}
		})
	}
	return d
}

// closeLate ends the exchange of a response that arrived although it was abandoned.
func (r *realm) closeLate(head []byte) {
	var reply network.FetchResponse
	r.decode(head, &reply)
	if reply.Body != 0 {
		r.dispatch(network.BodyCancel.Name, network.Handle{ID: reply.Body}, nil)
	}
}

// incomingBody returns the stream of a body of which the host holds the rest, and of which
// first has arrived. Each read of a script that finds nothing is a call of the host, so a
// script that does not read makes the server on the other side wait. g decompresses the rest, if
// it is not nil; first is plain.
func (r *realm) incomingBody(h network.Handle, first []byte, g *gunzip, signal *abortSignal) *goja.Object {
	next := r.newFunction("", 0, func(goja.FunctionCall) goja.Value {
		return r.promised(func() *deferred {
			if g != nil {
				return r.nextPlain(h, g)
			}
			return r.nextPart(h)
		})
	})
	stop := r.newFunction("", 0, func(goja.FunctionCall) goja.Value {
		return r.promised(func() *deferred {
			if g != nil && g.whole { // the host has no more of it
				d := r.newDeferred()
				must(d.resolve(goja.Undefined()))
				return d
			}
			return sendOnly(r, network.BodyCancel, h, nil)
		})
	})
	made := r.callBuiltin("internal/webstreams", "incomingBody", r.newBytes(first), next, stop).(*goja.Object)
	stream, fail := made.Get("0").(*goja.Object), made.Get("1")
	if signal != nil {
		abort, _ := goja.AssertFunction(fail)
		signal.then = append(signal.then, func(reason goja.Value) {
			_, err := abort(goja.Undefined(), reason)
			must(err)
		})
	}
	return stream
}

// fetchData answers a request for a data: URL, which needs no host and no capability (Fetch: scheme
// fetch). It rejects with a TypeError if the URL has no content.
func (r *realm) fetchData(q *request) *deferred {
	data, mediaType, ok := dataurl.Parse(q.url)
	if !ok {
		panic(r.vm.NewTypeError("fetch: the data: URL has no content"))
	}
	if q.method == "HEAD" {
		data = nil
	}
	d := r.newDeferred()
	must(d.resolve(responseClass().instance(r, &response{
		body: &body{data: data}, headers: &headers{list: [][2]string{{"content-type", mediaType}}, fixed: true},
		status: http.StatusOK, statusText: "OK", url: q.url, kind: "basic",
	})))
	return d
}
