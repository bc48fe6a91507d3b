package child

import (
	"github.com/dop251/goja"
	whatwg "github.com/nlnwa/whatwg-url/url"
)

// urlState is a URL (https://url.spec.whatwg.org/#url-class) and the parameters
// that are its query, once a script asked for them.
type urlState struct {
	*whatwg.Url
	params *params      // nil until searchParams is read
	object *goja.Object // of params: the same at every reading
}

// urlClass describes URL, with the statics canParse and parse. Parsing and setters are
// those of the standard's state machine, in package whatwg-url.
//
// The object of searchParams and its URL follow each other:
//
//	u.searchParams.set("a", "1")   u.href ends in ?a=1
//	u.search = "?b=2"              u.searchParams.get("b") is "2"
func urlClass() *class[*urlState] {
	text := func(name string, get func(*whatwg.Url) string, set func(*whatwg.Url, string)) member[*urlState] {
		m := member[*urlState]{name: name, get: func(r *realm, u *urlState) goja.Value { return r.vm.ToValue(get(u.Url)) }}
		if set != nil {
			m.set = func(r *realm, u *urlState, v goja.Value) { set(u.Url, r.text(v).String()) }
		}
		return m
	}
	href := func(u *whatwg.Url) string { return u.Href(false) }
	toString := func(r *realm, u *urlState, _ goja.FunctionCall) goja.Value { return r.vm.ToValue(u.Href(false)) }
	return &class[*urlState]{
		name: "URL", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *urlState {
			u, err := r.parseURL(call.Argument(0), call.Argument(1))
			if err != nil {
				panic(r.vm.NewTypeError("Invalid URL: %s", r.text(call.Argument(0)).String()))
			}
			return &urlState{Url: u}
		},
		members: []member[*urlState]{
			{name: "href", get: func(r *realm, u *urlState) goja.Value { return r.vm.ToValue(href(u.Url)) }, set: setHref},
			{name: "origin", get: func(r *realm, u *urlState) goja.Value { return r.vm.ToValue(origin(u.Url)) }},
			text("protocol", (*whatwg.Url).Protocol, (*whatwg.Url).SetProtocol),
			text("username", (*whatwg.Url).Username, (*whatwg.Url).SetUsername),
			text("password", (*whatwg.Url).Password, (*whatwg.Url).SetPassword),
			text("host", (*whatwg.Url).Host, (*whatwg.Url).SetHost),
			text("hostname", (*whatwg.Url).Hostname, (*whatwg.Url).SetHostname),
			text("port", (*whatwg.Url).Port, (*whatwg.Url).SetPort),
			text("pathname", (*whatwg.Url).Pathname, (*whatwg.Url).SetPathname),
			text("hash", (*whatwg.Url).Hash, (*whatwg.Url).SetHash),
			{
				name: "search",
				get:  func(r *realm, u *urlState) goja.Value { return r.vm.ToValue(u.Search()) },
				set: func(r *realm, u *urlState, v goja.Value) {
					u.SetSearch(r.text(v).String())
					u.reread()
				},
			},
			{name: "searchParams", get: func(r *realm, u *urlState) goja.Value {
				if u.object == nil {
					u.params = &params{list: decodeForm(u.Query()), url: u}
					u.object = paramsClass().instance(r, u.params)
				}
				return u.object
			}},
			{name: "toString", call: toString},
			{name: "toJSON", call: toString},
		},
		statics: urlStatics(),
	}
}

// urlStatics returns canParse and parse, which report a malformed URL without throwing.
func urlStatics() []row {
	return []row{
		{"canParse", counted("canParse", func(r *realm, call goja.FunctionCall) goja.Value {
			_, err := r.parseURL(call.Argument(0), call.Argument(1))
			return r.vm.ToValue(err == nil)
		})},
		{"parse", counted("parse", func(r *realm, call goja.FunctionCall) goja.Value {
			u, err := r.parseURL(call.Argument(0), call.Argument(1))
			if err != nil {
				return goja.Null()
			}
			return urlClass().instance(r, &urlState{Url: u})
		})},
	}
}

// parseURL parses text, relative to base unless that is undefined.
func (r *realm) parseURL(text, base goja.Value) (*whatwg.Url, error) {
	if base == nil || goja.IsUndefined(base) {
		return whatwg.Parse(r.text(text).String())
	}
	address := r.text(text).String()
	return whatwg.ParseRef(r.text(base).String(), address)
}

// setHref replaces the whole URL, or throws a TypeError.
func setHref(r *realm, u *urlState, v goja.Value) {
	parsed, err := whatwg.Parse(r.text(v).String())
	if err != nil {
		panic(r.vm.NewTypeError("Invalid URL: %s", v.String()))
	}
	u.Url = parsed
	u.reread()
}

// reread brings the parameters in line with the query, after a change of the URL; the other
// direction is params.changed.
func (u *urlState) reread() {
	if u.params != nil {
		u.params.list = decodeForm(u.Query())
	}
}

// origin returns the origin of an http, https, ws, wss or ftp URL. It is "null" for every other
// scheme. The standard leaves the origin of file open, and takes that of blob from its path,
// which is not implemented.
func origin(u *whatwg.Url) string {
	switch u.Scheme() {
	case "http", "https", "ws", "wss", "ftp":
		return u.Protocol() + "//" + u.Host()
	case "blob":
		if inner, err := whatwg.Parse(u.Pathname()); err == nil && (inner.Scheme() == "http" || inner.Scheme() == "https") {
			return origin(inner)
		}
	}
	return "null"
}
