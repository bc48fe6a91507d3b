package child

import (
	"slices"
	"strings"

	"github.com/dop251/goja"
	"golang.org/x/net/http/httpguts"
)

// headers is a header list (https://fetch.spec.whatwg.org/#headers-class), names in lower
// case, in the order of their arrival. Scripts may set any header, and the host leaves out
// those that are the transport's: of the guards there is only immutable.
type headers struct {
	list   [][2]string
	fixed  bool         // scripts cannot change them
	edits  int          // counts changes by scripts
	object *goja.Object // what a Request or Response shows it as
}

// headersClass describes Headers.
func headersClass() *class[*headers] {
	return &class[*headers]{
		name: "Headers",
		construct: func(r *realm, call goja.ConstructorCall) *headers {
			return r.newHeaders(call.Argument(0))
		},
		iterate: "entries",
		members: []member[*headers]{
			{name: "append", length: 2, call: func(r *realm, h *headers, call goja.FunctionCall) goja.Value {
				h.changes(r)
				h.add(r, r.text(call.Argument(0)).String(), r.text(call.Argument(1)).String())
				return goja.Undefined()
			}},
			{name: "set", length: 2, call: func(r *realm, h *headers, call goja.FunctionCall) goja.Value {
				h.changes(r)
				h.set(r, r.text(call.Argument(0)).String(), r.text(call.Argument(1)).String())
				return goja.Undefined()
			}},
			{name: "delete", length: 1, call: func(r *realm, h *headers, call goja.FunctionCall) goja.Value {
				h.changes(r)
				h.remove(r.headerName(call.Argument(0)))
				return goja.Undefined()
			}},
			{name: "get", length: 1, call: func(r *realm, h *headers, call goja.FunctionCall) goja.Value {
				if v, ok := h.get(r.headerName(call.Argument(0))); ok {
					return r.vm.ToValue(v)
				}
				return goja.Null()
			}},
			{name: "has", length: 1, call: func(r *realm, h *headers, call goja.FunctionCall) goja.Value {
				_, ok := h.get(r.headerName(call.Argument(0)))
				return r.vm.ToValue(ok)
			}},
			{name: "getSetCookie", call: func(r *realm, h *headers, _ goja.FunctionCall) goja.Value {
				values := []any{}
				for _, p := range h.list {
					if p[0] == "set-cookie" {
						values = append(values, p[1])
					}
				}
				return r.vm.NewArray(values...)
			}},
			{name: "forEach", length: 1, call: func(r *realm, h *headers, call goja.FunctionCall) goja.Value {
				return r.eachPair(h.live(), call)
			}},
			{name: "entries", call: func(r *realm, h *headers, _ goja.FunctionCall) goja.Value {
				return r.pairIterator("Headers", h.live(), bothColumns)
			}},
			{name: "keys", call: func(r *realm, h *headers, _ goja.FunctionCall) goja.Value {
				return r.pairIterator("Headers", h.live(), 0)
			}},
			{name: "values", call: func(r *realm, h *headers, _ goja.FunctionCall) goja.Value {
				return r.pairIterator("Headers", h.live(), 1)
			}},
		},
	}
}

// newHeaders copies a HeadersInit: Headers, an iterable of pairs, or an object. undefined
// makes an empty list.
func (r *realm) newHeaders(init goja.Value) *headers {
	h := &headers{}
	if init == nil || goja.IsUndefined(init) {
		return h
	}
	if other, ok := stateOf[*headers](init); ok && r.iterates(init, headersClass().name) {
		h.list = slices.Clone(other.list)
		return h
	}
	for _, p := range r.pairs(init, "Headers") {
		h.add(r, p[0], p[1])
	}
	return h
}

// live returns a function that returns the headers as they are sorted at that time.
func (h *headers) live() func() [][2]string {
	list, at := h.sorted(), h.edits
	return func() [][2]string {
		if at != h.edits {
			list, at = h.sorted(), h.edits
		}
		return list
	}
}

// changes throws a TypeError if scripts cannot change the headers.
func (h *headers) changes(r *realm) {
	h.edits++
	if h.fixed {
		panic(r.vm.NewTypeError("Headers: those of this response cannot be changed; copy them with new Headers(headers)"))
	}
}

// checked returns a name in lower case and a value without surrounding white space. It
// throws a TypeError for a malformed one (Fetch: header name, header value).
func (h *headers) checked(r *realm, name, value string) (string, string) {
	value = strings.Trim(value, " \t\r\n")
	if !httpguts.ValidHeaderFieldName(name) {
		panic(r.vm.NewTypeError("Headers: %q is not a header name", name))
	}
	if strings.ContainsAny(value, "\x00\r\n") || strings.ContainsFunc(value, func(c rune) bool { return c > 0xff }) {
		panic(r.vm.NewTypeError("Headers: the value of %q is not a header value", name))
	}
	return strings.ToLower(name), value
}

// headerName reads the name of a header, or throws a TypeError.
func (r *realm) headerName(v goja.Value) string {
	name := r.text(v).String()
	if !httpguts.ValidHeaderFieldName(name) {
		panic(r.vm.NewTypeError("Headers: %q is not a header name", name))
	}
	return name
}

// add appends a value to those of a name.
func (h *headers) add(r *realm, name, value string) {
	name, value = h.checked(r, name, value)
	h.list = append(h.list, [2]string{name, value})
}

// set replaces all values of a name, at the place of the first.
func (h *headers) set(r *realm, name, value string) {
	name, value = h.checked(r, name, value)
	for i := range h.list {
		if h.list[i][0] == name {
			h.list[i][1] = value
			rest := slices.DeleteFunc(h.list[i+1:], func(p [2]string) bool { return p[0] == name })
			h.list = h.list[:i+1+len(rest)]
			return
		}
	}
	h.list = append(h.list, [2]string{name, value})
}

// remove removes all values of a name.
func (h *headers) remove(name string) {
	name = strings.ToLower(name)
	h.list = slices.DeleteFunc(h.list, func(p [2]string) bool { return p[0] == name })
}

// get joins the values of a name with ", "; ok is false if there are none.
func (h *headers) get(name string) (string, bool) {
	name = strings.ToLower(name)
	var values []string
	for _, p := range h.list {
		if p[0] == name {
			values = append(values, p[1])
		}
	}
	return strings.Join(values, ", "), values != nil
}

// sorted returns the list as iteration shows it (Fetch: sort and combine): by name, joined,
// each Set-Cookie by itself.
//
//	b: 1, set-cookie: x, a: 2, b: 3, set-cookie: y
//	→ a: 2, b: "1, 3", set-cookie: x, set-cookie: y
func (h *headers) sorted() [][2]string {
	out := make([][2]string, 0, len(h.list))
	seen := make(map[string]bool, len(h.list))
	for _, p := range h.list {
		if p[0] != "set-cookie" {
			if seen[p[0]] {
				continue
			}
			seen[p[0]] = true
			p[1], _ = h.get(p[0])
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}
