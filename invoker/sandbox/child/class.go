package child

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja"
)

// slot is the property under which an object keeps its Go state: out of reach
// for scripts, which see an empty object there.
var slot = goja.NewSymbol("[[State]]")

// holder carries Go state in a script object that has no members.
//
// A script that gets hold of it sees an object without members; only Go code that exports
// it reaches state. A script can put it into another object, or make an object inherit it:
// it counts only where its owner has it.
type holder struct {
	state any
	owner *goja.Object
}

func (*holder) Get(string) goja.Value       { return nil }
func (*holder) Set(string, goja.Value) bool { return false }
func (*holder) Has(string) bool             { return false }
func (*holder) Delete(string) bool          { return false }
func (*holder) Keys() []string              { return nil }

// member is a method, or with get or set an accessor, of a class with state T. call, get
// and set receive the state of their receiver; a receiver without one is a TypeError
// ("Illegal invocation"), so scripts cannot call a method on an object of another class. A
// call with fewer arguments than length is a TypeError, too; a method that returns a promise
// counts them itself, to reject it.
type member[T any] struct {
	name    string
	length  int
	promise bool
	call    func(r *realm, this T, call goja.FunctionCall) goja.Value
	get     func(r *realm, this T) goja.Value
	set     func(r *realm, this T, v goja.Value)
}

// class describes a class of native objects with state T. A nil construct makes `new`
// throw, for classes whose objects only the platform makes. A description is made when it
// is needed and holds no state of a realm; define makes its objects.
//
//	headersClass().instance(r, h)   an object whose state is h
//	stateOf[*headers](v)            the state of v, if it is such an object
type class[T any] struct {
	name      string
	length    int
	construct func(r *realm, call goja.ConstructorCall) T
	members   []member[T]
	statics   []row
	iterate   string // the method that Symbol.iterator is
	// parent returns the constructor of the class that this one inherits from, nil for none.
	parent func(r *realm) *goja.Object
}

// built is a class in one realm. Realms share no objects, so each has its own.
type built struct {
	ctor, proto *goja.Object
	iterate     goja.Value // the method that Symbol.iterator was at first, nil for none
}

