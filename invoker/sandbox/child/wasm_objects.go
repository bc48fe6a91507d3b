package child

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/dop251/goja"
	wazeroapi "github.com/tetratelabs/wazero/api"

	"github.com/codesous/sous/invoker/sandbox/child/wasm"
)

// wasmTable is a table. access reads and writes it, and is made when that is first needed.
type wasmTable struct {
	engine *wasmEngine
	extern wasmExtern
	access wazeroapi.Module
}

// wasmGlobal is a global. shown is the value of an immutable externref, which wazero cannot
// hold.
type wasmGlobal struct {
	engine *wasmEngine
	extern wasmExtern
	global wazeroapi.Global
	shown  goja.Value
}

// primitive returns the value of Go for a primitive one, nil for an object: to export an object
// runs its getters, and may not end.
func primitive(v goja.Value) any {
	if _, ok := v.(*goja.Object); ok {
		return nil
	}
	return v.Export()
}

func isBigInt(v goja.Value) bool {
	_, ok := primitive(v).(*big.Int)
	return ok
}

// newMemory makes a memory outside of an instance: that of a module which exports it.
func (w *wasmEngine) newMemory(l wasm.Limits) *wasmMemory {
	w.roomFor(l.Min)
	var b wasm.Builder
	b.Export("x", wasm.Memory, b.Memory(l))
	m := &wasmMemory{engine: w}
	m.extern = wasmExtern{w.build(b.Binary(), m, nil), "x", wasm.Type{Kind: wasm.Memory, Limits: l}}
	m.memory = m.extern.module.ExportedMemory("x")
	return m
}

func (w *wasmEngine) memoryObject(m *wasmMemory, e wasmExtern) *goja.Object {
	if m.object == nil {
		m.extern, m.memory = e, e.module.ExportedMemory(e.name)
		m.object = memoryClass().instance(w.realm, m)
	}
	return m.object
}

// newTable makes a table outside of an instance.
func (w *wasmEngine) newTable(element wasm.ValueType, l wasm.Limits) *wasmTable {
	w.takeElements(l.Min)
	t := wasm.Type{Kind: wasm.Table, Value: element, Limits: l}
	if !l.HasMax || l.Max > w.maxElements() {
		l.Max, l.HasMax = max(w.maxElements(), l.Min), true
	}
	var b wasm.Builder
	b.Export("x", wasm.Table, b.Table(element, l))
	return &wasmTable{engine: w, extern: wasmExtern{w.build(b.Binary(), nil, nil), "x", t}}
}

func (w *wasmEngine) tableObject(t *wasmTable) *goja.Object {
	return tableClass().instance(w.realm, t)
}

// do calls a function of the access module.
func (t *wasmTable) do(name string, args ...uint64) []uint64 {
	w := t.engine
	if t.access == nil {
		source := w.link([]string{"t"}, []wasmExtern{t.extern})
		t.access = w.build(wasm.TableAccess(t.extern.kind), nil, map[string]wazeroapi.Module{"t": source})
	}
	results, err := t.access.ExportedFunction(name).Call(context.Background(), args...)
	w.raise(err)
	return results
}

func (t *wasmTable) size() uint32 { return uint32(t.do("size")[0]) }

// element converts an argument to an element: the default of the type if it is missing.
func (t *wasmTable) element(call goja.FunctionCall, i int) uint64 {
	if len(call.Arguments) <= i {
		if t.extern.kind.Value == wasm.ExternRef {
			return t.engine.externRef(goja.Undefined())
		}
		return 0
	}
	return t.engine.toWasm(call.Arguments[i], t.extern.kind.Value)
}

// at returns an index, which must be within the table: a RangeError.
func (t *wasmTable) at(i uint32) uint64 {
	if size := t.size(); i >= size {
		panic(t.engine.realm.errorOf("RangeError", fmt.Sprintf("WebAssembly.Table: index %d is outside of a table of %d elements", i, size)))
	}
	return uint64(i)
}

// unsigned32 converts as [EnforceRange] unsigned long of WebIDL.
func (r *realm) unsigned32(v goja.Value, what string) uint32 {
	f := math.Trunc(numberOf(r, v))
	if !(f >= 0 && f <= math.MaxUint32) {
		panic(r.vm.NewTypeError("%s must be an integer from 0 to 4294967295", what))
	}
	return uint32(f)
}

// newGlobal makes a global outside of an instance; v is undefined for the default.
func (w *wasmEngine) newGlobal(t wasm.Type, v goja.Value) *wasmGlobal {
	g := &wasmGlobal{engine: w}
	var bits uint64
	switch {
	case t.Value == wasm.FuncRef && goja.IsUndefined(v):
	case goja.IsUndefined(v) && t.Value != wasm.ExternRef:
	default:
		bits = w.toWasm(v, t.Value)
	}
	var b wasm.Builder
	function := -1
	sources := map[string]wazeroapi.Module{}
	if t.Value == wasm.FuncRef && bits != 0 {
		f, _ := w.exported(v)
		extern := w.importable(f)
		sources["f"] = extern.module
		function = b.Import("f", extern.name, extern.kind)
	}
	b.Export("x", wasm.Global, b.Global(t, bits, function))
	g.extern = wasmExtern{w.build(b.Binary(), nil, sources), "x", t}
	g.global = g.extern.module.ExportedGlobal("x")
	if t.Value == wasm.ExternRef {
		if mutable, ok := g.global.(wazeroapi.MutableGlobal); ok {
			mutable.Set(bits)
		} else if bits != 0 {
			g.shown = v
		}
	}
	return g
}

func (w *wasmEngine) globalObject(g *wasmGlobal) *goja.Object {
	return globalClass().instance(w.realm, g)
}

func (g *wasmGlobal) get() goja.Value {
	if g.shown != nil {
		return g.shown
	}
	return g.engine.fromWasm(g.global.Get(), g.extern.kind.Value)
}

func (g *wasmGlobal) set(v goja.Value) {
	mutable, ok := g.global.(wazeroapi.MutableGlobal)
	if !ok {
		panic(g.engine.realm.vm.NewTypeError("the WebAssembly.Global is immutable"))
	}
	mutable.Set(g.engine.toWasm(v, g.extern.kind.Value))
}
