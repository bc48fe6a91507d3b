package child

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/dop251/goja"
)

// Bounds of what inspection shows, as in Node: inspectDepth levels of objects, inspectItems
// items or members of each. inspectMaxBytes bounds the text, approximately: at that size,
// further objects are shown as [Object].
const (
	inspectDepth    = 2
	inspectItems    = 100
	inspectMaxBytes = 256 << 10
)

// format returns the text that console methods print: the first argument with its
// directives filled in, the others inspected (https://console.spec.whatwg.org/#formatter).
//
//	("%s: %d%%", "load", 7, [1])   load: 7% [ 1 ]
//	({a: {b: {c: {}}}})            { a: { b: { c: [Object] } } }
//	("x", "y")                     x y
func (r *realm) format(args []goja.Value) string {
	var b strings.Builder
	if len(args) > 0 {
		if text, ok := args[0].(goja.String); ok {
			args = r.directives(&b, text.String(), args[1:])
		} else {
			r.inspect(&b, args[0], inspectDepth)
			args = args[1:]
		}
	}
	for _, arg := range args {
		b.WriteByte(' ')
		if text, ok := arg.(goja.String); ok {
			b.WriteString(text.String())
		} else {
			r.inspect(&b, arg, inspectDepth)
		}
	}
	return b.String()
}

// directives writes text with %s and the like filled in, and returns the remaining
// arguments.
//
// A directive without an argument stays as it is.
func (r *realm) directives(b *strings.Builder, text string, args []goja.Value) []goja.Value {
	for {
		at := strings.IndexByte(text, '%')
		if at < 0 || at+1 == len(text) || len(args) == 0 {
			b.WriteString(text)
			return args
		}
		b.WriteString(text[:at])
		verb := text[at+1]
		text = text[at+2:]
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		if !strings.ContainsRune("sdifjoOc", rune(verb)) {
			b.WriteByte('%')
			b.WriteByte(verb)
			continue
		}
		r.directive(b, verb, args[0])
		args = args[1:]
	}
}

// directive writes v as the directive verb wants it: s a string, d and f a number, i an
// integer, j JSON, c nothing, o and O an inspected value.
func (r *realm) directive(b *strings.Builder, verb byte, v goja.Value) {
	switch verb {
	case 's':
		if text, ok := v.(goja.String); ok {
			b.WriteString(text.String())
		} else {
			r.inspect(b, v, 0)
		}
	case 'd', 'f':
		b.WriteString(numberText(v, false))
	case 'i':
		b.WriteString(numberText(v, true))
	case 'j':
		text, ok, err := r.encodeJSON(v, inspectMaxBytes)
		switch {
		case err != nil && uncatchable(err):
			panic(err)
		case err != nil || !ok:
			b.WriteString("undefined")
		default:
			b.Write(text)
		}
	case 'c': // CSS, which a log does not show
	default:
		r.inspect(b, v, inspectDepth)
	}
}

// numberText returns v as a number, cut to an integer if whole is true; NaN for objects and
// symbols.
func numberText(v goja.Value, whole bool) string {
	switch v.(type) {
	case *goja.Object, *goja.Symbol:
		return "NaN"
	}
	if n, ok := v.Export().(*big.Int); ok {
		return n.String() + "n"
	}
	f := v.ToFloat()
	if whole && f == f {
		return strconv.FormatInt(int64(f), 10)
	}
	return v.ToNumber().String()
}

// inspector writes a value as a reader of logs likes it, as Node's util.inspect.
//
// It reads members, and so may run getters of the script, which may throw: the exception
// reaches the caller of console.log.
type inspector struct {
	*realm
	b     *strings.Builder
	stack []*goja.Object // the objects being written, to find cycles
}

// inspect writes v with depth levels of objects; at -1 it writes the kind of an object
// alone.
func (r *realm) inspect(b *strings.Builder, v goja.Value, depth int) {
	i := inspector{realm: r, b: b}
	i.value(v, depth)
}

// value writes a value within another one: strings are quoted there.
func (i *inspector) value(v goja.Value, depth int) {
	switch v := v.(type) {
	case nil:
		i.b.WriteString("undefined")
	case goja.String:
		i.b.WriteString(quoted(v.String()))
	case *goja.Symbol:
		i.b.WriteString("Symbol(" + v.String() + ")")
	case *goja.Object:
		i.object(v, depth)
	default:
		if f, ok := v.Export().(float64); ok && f == 0 {
			i.b.WriteString("-0") // goja keeps other zeros as integers
			return
		}
		i.b.WriteString(v.String())
		if _, ok := v.Export().(*big.Int); ok {
			i.b.WriteByte('n')
		}
	}
}

// quoted returns s in single quotes, with \, ' and line feeds escaped, as Node does.
func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(s) + "'"
}