// define makes the class's constructor and prototype, once in a realm. Members are
// enumerable, as WebIDL has them; name and length are not.
func (c *class[T]) define(r *realm) built {
	if b, ok := r.classes[c.name]; ok {
		return b
	}
	ctor := r.vm.ToValue(func(call goja.ConstructorCall) *goja.Object {
		if c.construct == nil {
			panic(r.vm.NewTypeError("Illegal constructor: %s", c.name))
		}
		r.needs(goja.FunctionCall{Arguments: call.Arguments}, c.length, c.name)
		r.attach(call.This, c.construct(r, call))
		return nil
	}).(*goja.Object)
	r.onlyNew(ctor, c.name)
	b := built{ctor: ctor, proto: ctor.Get("prototype").(*goja.Object)}
	if c.parent != nil {
		parent := c.parent(r)
		must(b.ctor.SetPrototype(parent))
		must(b.proto.SetPrototype(parent.Get("prototype").(*goja.Object)))
	}
	r.readOnly(ctor, "name", r.vm.ToValue(c.name))
	r.readOnly(ctor, "length", r.vm.ToValue(c.length))
	must(ctor.DefineDataProperty("prototype", b.proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	for i := range c.members {
		c.add(r, b.proto, &c.members[i])
	}
	if c.iterate != "" {
		b.iterate = b.proto.Get(c.iterate)
		must(b.proto.DefineDataPropertySymbol(goja.SymIterator, b.iterate, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	}
	must(b.proto.DefineDataPropertySymbol(goja.SymToStringTag, r.vm.ToValue(c.name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	for _, s := range c.statics {
		must(define(ctor, s.name, s.make(r)))
	}
	if r.classes == nil {
		r.classes = make(map[string]built)
	}
	r.classes[c.name] = b
	return b
}

// onlyNew makes a constructor throw without new: goja tells a call and a construction apart by two
// functions of its object only.
func (r *realm) onlyNew(ctor *goja.Object, name string) {
	field(implementation(ctor), "f").Set(reflect.ValueOf(func(goja.FunctionCall) goja.Value {
		panic(r.vm.NewTypeError("Class constructor %s cannot be invoked without 'new'", name))
	}))
}

// add defines one member on the prototype. Its function has the JavaScript name that
// browsers show: append, get href, set href.
func (c *class[T]) add(r *realm, proto *goja.Object, m *member[T]) {
	if m.call != nil {
		f := r.newFunction(m.name, m.length, func(call goja.FunctionCall) goja.Value {
			if m.promise {
				this, ok := stateOf[T](call.This)
				if !ok {
					return r.rejected(r.newNamedError("TypeError", "Illegal invocation: the receiver is not a "+c.name))
				}
				return m.call(r, this, call)
			}
			this := receiver[T](r, call.This, c.name)
			r.needs(call, m.length, m.name)
			return m.call(r, this, call)
		})
		must(proto.DefineDataProperty(m.name, f, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
		return
	}
	var set goja.Value
	get := r.newFunction("get "+m.name, 0, func(call goja.FunctionCall) goja.Value {
		return m.get(r, receiver[T](r, call.This, c.name))
	})
	if m.set != nil {
		set = r.newFunction("set "+m.name, 1, func(call goja.FunctionCall) goja.Value {
			m.set(r, receiver[T](r, call.This, c.name), call.Argument(0))
			return goja.Undefined()
		})
	}
	must(proto.DefineAccessorProperty(m.name, get, set, goja.FLAG_TRUE, goja.FLAG_TRUE))
}

// iterates reports whether an object of a class is iterated by the class's own method: neither the
// object nor the prototype has another one.
func (r *realm) iterates(v goja.Value, class string) bool {
	obj, ok := v.(*goja.Object)
	return ok && obj.GetSymbol(goja.SymIterator) == r.classes[class].iterate
}

// global is the class's row in the table of globals.
func (c *class[T]) global() row {
	return row{c.name, func(r *realm) goja.Value { return c.define(r).ctor }}
}

// instance makes an object of the class around state, without calling construct.
func (c *class[T]) instance(r *realm, state T) *goja.Object {
	obj := r.vm.CreateObject(c.define(r).proto)
	r.attach(obj, state)
	return obj
}

// attach makes state the Go state of obj, for ever: the property cannot be changed or
// deleted.
func (r *realm) attach(obj *goja.Object, state any) {
	must(obj.DefineDataPropertySymbol(slot, r.vm.NewDynamicObject(&holder{state, obj}), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
}

// hidden defines a property that is not enumerated.
func (r *realm) hidden(obj *goja.Object, name string, v goja.Value) {
	must(obj.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

// readOnly defines a property as those of functions are: neither enumerated nor assigned to.
func (r *realm) readOnly(obj *goja.Object, name string, v goja.Value) {
	must(obj.DefineDataProperty(name, v, goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}

// Types that goja exports objects as.
var (
	holderType = reflect.TypeFor[*holder]()
	proxyType  = reflect.TypeFor[goja.Proxy]()
)

// stateOf returns an object's Go state, if it is of type T. The state belongs to that object
// alone: an object that inherits from it has none, and neither has a proxy of it, whose traps
// are not called. Code that relies on the kind of its receiver, as that of a resizable buffer
// does, would otherwise use the state of one object with the memory of another.
func stateOf[T any](v goja.Value) (state T, ok bool) {
	obj, ok := v.(*goja.Object)
	if !ok || obj.ExportType() == proxyType {
		return state, false
	}
	kept, ok := obj.GetSymbol(slot).(*goja.Object)
	if !ok || kept.ExportType() != holderType {
		return state, false
	}
	h, ok := kept.Export().(*holder)
	if !ok || h.owner != obj {
		return state, false
	}
	state, ok = h.state.(T)
	return state, ok
}

// receiver returns the state of a method's receiver, or throws a TypeError. name is the
// class's, for the message.
func receiver[T any](r *realm, this goja.Value, name string) T {
	state, ok := stateOf[T](this)
	if !ok {
		panic(r.vm.NewTypeError("Illegal invocation: the receiver is not a %s", name))
	}
	return state
}

// iterator makes an iterable iterator over values that are known: that of an array. Later
// changes of the object that it came from do not show in it.
func (r *realm) iterator(values []any) goja.Value {
	array := r.vm.NewArray(values...)
	start, ok := goja.AssertFunction(array.GetSymbol(goja.SymIterator))
	if !ok {
		panic(r.vm.NewTypeError("Array.prototype[Symbol.iterator] is not a function"))
	}
	v, err := start(array)
	must(err)
	return v
}

// recordPairs reads the members of an object with traps or with symbols, in the steps of the
// conversion to a record (https://webidl.spec.whatwg.org/#js-record).
func (r *realm) recordPairs(obj *goja.Object, what string) [][2]string {
	var out [][2]string
	bytes := r.vm.ToValue(what == "Headers")
	r.vm.ForOf(r.callBuiltin("internal/webidl", "record", obj, bytes), func(pair goja.Value) bool {
		o := pair.(*goja.Object)
		name, value := o.Get("0").String(), o.Get("1").String()
		if i := slices.IndexFunc(out, func(p [2]string) bool { return p[0] == name }); i >= 0 {
			out[i][1] = value // two keys are the same text
		} else {
			out = append(out, [2]string{name, value})
		}
		return true
	})
	return out
}

// pairs reads name and value pairs of an iterable of pairs or of an object's
// members, as the constructors of Headers and URLSearchParams take them.
//
// It throws a TypeError for values that are no objects and for pairs of another length;
// what names the class in the message.
func (r *realm) pairs(v goja.Value, what string) [][2]string {
	obj, ok := v.(*goja.Object)
	if !ok {
		panic(r.vm.NewTypeError("%s: the argument must be an object", what))
	}
	var out [][2]string
	if it := obj.GetSymbol(goja.SymIterator); it == nil || goja.IsUndefined(it) {
		if obj.ExportType() == proxyType || len(obj.Symbols()) > 0 {
			return r.recordPairs(obj, what)
		}
		keys := obj.Keys()
		if slices.ContainsFunc(keys, func(key string) bool { return strings.ContainsRune(key, '\ufffd') }) {
			return r.recordPairs(obj, what) // perhaps for a lone surrogate, which such a key does not find
		}
		for _, key := range keys {
			out = append(out, [2]string{key, r.text(orUndefined(obj.Get(key))).String()})
		}
		return out
	}
	r.vm.ForOf(obj, func(item goja.Value) bool {
		var pair []string
		if _, ok := item.(*goja.Object); ok {
			r.vm.ForOf(item, func(part goja.Value) bool {
				pair = append(pair, r.text(part).String())
				return len(pair) <= 2
			})
		}
		if len(pair) != 2 {
			panic(r.vm.NewTypeError("%s: each pair must have a name and a value", what))
		}
		out = append(out, [2]string{pair[0], pair[1]})
		return true
	})
	return out
}
