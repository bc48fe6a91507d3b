package child

import (
	"bytes"

	"github.com/dop251/goja"
)

const (
	messagingModule = "internal/messaging"
	viewsModule     = "internal/views"
)

// cloned copies a value and moves the objects of the list: an ArrayBuffer, which is detached,
// or a MessagePort (https://html.spec.whatwg.org/#structuredserializewithtransfer). It also
// returns the ports, in the order of the list. It throws a DataCloneError for what can be
// neither copied nor moved; nothing is moved then.
func (r *realm) cloned(v goja.Value, transfer []goja.Value) (copied goja.Value, ports []any) {
	c := &cloner{realm: r, done: make(map[*goja.Object]*goja.Object)}
	moved := make([]*goja.Object, 0, len(transfer))
	for _, item := range transfer {
		obj, ok := item.(*goja.Object)
		if !ok || c.done[obj] != nil {
			panic(r.newDOMException("DataCloneError", "an object is listed twice in transfer"))
		}
		moved = append(moved, obj)
		c.done[obj] = c.destination(obj)
	}
	copied = c.clone(v)
	for _, obj := range moved {
		c.movable(obj) // getters may have moved it
	}
	for _, obj := range moved {
		to := c.done[obj]
		if obj.ExportType() == bufferType {
			detach(obj)
			continue
		}
		r.callBuiltin(messagingModule, "transfer", obj, to)
		ports = append(ports, to)
	}
	return copied, ports
}

// destination makes the object that takes over from one that is transferred.
func (c *cloner) destination(obj *goja.Object) *goja.Object {
	c.movable(obj)
	if obj.ExportType() != bufferType {
		return c.callBuiltin(messagingModule, "newPort").(*goja.Object)
	}
	if _, ok := stateOf[*resizable](obj); ok {
		return c.copyOfBuffer(obj) // the views may still write beyond the length
	}
	return c.vm.ToValue(c.vm.NewArrayBuffer(obj.Export().(goja.ArrayBuffer).Bytes())).(*goja.Object)
}

// movable throws a DataCloneError for an object that cannot be transferred, and a TypeError
// for the buffer of a WebAssembly.Memory.
func (c *cloner) movable(obj *goja.Object) {
	if stateful(obj) == "" && obj.ExportType() == bufferType {
		if obj.Export().(goja.ArrayBuffer).Detached() {
			c.refuse("a detached ArrayBuffer")
		}
		if _, ok := stateOf[wasmBuffer](obj); ok {
			panic(c.vm.NewTypeError("the buffer of a WebAssembly.Memory cannot be transferred"))
		}
		return
	}
	if c.node[messagingModule] == nil || !c.callBuiltin(messagingModule, "isPort", obj).ToBoolean() {
		c.refuse("an object that is listed in transfer and cannot be transferred")
	}
	if !c.callBuiltin(messagingModule, "transferable", obj).ToBoolean() {
		c.refuse("a MessagePort that was transferred before")
	}
}

// buffer copies an ArrayBuffer.
func (c *cloner) buffer(from *goja.Object) goja.Value {
	if from.Export().(goja.ArrayBuffer).Detached() {
		c.refuse("a detached ArrayBuffer")
	}
	return c.keep(from, c.copyOfBuffer(from))
}

// copyOfBuffer returns a buffer with the same bytes, and the same maximum if it is resizable.
func (c *cloner) copyOfBuffer(from *goja.Object) *goja.Object {
	data := bytes.Clone(from.Export().(goja.ArrayBuffer).Bytes())
	to := c.vm.ToValue(c.vm.NewArrayBuffer(data)).(*goja.Object)
	if state, ok := stateOf[*resizable](from); ok {
		bufferMake(c.realm, goja.FunctionCall{Arguments: []goja.Value{to, c.vm.ToValue(len(data)), c.vm.ToValue(len(state.bytes))}})
	}
	return to
}

// view copies a typed array or a DataView with all of its buffer. One that tracks the length
// of a resizable buffer gets the length that it has now.
func (c *cloner) view(from *goja.Object) goja.Value {
	made, ok := c.callBuiltin(viewsModule, "viewOf", from).(*goja.Object)
	if !ok {
		c.refuse("a view of another kind")
	}
	source, ok := made.Get("buffer").(*goja.Object)
	if !ok || source.ExportType() != bufferType {
		c.refuse("a view without a buffer")
	}
	size := max(1, made.Get("size").ToInteger())
	to, err := c.vm.New(made.Get("Type"), c.clone(source), made.Get("byteOffset"), c.vm.ToValue(made.Get("byteLength").ToInteger()/size))
	must(err)
	return c.keep(from, to)
}

// platformObject returns the copy of an object of the platform, nil for other objects, and
// refuses those that are not serializable.
func (c *cloner) platformObject(from *goja.Object) *goja.Object {
	if key, ok := stateOf[*cryptoKey](from); ok {
		return keyClass().instance(c.realm, &cryptoKey{Key: key.Key})
	}
	if module, ok := stateOf[*wasmModule](from); ok {
		return moduleClass().instance(c.realm, module)
	}
	if kept := from.GetSymbol(slot); kept != nil && !goja.IsUndefined(kept) {
		c.refuse("a platform object")
	}
	if c.node["internal/webidl"] == nil {
		return nil
	}
	class := c.callBuiltin("internal/webidl", "platformClass", from)
	switch {
	case goja.IsUndefined(class):
		return nil
	case class.String() == "Blob", class.String() == "File":
		if to, ok := c.callBuiltin("internal/web", "copyOf", from).(*goja.Object); ok {
			return to
		}
	}
	c.refuse("an object of the class " + class.String())
	return nil
}

// stateful names the kind of an object whose internal state has no copy, "" for others. It is
// known by goja's implementation: no member of the object is read.
func stateful(obj *goja.Object) string {
	switch implementation(obj).Type().Name() {
	case "proxyObject":
		return "a Proxy"
	case "Promise":
		return "a Promise"
	case "weakMapObject":
		return "a WeakMap"
	case "weakSetObject":
		return "a WeakSet"
	case "generatorObject":
		return "a generator"
	case "mapIterObject", "setIterObject", "arrayIterObject", "stringIterObject", "regExpStringIterObject":
		return "an iterator"
	}
	return ""
}
