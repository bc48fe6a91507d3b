package child

import (
	"cmp"
	"strings"

	"github.com/dop251/goja"
	"golang.org/x/net/http/httpguts"
)

// request is a Request (https://fetch.spec.whatwg.org/#request-class). Of the members of that
// class, url, method, headers, body, redirect and signal have an effect on a server; requestOptions
// has the others.
type request struct {
	body     *body
	headers  *headers
	url      string
	method   string
	redirect string
	signal   *abortSignal    // what scripts see; nil until it is read
	follows  *abortSignal    // the signal that aborts the request, or nil
	caller   *activation     // the request is the one that the activation answers; else nil
	options  *requestOptions // nil for the default
}

func (q *request) content() *body       { return q.body }
func (q *request) headerList() *headers { return q.headers }

// requestClass describes Request.
func requestClass() *class[*request] {
	text := func(name string, get func(*request) string) member[*request] {
		return member[*request]{name: name, get: func(r *realm, q *request) goja.Value { return r.vm.ToValue(get(q)) }}
	}
	return &class[*request]{
		name: "Request", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *request {
			return r.newRequest(call.Argument(0), call.Argument(1))
		},
		members: append(append(bodyMembers[*request](), optionMembers()...),
			text("url", func(q *request) string { return q.url }),
			text("method", func(q *request) string { return q.method }),
			text("redirect", func(q *request) string { return q.redirect }),
			member[*request]{name: "signal", get: func(r *realm, q *request) goja.Value {
				if q.signal == nil && q.caller != nil {
					return q.caller.callerSignal(r)
				}
				if q.signal == nil {
					q.signal = r.newSignal()
					if q.follows != nil {
						q.signal.follow(r, []*abortSignal{q.follows})
					}
				}
				return q.signal.object
			}},
			member[*request]{name: "clone", call: func(r *realm, q *request, _ goja.FunctionCall) goja.Value {
				c := q.copy()
				c.body = q.body.copy(r)
				return requestClass().instance(r, c)
			}},
		),
	}
}

// copy returns a request with headers of its own and the same body.
func (q *request) copy() *request {
	c := *q
	c.follows, c.signal = cmp.Or(q.signal, q.follows), nil
	c.headers = &headers{list: append([][2]string(nil), q.headers.list...)}
	return &c
}

// newRequest makes a request from input, a URL or another request, and applies the options in
// init (Fetch: new Request(input, init)). The body of another request is taken: it counts as read
// afterwards. newRequest throws a TypeError for malformed values, and for a body with GET or HEAD.
//
// If the headers have no content-type, the body sets the one that its type implies.
func (r *realm) newRequest(input, init goja.Value) *request {
	q := &request{body: &body{null: true}, headers: &headers{}, method: "GET", redirect: "follow"}
	if other, ok := stateOf[*request](input); ok {
		q = other.copy()
	} else {
		q.url = r.requestURL(input)
	}
	options, ok := init.(*goja.Object)
	if !ok {
		q.body = q.body.take(r)
		if init != nil && !goja.IsUndefined(init) && !goja.IsNull(init) {
			panic(r.vm.NewTypeError("fetch: the options must be an object"))
		}
		return q
	}
	q.options = r.readOptions(q.options, options)
	if v := given(options, "method"); v != nil {
		q.method = r.requestMethod(r.text(v).String())
	}
	if v := given(options, "headers"); v != nil {
		q.headers = r.newHeaders(v)
	}
	if v := given(options, "redirect"); v != nil {
		q.redirect = r.text(v).String()
		switch q.redirect {
		case "follow", "manual", "error":
		default:
			panic(r.vm.NewTypeError("fetch: redirect must be follow, manual or error"))
		}
	}
	if v := given(options, "signal"); v != nil {
		q.follows, q.caller = nil, nil
		if !goja.IsNull(v) {
			q.follows = receiver[*abortSignal](r, v, "AbortSignal")
		}
	}
	half := r.onlyHalf(options)
	before := q.body
	if v := given(options, "body"); v != nil && !goja.IsNull(v) {
		var contentType string
		q.body, contentType = r.bodyOf(v)
		if q.body.flowing && !half {
			panic(r.vm.NewTypeError("fetch: the option duplex must be \"half\" for a body that is a stream"))
		}
		if contentType != "" {
			if _, ok := q.headers.get("content-type"); !ok {
				q.headers.set(r, "content-type", contentType)
			}
		}
	}
	if before == q.body {
		q.body = before.take(r)
	}
	q.options.check(r, q.method)
	if !q.body.null && (q.method == "GET" || q.method == "HEAD") {
		panic(r.vm.NewTypeError("Request with GET/HEAD method cannot have body"))
	}
	return q
}

// onlyHalf checks the options duplex and window, which allow one value each, and reports
// whether duplex is set.
func (r *realm) onlyHalf(options *goja.Object) bool {
	duplex := given(options, "duplex")
	if duplex != nil && r.text(duplex).String() != "half" {
		panic(r.vm.NewTypeError("fetch: duplex must be half"))
	}
	if v := given(options, "window"); v != nil && !goja.IsNull(v) {
		panic(r.vm.NewTypeError("fetch: window can only be null"))
	}
	return duplex != nil
}

// given reads an option; nil stands for a missing and an undefined one.
func given(options *goja.Object, name string) goja.Value {
	v := options.Get(name)
	if v == nil || goja.IsUndefined(v) {
		return nil
	}
	return v
}

// requestURL takes an absolute URL without credentials, and returns it in its normal form. There
// is no base URL: a relative one is a TypeError.
func (r *realm) requestURL(input goja.Value) string {
	u, err := r.parseURL(input, nil)
	if err != nil {
		panic(r.vm.NewTypeError("Failed to parse URL from %s", input.String()))
	}
	if u.Username() != "" || u.Password() != "" {
		panic(r.vm.NewTypeError("fetch: a URL with credentials is refused; use the authorization header"))
	}
	return u.Href(false)
}

// requestMethod converts the methods that Fetch names to upper case (Fetch: normalize a method);
// others, such as patch, stay as they are. CONNECT, TRACE and TRACK are forbidden.
func (r *realm) requestMethod(method string) string {
	if !httpguts.ValidHeaderFieldName(method) { // methods and field names have the same syntax: token
		panic(r.vm.NewTypeError("fetch: %q is not a method", method))
	}
	switch upper := strings.ToUpper(method); upper {
	case "CONNECT", "TRACE", "TRACK":
		panic(r.vm.NewTypeError("fetch: the method %s is not allowed", upper))
	case "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT":
		return upper
	}
	return method
}
