package child

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/dop251/goja"
	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/codesous/sous/api"
)

// httpEvent is the event of a function's HTTP endpoint, as far as a Request is made of it.
type httpEvent struct {
	Version        string            `json:"version"`
	Path           string            `json:"path"`
	RawPath        string            `json:"rawPath"`
	RawQuery       string            `json:"rawQueryString"`
	Headers        map[string]string `json:"headers"`
	Cookies        []string          `json:"cookies"`
	Body           string            `json:"body"`
	Base64         bool              `json:"isBase64Encoded"`
	RequestContext struct {
		HTTP struct {
			Method   string `json:"method"`
			SourceIP string `json:"sourceIp"`
		} `json:"http"`
	} `json:"requestContext"`
}

// isHTTP reports whether the activation answers a request to the function's endpoint.
func (a *activation) isHTTP() bool {
	return bytes.HasPrefix(a.head.Trigger, []byte(`{"type":"`+api.TriggerHTTP+`"`))
}

// localOrigin is the origin of the URL of a Request that came without a host.
const localOrigin = "http://localhost"

// requestOf makes the Request for the handler fetch. The URL has the path behind the alias. An
// event that is not of an HTTP endpoint becomes the JSON body of a POST request:
//
//	{"version": "2.0", …, "path": "/hello", "rawQueryString": "x=1", "headers": {"host": "a.example"}}
//	                                            GET http://a.example/hello?x=1
//	{"name": "Ada"}                             POST http://localhost/ with that body
func (r *realm) requestOf(a *activation, event []byte) goja.Value {
	a.fetches = true
	e, ok := parsedHTTPEvent(event)
	q := &request{body: &body{null: true}, headers: &headers{}, redirect: "manual", caller: a, method: e.RequestContext.HTTP.Method}
	if !ok {
		q.method, q.url = http.MethodPost, localOrigin+"/"
		q.body = &body{data: event}
		q.headers.list = [][2]string{{"content-type", "application/json"}}
		return requestClass().instance(r, q)
	}
	q.headers.list = e.headerList()
	q.url = e.url()
	if data := e.body(r); len(data) > 0 && q.method != http.MethodGet && q.method != http.MethodHead {
		q.body = &body{data: data}
	}
	return requestClass().instance(r, q)
}

// parsedHTTPEvent decodes the event of an HTTP endpoint. ok is false for another one, which
// may have any form.
func parsedHTTPEvent(event []byte) (e httpEvent, ok bool) {
	err := json.Unmarshal(event, &e)
	return e, err == nil && e.Version == "2.0" && e.RequestContext.HTTP.Method != ""
}

// headerList returns the headers with their names in lower case, sorted, and the cookies as
// one of them.
func (e *httpEvent) headerList() [][2]string {
	var list [][2]string
	for name, value := range e.Headers {
		list = append(list, [2]string{strings.ToLower(name), value})
	}
	if len(e.Cookies) > 0 {
		list = append(list, [2]string{"cookie", strings.Join(e.Cookies, "; ")})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}

// url returns the URL of the request, in its normal form.
func (e *httpEvent) url() string {
	origin := localOrigin
	if host := e.Headers["host"]; host != "" {
		scheme := "http://"
		if e.Headers["x-forwarded-proto"] == "https" {
			scheme = "https://"
		}
		origin = scheme + host
	}
	rest := e.Path
	if rest == "" {
		rest = e.RawPath
	}
	if e.RawQuery != "" {
		rest += "?" + e.RawQuery
	}
	for _, base := range []string{origin, localOrigin} { // a client may send any host
		if u, err := whatwg.Parse(base + rest); err == nil {
			return u.Href(true)
		}
	}
	return localOrigin + "/"
}

// body returns the bytes of the body. It throws a TypeError for one that is not base64.
func (e *httpEvent) body(r *realm) []byte {
	if !e.Base64 {
		return []byte(e.Body)
	}
	data, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		panic(r.vm.NewTypeError("the body of the event is not base64"))
	}
	return data
}

// bodyMethodNames are the texts by which a script may call the methods of an HTTP event.
var bodyMethodNames = []string{".text", ".json", ".formData"}

// addBodyMethods adds text, json and formData to the event of an HTTP endpoint: they read its
// body as those of a Request do, any number of times. They are not enumerable, so the event
// stays an object of data.
func (r *realm) addBodyMethods(event goja.Value) {
	obj, ok := event.(*goja.Object)
	if !ok {
		return
	}
	method := func(name string, convert func(this *goja.Object, data []byte) goja.Value) {
		r.hidden(obj, name, r.newFunction(name, 0, func(call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				d := r.newDeferred()
				must(d.settle(r, func() goja.Value {
					this, ok := call.This.(*goja.Object)
					if !ok {
						panic(r.vm.NewTypeError("Illegal invocation: the receiver is not an event"))
					}
					return convert(this, r.eventBody(this))
				}))
				return d
			})
		}))
	}
	method("text", func(_ *goja.Object, data []byte) goja.Value { return r.vm.ToValue(decodedText(data)) })
	method("json", func(_ *goja.Object, data []byte) goja.Value {
		return r.parsed(bytes.TrimPrefix(data, []byte("\ufeff")))
	})
	method("formData", func(this *goja.Object, data []byte) goja.Value {
		contentType := ""
		if headers, ok := this.Get("headers").(*goja.Object); ok {
			contentType, _ = stringProperty(headers, "content-type")
		}
		return r.callBuiltin("internal/web", "formOf", r.newBytes(bytes.Clone(data)), r.vm.ToValue(contentType))
	})
}

// eventBody returns the bytes of the body of an event.
func (r *realm) eventBody(event *goja.Object) []byte {
	text, _ := stringProperty(event, "body")
	e := httpEvent{Body: text, Base64: orUndefined(event.Get("isBase64Encoded")).ToBoolean()}
	return e.body(r)
}
