package child

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf16"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
)

// params is a URLSearchParams (https://url.spec.whatwg.org/#urlsearchparams). Names and
// values are decoded; they are encoded again when a URL or a body is made of them.
type params struct {
	list [][2]string
	url  *urlState // its query follows the list; nil for a list without a URL
}

// paramsClass describes URLSearchParams.
func paramsClass() *class[*params] {
	return &class[*params]{
		name: "URLSearchParams",
		construct: func(r *realm, call goja.ConstructorCall) *params {
			return &params{list: r.paramsOf(call.Argument(0))}
		},
		iterate: "entries",
		members: []member[*params]{
			{name: "append", length: 2, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				p.list = append(p.list, [2]string{r.text(call.Argument(0)).String(), r.text(call.Argument(1)).String()})
				return p.changed()
			}},
			{name: "set", length: 2, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				p.set(r.text(call.Argument(0)).String(), r.text(call.Argument(1)).String())
				return p.changed()
			}},
			{name: "delete", length: 1, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				p.list = slices.DeleteFunc(p.list, p.matcher(r, call))
				return p.changed()
			}},
			{name: "get", length: 1, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				if i := slices.IndexFunc(p.list, named(r.text(call.Argument(0)).String())); i >= 0 {
					return r.vm.ToValue(p.list[i][1])
				}
				return goja.Null()
			}},
			{name: "getAll", length: 1, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				match, values := named(r.text(call.Argument(0)).String()), []any{}
				for _, pair := range p.list {
					if match(pair) {
						values = append(values, pair[1])
					}
				}
				return r.vm.NewArray(values...)
			}},
			{name: "has", length: 1, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				return r.vm.ToValue(slices.ContainsFunc(p.list, p.matcher(r, call)))
			}},
			{name: "sort", call: sortParams},
			{name: "toString", call: func(r *realm, p *params, _ goja.FunctionCall) goja.Value {
				return r.vm.ToValue(encodeForm(p.list))
			}},
			{name: "forEach", length: 1, call: func(r *realm, p *params, call goja.FunctionCall) goja.Value {
				return r.eachPair(p.live, call)
			}},
			{name: "entries", call: func(r *realm, p *params, _ goja.FunctionCall) goja.Value {
				return r.pairIterator("URLSearchParams", p.live, bothColumns)
			}},
			{name: "keys", call: func(r *realm, p *params, _ goja.FunctionCall) goja.Value {
				return r.pairIterator("URLSearchParams", p.live, 0)
			}},
			{name: "values", call: func(r *realm, p *params, _ goja.FunctionCall) goja.Value {
				return r.pairIterator("URLSearchParams", p.live, 1)
			}},
			{name: "size", get: func(r *realm, p *params) goja.Value { return r.vm.ToValue(len(p.list)) }},
		},
	}
}

func (p *params) live() [][2]string { return p.list }

// sortParams sorts by name, in the order of UTF-16 code units; equal names keep their
// order.
func sortParams(_ *realm, p *params, _ goja.FunctionCall) goja.Value {
	sort.SliceStable(p.list, func(i, j int) bool {
		return slices.Compare(utf16.Encode([]rune(p.list[i][0])), utf16.Encode([]rune(p.list[j][0]))) < 0
	})
	return p.changed()
}

// paramsOf reads the argument of the constructor: another list, an iterable of pairs, an
// object, or text with or without its "?".
func (r *realm) paramsOf(init goja.Value) [][2]string {
	if init == nil || goja.IsUndefined(init) {
		return nil
	}
	if other, ok := stateOf[*params](init); ok && r.iterates(init, paramsClass().name) {
		return slices.Clone(other.list)
	}
	if _, ok := init.(*goja.Object); ok {
		return r.pairs(init, "URLSearchParams")
	}
	return decodeForm(strings.TrimPrefix(r.text(init).String(), "?"))
}

// named returns a predicate for the pairs of a name.
func named(name string) func([2]string) bool {
	return func(p [2]string) bool { return p[0] == name }
}

// matcher returns the predicate of has and delete: by name, or by name and value if a
// second argument is present.
func (p *params) matcher(r *realm, call goja.FunctionCall) func([2]string) bool {
	name := r.text(call.Argument(0)).String()
	if v := call.Argument(1); !goja.IsUndefined(v) {
		value := r.text(v).String()
		return func(p [2]string) bool { return p[0] == name && p[1] == value }
	}
	return named(name)
}

// set replaces all values of a name, at the place of the first.
func (p *params) set(name, value string) {
	i := slices.IndexFunc(p.list, named(name))
	if i < 0 {
		p.list = append(p.list, [2]string{name, value})
		return
	}
	p.list[i][1] = value
	p.list = append(p.list[:i+1], slices.DeleteFunc(p.list[i+1:], named(name))...)
}

// changed carries the list over to the URL that it belongs to (URL: update steps), and
// returns undefined.
func (p *params) changed() goja.Value {
	if p.url != nil {
		p.url.SetSearch(encodeForm(p.list))
	}
	return goja.Undefined()
}

// decodeForm reads application/x-www-form-urlencoded text (URL, 5.1): "a=1&b=x+y&c" is a:
// "1", b: "x y", c: "".
func decodeForm(text string) [][2]string {
	var list [][2]string
	for part := range strings.SplitSeq(text, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		list = append(list, [2]string{decodePercent(name), decodePercent(value)})
	}
	return list
}

// decodePercent decodes + and escapes, and leaves malformed escapes as they are: "100%"
// stays "100%". Bytes that are not UTF-8 become U+FFFD (decodeUTF8).
func decodePercent(s string) string {
	s = strings.ReplaceAll(s, "+", " ")
	if !strings.Contains(s, "%") {
		return s
	}
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, ok1 := hexValue(s[i+1])
			low, ok2 := hexValue(s[i+2])
			if ok1 && ok2 {
				text = append(text, high<<4|low)
				i += 2
				continue
			}
		}
		text = append(text, s[i])
	}
	return encoding.DecodeUTF8(text)
}

// hexValue returns the value of a hexadecimal digit; ok is false for other bytes.
func hexValue(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// encodeForm writes application/x-www-form-urlencoded text (URL, 5.2): a: "x y", b: "ü" is
// "a=x+y&b=%C3%BC".
func encodeForm(list [][2]string) string {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteByte('&')
		}
		encodePercent(&b, p[0])
		b.WriteByte('=')
		encodePercent(&b, p[1])
	}
	return b.String()
}

// encodePercent writes s with all bytes escaped but letters, digits and * - . _.
func encodePercent(b *strings.Builder, s string) {
	const upper = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ':
			b.WriteByte('+')
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("*-._", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', upper[c>>4], upper[c&15]})
		}
	}
}
