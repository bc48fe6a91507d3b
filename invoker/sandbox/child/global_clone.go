package child

import (
	"reflect"
	"slices"

	"github.com/dop251/goja"
)

// maxCloneDepth bounds structuredClone, which recurses.
const maxCloneDepth = 1000

// Maps and Sets are known by the type that goja exports them as.
var (
	mapType = reflect.TypeFor[[][2]any]()
	setType = reflect.TypeFor[[]any]()
)

// cloner copies values as the structured clone algorithm does
// (https://html.spec.whatwg.org/#structuredserializeinternal).
//
// It copies primitives, arrays, plain objects, boxed primitives, Date, RegExp, Error, Map,
// Set, ArrayBuffer and its views, DOMException, Blob, File, CryptoKey and WebAssembly.Module,
// also in cycles, and moves the objects that are transferred. It refuses functions, symbols, promises,
// proxies and other objects with internal state with a DataCloneError. An object of a
// script's own class becomes a plain one.
type cloner struct {
	*realm
	done  map[*goja.Object]*goja.Object // the copies, by their original
	depth int                           // of the value that is being copied
}

// structuredClone is structuredClone(value, options).
func structuredClone(r *realm, call goja.FunctionCall) goja.Value {
	var transfer []goja.Value
	switch options := call.Argument(1).(type) {
	case *goja.Object:
		if list := given(options, "transfer"); list != nil {
			transfer = r.sequence(list)
			for _, item := range transfer {
				if _, ok := item.(*goja.Object); !ok {
					panic(r.vm.NewTypeError("structuredClone: a value of transfer is no object"))
				}
			}
		}
	default:
		if !goja.IsUndefined(options) && !goja.IsNull(options) {
			panic(r.vm.NewTypeError("structuredClone: the options must be an object"))
		}
	}
	v, _ := r.cloned(call.Argument(0), transfer)
	return v
}

// refuse throws a DataCloneError; what describes the value, "a function" for example.
func (c *cloner) refuse(what string) {
	panic(c.newDOMException("DataCloneError", what+" cannot be cloned"))
}

// clone returns the copy of v: v itself for a primitive, and the same copy for every
// occurrence of an object.
func (c *cloner) clone(v goja.Value) goja.Value {
	switch v := v.(type) {
	case *goja.Symbol:
		c.refuse("a symbol")
	case *goja.Object:
		if copied, ok := c.done[v]; ok {
			return copied
		}
		c.depth++
		if c.depth > maxCloneDepth {
			c.refuse("a value nested deeper than 1000 levels")
		}
		defer func() { c.depth-- }()
		return c.object(v)
	}
	return v
}

// keep remembers a copy before its members are copied, so that cycles close.
func (c *cloner) keep(from, to *goja.Object) *goja.Object {
	c.done[from] = to
	return to
}

// create makes an object of one of the language's classes, by the constructor that the
// script has under that name.
func (c *cloner) create(class string, args ...goja.Value) *goja.Object {
	obj, err := c.vm.New(c.vm.Get(class), args...)
	must(err)
	return obj
}

// object copies an object by its class.
func (c *cloner) object(from *goja.Object) goja.Value {
	if what := stateful(from); what != "" {
		c.refuse(what)
	}
	if implementation(from).Type().Name() == "primitiveValueObject" {
		if _, symbol := unboxed(from).(*goja.Symbol); symbol {
			c.refuse("an object of a symbol")
		}
		return c.keep(from, unboxed(from).ToObject(c.vm))
	}
	switch class := from.ClassName(); class {
	case "Function":
		c.refuse("a function")
	case "Arguments":
		c.refuse("an arguments object")
	case "Date":
		return c.keep(from, c.create("Date", from.ToNumber()))
	case "String":
		return c.keep(from, unboxed(from).ToObject(c.vm))
	case "RegExp":
		return c.keep(from, c.create("RegExp", from.Get("source"), from.Get("flags")))
	case "Array":
		return c.members(from, c.keep(from, c.vm.NewArray()))
	case "Error":
		return c.failure(from)
	}
	switch from.ExportType() {
	case mapType:
		return c.entries(from, c.keep(from, c.create("Map")), "set")
	case setType:
		return c.entries(from, c.keep(from, c.create("Set")), "add")
	case bufferType:
		return c.buffer(from)
	}
	if _, ok := bufferSource(from); ok {
		return c.view(from)
	}
	if to := c.platformObject(from); to != nil {
		return c.keep(from, to)
	}
	return c.members(from, c.keep(from, c.vm.NewObject()))
}

// unboxed returns the value of a boxed primitive, which its members may hide.
func unboxed(obj *goja.Object) goja.Value {
	name := "pValue"
	if obj.ClassName() == "String" {
		name = "value"
	}
	return field(implementation(obj), name).Interface().(goja.Value)
}

// members copies the own enumerable members from one object to another, and an array's
// length, since an array may have holes.
func (c *cloner) members(from, to *goja.Object) goja.Value {
	if from.ClassName() == "Array" {
		must(to.Set("length", from.Get("length")))
	}
	for _, key := range from.Keys() {
		if v := from.Get(key); v != nil { // a getter may have deleted it
			must(define(to, key, c.clone(v)))
		}
	}
	return to
}

// entries copies a Map's pairs or a Set's items through the method that adds one. Those that
// a getter adds meanwhile are not copied.
func (c *cloner) entries(from, to *goja.Object, method string) goja.Value {
	add, ok := goja.AssertFunction(to.Get(method))
	if !ok {
		c.refuse("a collection without " + method)
	}
	for _, args := range entriesOf(from) {
		for i := range args {
			args[i] = c.clone(args[i])
		}
		_, err := add(to, args...)
		must(err)
	}
	return to
}

// entriesOf returns the pairs of a Map or the items of a Set. It reads the list of goja: the
// iterator is a method, which the script may have replaced.
func entriesOf(collection *goja.Object) (entries [][]goja.Value) {
	impl := implementation(collection)
	isMap := collection.ExportType() == mapType
	for entry := field(field(impl, "m").Elem(), "iterFirst"); !entry.IsNil(); entry = field(entry.Elem(), "iterNext") {
		args := []goja.Value{field(entry.Elem(), "key").Interface().(goja.Value)}
		if isMap {
			args = append(args, field(entry.Elem(), "value").Interface().(goja.Value))
		}
		entries = append(entries, args)
	}
	return entries
}

// failure copies an Error: its class if it is one of the language's or a DOMException, its
// message, its stack and its cause.
func (c *cloner) failure(from *goja.Object) goja.Value {
	class, _ := stringProperty(from, "name")
	message, hasMessage := "", false
	if v := from.Get("message"); v != nil && !goja.IsUndefined(v) {
		message, hasMessage = v.String(), true
	}
	var to *goja.Object
	if e, ok := stateOf[*domError](from); ok {
		class, message = e.name, e.message
		to = c.keep(from, c.newDOMException(class, message))
	} else {
		switch class {
		case "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError":
		default:
			class = "Error"
		}
		to = c.keep(from, c.newNamedError(class, message))
		if !hasMessage || message == "" && !slices.Contains(from.GetOwnPropertyNames(), "message") {
			must(to.Delete("message"))
		}
	}
	if stack, ok := stringProperty(from, "stack"); ok {
		c.hidden(to, "stack", c.vm.ToValue(stack))
	}
	if cause := from.Get("cause"); cause != nil {
		c.hidden(to, "cause", c.clone(cause))
	}
	return to
}