// object writes an object by its class. A cycle is [Circular *1], whichever object it leads
// back to.
func (i *inspector) object(obj *goja.Object, depth int) {
	for _, outer := range i.stack {
		if outer == obj {
			i.b.WriteString("[Circular *1]")
			return
		}
	}
	class := obj.ClassName()
	switch {
	case class == "Error":
		i.failure(obj)
		return
	case class == "RegExp":
		i.b.WriteString("/" + textOf(obj, "source") + "/" + textOf(obj, "flags"))
		return
	case class == "Date":
		i.b.WriteString(dateText(obj))
		return
	case isPromise(obj):
		i.b.WriteString("Promise { " + promiseState(obj) + " }")
		return
	}
	if _, ok := goja.AssertFunction(obj); ok {
		i.b.WriteString(functionText(obj))
		return
	}
	if depth < 0 || i.b.Len() > inspectMaxBytes {
		i.b.WriteString(map[bool]string{true: "[Array]", false: "[Object]"}[class == "Array"])
		return
	}
	i.stack = append(i.stack, obj)
	i.content(obj, class, depth)
	i.stack = i.stack[:len(i.stack)-1]
}

// content writes the items or members of an object.
func (i *inspector) content(obj *goja.Object, class string, depth int) {
	switch {
	case class == "Array":
		i.list(obj, depth)
	case obj.ExportType() == mapType:
		i.collection(obj, "Map", depth)
	case obj.ExportType() == setType:
		i.collection(obj, "Set", depth)
	default:
		i.members(obj, depth)
	}
}

// list writes an array. Holes are undefined.
func (i *inspector) list(array *goja.Object, depth int) {
	n := int(array.Get("length").ToInteger())
	if n == 0 {
		i.b.WriteString("[]")
		return
	}
	i.b.WriteString("[ ")
	for at := range min(n, inspectItems) {
		if at > 0 {
			i.b.WriteString(", ")
		}
		i.value(array.Get(strconv.Itoa(at)), depth-1)
	}
	if n > inspectItems {
		fmt.Fprintf(i.b, ", ... %d more items", n-inspectItems)
	}
	i.b.WriteString(" ]")
}

// collection writes a Map or a Set through its iterator.
func (i *inspector) collection(obj *goja.Object, class string, depth int) {
	fmt.Fprintf(i.b, "%s(%s) {", class, textOf(obj, "size"))
	n := 0
	i.vm.ForOf(obj, func(item goja.Value) bool {
		n++
		if n > inspectItems {
			return false
		}
		i.b.WriteString(map[bool]string{true: " ", false: ", "}[n == 1])
		if pair, ok := item.(*goja.Object); ok && class == "Map" {
			i.value(pair.Get("0"), depth-1)
			i.b.WriteString(" => ")
			i.value(pair.Get("1"), depth-1)
		} else {
			i.value(item, depth-1)
		}
		return true
	})
	i.b.WriteString(" }")
}

var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_$][\w$]*$`) })

// members writes an object's own enumerable members, behind the name of its class unless
// that is Object.
func (i *inspector) members(obj *goja.Object, depth int) {
	if ctor, ok := orUndefined(obj.Get("constructor")).(*goja.Object); ok {
		if name := textOf(ctor, "name"); name != "" && name != "Object" {
			i.b.WriteString(name + " ")
		}
	}
	keys := obj.Keys()
	if len(keys) == 0 {
		i.b.WriteString("{}")
		return
	}
	i.b.WriteString("{ ")
	for n, key := range keys[:min(len(keys), inspectItems)] {
		if n > 0 {
			i.b.WriteString(", ")
		}
		if identifier().MatchString(key) {
			i.b.WriteString(key)
		} else {
			i.b.WriteString(quoted(key))
		}
		i.b.WriteString(": ")
		i.value(obj.Get(key), depth-1)
	}
	i.b.WriteString(" }")
}

// failure writes an Error: its stack, which begins with its name and message.
func (i *inspector) failure(obj *goja.Object) {
	if stack, ok := stringProperty(obj, "stack"); ok {
		i.b.WriteString(i.withCauses(obj, cleanStack(stack)))
		return
	}
	i.b.WriteString("[" + obj.String() + "]")
}

// textOf returns a property as text, "" if it is missing.
func textOf(obj *goja.Object, name string) string {
	v := obj.Get(name)
	if v == nil {
		return ""
	}
	return v.String()
}

// dateText returns a Date in ISO 8601, as its toJSON writes it.
func dateText(obj *goja.Object) string {
	iso, ok := goja.AssertFunction(obj.Get("toJSON"))
	if !ok {
		return obj.String()
	}
	v, err := iso(obj)
	must(err)
	if goja.IsNull(v) {
		return "Invalid Date"
	}
	return v.String()
}

func promiseState(obj *goja.Object) string {
	switch obj.Export().(*goja.Promise).State() {
	case goja.PromiseStatePending:
		return "<pending>"
	case goja.PromiseStateRejected:
		return "<rejected>"
	}
	return "<fulfilled>"
}

func functionText(obj *goja.Object) string {
	name := textOf(obj, "name")
	if name == "" {
		return "[Function (anonymous)]"
	}
	return "[Function: " + name + "]"
}
