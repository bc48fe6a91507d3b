package child

import (
	"bytes"
	"reflect"

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
// Set, ArrayBuffer and its views, also in cycles. It refuses functions, symbols, promises
// and objects of the platform's classes with a DataCloneError. An object of a script's own
// class becomes a plain one.
type cloner struct {
	*realm
	done  map[*goja.Object]*goja.Object // the copies, by their original
	depth int                           // of the value that is being copied
}

// structuredClone is structuredClone(value, options). The option transfer is not supported.
func structuredClone(r *realm, call goja.FunctionCall) goja.Value {
	if options, ok := call.Argument(1).(*goja.Object); ok && given(options, "transfer") != nil {
		panic(r.newDOMException("NotSupportedError", "structuredClone: transfer is not supported"))
	}
	c := &cloner{realm: r, done: make(map[*goja.Object]*goja.Object)}
	return c.clone(call.Argument(0))
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
	if isPromise(from) {
		c.refuse("a Promise")
	}
	switch class := from.ClassName(); class {
	case "Function":
		c.refuse("a function")
	case "Date":
		return c.keep(from, c.create("Date", from.ToNumber()))
	case "Boolean", "Number", "String":
		return c.keep(from, c.create(class, c.primitive(from)))
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
		data := bytes.Clone(from.Export().(goja.ArrayBuffer).Bytes())
		return c.keep(from, c.vm.ToValue(c.vm.NewArrayBuffer(data)).(*goja.Object))
	}
	if _, ok := bufferSource(from); ok {
		return c.view(from)
	}
	if kept := from.GetSymbol(slot); kept != nil && !goja.IsUndefined(kept) {
		c.refuse("a platform object")
	}
	return c.members(from, c.keep(from, c.vm.NewObject()))
}

// primitive returns the value of a boxed Boolean, Number or String.
func (r *realm) primitive(obj *goja.Object) goja.Value {
	if obj.ClassName() == "String" {
		return obj.ToString()
	}
	if obj.ClassName() == "Boolean" {
		return r.vm.ToValue(obj.Export())
	}
	return obj.ToNumber()
}

// members copies the own enumerable members from one object to another, and an array's
// length, since an array may have holes.
func (c *cloner) members(from, to *goja.Object) goja.Value {
	if from.ClassName() == "Array" {
		must(to.Set("length", from.Get("length")))
	}
	for _, key := range from.Keys() {
		must(define(to, key, c.clone(from.Get(key))))
	}
	return to
}

// entries copies a Map's pairs or a Set's items through the method that adds one.
func (c *cloner) entries(from, to *goja.Object, method string) goja.Value {
	add, ok := goja.AssertFunction(to.Get(method))
	if !ok {
		c.refuse("a collection without " + method)
	}
	c.vm.ForOf(from, func(item goja.Value) bool {
		args := []goja.Value{item}
		if method == "set" {
			pair, ok := item.(*goja.Object)
			if !ok { // the script replaced the iterator of Map
				panic(c.vm.NewTypeError("structuredClone: an entry of a Map is not a pair"))
			}
			args = []goja.Value{orUndefined(pair.Get("0")), orUndefined(pair.Get("1"))}
		}
		for i := range args {
			args[i] = c.clone(args[i])
		}
		_, err := add(to, args...)
		must(err)
		return true
	})
	return to
}

// failure copies an Error: its class if it is one of the language's, its message,
// its stack and its cause.
func (c *cloner) failure(from *goja.Object) goja.Value {
	class, _ := stringProperty(from, "name")
	switch class {
	case "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError":
	default:
		class = "Error"
	}
	message, _ := stringProperty(from, "message")
	to := c.keep(from, c.newNamedError(class, message))
	if stack, ok := stringProperty(from, "stack"); ok {
		c.hidden(to, "stack", c.vm.ToValue(stack))
	}
	if cause := given(from, "cause"); cause != nil {
		c.hidden(to, "cause", c.clone(cause))
	}
	return to
}

// view copies a typed array or a DataView with all of its buffer.
func (c *cloner) view(from *goja.Object) goja.Value {
	ctor, ok := from.Get("constructor").(*goja.Object)
	if !ok {
		c.refuse("a view without a constructor")
	}
	buffer := c.clone(from.Get("buffer"))
	length := from.Get("length")
	if length == nil {
		length = from.Get("byteLength")
	}
	to, err := c.vm.New(ctor, buffer, from.Get("byteOffset"), length)
	must(err)
	return c.keep(from, to)
}
