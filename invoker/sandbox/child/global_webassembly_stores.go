package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/wasm"
)

// descriptor returns the argument that describes a memory, a table or a global.
func (r *realm) descriptor(v goja.Value, class string) *goja.Object {
	o, ok := v.(*goja.Object)
	if !ok {
		panic(r.vm.NewTypeError("WebAssembly.%s: a descriptor is required", class))
	}
	return o
}

// limits reads address, initial and maximum. most is the largest of the numbers that is a valid
// type. Memories and tables have addresses of 32 bits only.
func (r *realm) limits(o *goja.Object, class string, most uint64) wasm.Limits {
	if address := orUndefined(o.Get("address")); !goja.IsUndefined(address) {
		switch r.text(address).String() {
		case "i32":
		case "i64":
			panic(r.vm.NewTypeError("WebAssembly.%s: addresses of 64 bits are not supported", class))
		default:
			panic(r.vm.NewTypeError(`WebAssembly.%s: address must be "i32"`, class))
		}
	}
	var l wasm.Limits
	initial := orUndefined(o.Get("initial"))
	if goja.IsUndefined(initial) {
		panic(r.vm.NewTypeError("WebAssembly.%s: initial is required", class))
	}
	l.Min = uint64(r.unsigned32(initial, "initial"))
	if maximum := orUndefined(o.Get("maximum")); !goja.IsUndefined(maximum) {
		l.Max, l.HasMax = uint64(r.unsigned32(maximum, "maximum")), true
	}
	if l.Min > most || l.HasMax && (l.Max > most || l.Max < l.Min) {
		panic(r.errorOf("RangeError", "WebAssembly."+class+": initial and maximum are not in order or too large"))
	}
	return l
}

// wasmValueType returns the type of that name, false for none.
func wasmValueType(name string) (wasm.ValueType, bool) {
	t, ok := map[string]wasm.ValueType{
		"i32": wasm.I32, "i64": wasm.I64, "f32": wasm.F32, "f64": wasm.F64, "v128": wasm.V128,
		"externref": wasm.ExternRef, "anyfunc": wasm.FuncRef, "funcref": wasm.FuncRef,
	}[name]
	return t, ok
}

func memoryClass() *class[*wasmMemory] {
	return &class[*wasmMemory]{
		name: "WebAssembly.Memory", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *wasmMemory {
			o := r.descriptor(call.Argument(0), "Memory")
			l := r.limits(o, "Memory", 1<<16)
			if shared := o.Get("shared"); shared != nil && shared.ToBoolean() {
				panic(r.vm.NewTypeError("WebAssembly.Memory: shared memories are not supported"))
			}
			m := r.wasm.newMemory(l)
			m.object = call.This
			return m
		},
		members: []member[*wasmMemory]{
			{name: "grow", length: 1, call: func(r *realm, m *wasmMemory, call goja.FunctionCall) goja.Value {
				before, ok := m.grow(r.unsigned32(call.Argument(0), "delta"))
				if !ok {
					panic(r.errorOf("RangeError", "WebAssembly.Memory.grow: above the maximum or the memory limit of the function"))
				}
				return r.vm.ToValue(before)
			}},
			{name: "buffer", get: func(_ *realm, m *wasmMemory) goja.Value { return m.current() }},
		},
	}
}

func tableClass() *class[*wasmTable] {
	return &class[*wasmTable]{
		name: "WebAssembly.Table", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *wasmTable {
			o := r.descriptor(call.Argument(0), "Table")
			element, ok := wasmValueType(orUndefined(o.Get("element")).String())
			if !ok || element != wasm.FuncRef && element != wasm.ExternRef {
				panic(r.vm.NewTypeError(`WebAssembly.Table: element must be "anyfunc" or "externref"`))
			}
			t := r.wasm.newTable(element, r.limits(o, "Table", 1<<32-1))
			if value := t.element(goja.FunctionCall{Arguments: call.Arguments}, 1); value != 0 {
				t.do("fill", 0, value, uint64(t.size()))
			}
			return t
		},
		members: []member[*wasmTable]{
			{name: "grow", length: 1, call: func(r *realm, t *wasmTable, call goja.FunctionCall) goja.Value {
				delta := r.unsigned32(call.Argument(0), "delta")
				value, before := t.element(call, 1), uint32(1<<32-1)
				if r.wasm.hasElements(uint64(delta)) {
					before = uint32(t.do("grow", uint64(delta), value)[0])
				}
				if before == 1<<32-1 {
					panic(r.errorOf("RangeError", "WebAssembly.Table.grow: above the maximum or the limit of the function"))
				}
				r.wasm.elements += uint64(delta)
				return r.vm.ToValue(before)
			}},
			{name: "get", length: 1, call: func(r *realm, t *wasmTable, call goja.FunctionCall) goja.Value {
				i := r.unsigned32(call.Argument(0), "index")
				return t.engine.fromWasm(t.do("get", t.at(i))[0], t.extern.kind.Value)
			}},
			{name: "set", length: 1, call: func(r *realm, t *wasmTable, call goja.FunctionCall) goja.Value {
				i := r.unsigned32(call.Argument(0), "index")
				value := t.element(call, 1)
				t.do("set", t.at(i), value)
				return goja.Undefined()
			}},
			{name: "length", get: func(r *realm, t *wasmTable) goja.Value { return r.vm.ToValue(t.size()) }},
		},
	}
}

func globalClass() *class[*wasmGlobal] {
	return &class[*wasmGlobal]{
		name: "WebAssembly.Global", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *wasmGlobal {
			o := r.descriptor(call.Argument(0), "Global")
			mutable := o.Get("mutable")
			value, ok := wasmValueType(orUndefined(o.Get("value")).String())
			if !ok || value == wasm.V128 {
				panic(r.vm.NewTypeError("WebAssembly.Global: value must be the name of a type: i32, i64, f32, f64, externref or anyfunc"))
			}
			t := wasm.Type{Kind: wasm.Global, Value: value, Mutable: mutable != nil && mutable.ToBoolean()}
			return r.wasm.newGlobal(t, call.Argument(1))
		},
		members: []member[*wasmGlobal]{
			{
				name: "value", get: func(_ *realm, g *wasmGlobal) goja.Value { return g.get() },
				set: func(_ *realm, g *wasmGlobal, v goja.Value) { g.set(v) },
			},
			{name: "valueOf", call: func(_ *realm, g *wasmGlobal, _ goja.FunctionCall) goja.Value { return g.get() }},
		},
	}
}
