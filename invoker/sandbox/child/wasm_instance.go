package child

import (
	"fmt"

	"github.com/dop251/goja"
	"github.com/tetratelabs/wazero"
	wazeroapi "github.com/tetratelabs/wazero/api"

	"github.com/codesous/sous/invoker/sandbox/child/wasm"
)

// wasmInstance is an instance of a module.
type wasmInstance struct {
	engine  *wasmEngine
	exports *goja.Object
}

// wasmImports are the values that a module is linked with, in the order of its imports.
type wasmImports struct {
	engine   *wasmEngine
	names    map[string]map[string]wasm.Type // those that were linked, by module and name
	modules  []string                        // in order
	fields   map[string][]string
	externs  map[string][]wasmExtern
	objects  [4][]*goja.Object // by kind and index, nil for functions of the script
	hosts    wazero.HostModuleBuilder
	hostsAt  []hostAt
	hostName int
}

// hostAt is where a function of the script belongs among the externs.
type hostAt struct {
	module string
	at     int
}

// read is "read the imports of a WebAssembly module" of the JavaScript API.
func (w *wasmEngine) read(m *wasmModule, object goja.Value) *wasmImports {
	r := w.realm
	in := &wasmImports{engine: w, names: map[string]map[string]wasm.Type{}, fields: map[string][]string{}, externs: map[string][]wasmExtern{}}
	from, ok := object.(*goja.Object)
	if !ok && len(m.info.Imports) > 0 {
		panic(r.vm.NewTypeError("the imports must be an object: the module has %d", len(m.info.Imports)))
	}
	for _, i := range m.info.Imports {
		space, ok := from.Get(i.Module).(*goja.Object)
		if !ok {
			panic(r.vm.NewTypeError("the import %q is not an object", i.Module))
		}
		extern, shown := in.value(i, orUndefined(space.Get(i.Name)))
		if !in.add(i, extern) {
			w.throw(w.classes.link, "import %q %q: the module imports it twice with different types", i.Module, i.Name)
		}
		in.objects[i.Type.Kind] = append(in.objects[i.Type.Kind], shown)
	}
	return in
}

// add adds an import to link. The first value of a name holds; it reports false if the name
// is there with another type, since one module cannot export both.
func (in *wasmImports) add(i wasm.Import, extern wasmExtern) bool {
	fields := in.names[i.Module]
	if fields == nil {
		fields = map[string]wasm.Type{}
		in.names[i.Module] = fields
		in.modules = append(in.modules, i.Module)
	}
	if have, ok := fields[i.Name]; ok {
		return have.Kind == i.Type.Kind && wasm.Accepts(i.Type, extern.kind)
	}
	fields[i.Name] = i.Type
	in.fields[i.Module] = append(in.fields[i.Module], i.Name)
	if extern.module == nil {
		in.hostsAt = append(in.hostsAt, hostAt{i.Module, len(in.externs[i.Module])})
	}
	in.externs[i.Module] = append(in.externs[i.Module], extern)
	return true
}

// value returns the entity of an imported value, and its object if an export of the same
// entity has to be the same object.
func (in *wasmImports) value(i wasm.Import, v goja.Value) (wasmExtern, *goja.Object) {
	w := in.engine
	refuse := func(format string, args ...any) {
		w.throw(w.classes.link, "import %q %q: %s", i.Module, i.Name, fmt.Sprintf(format, args...))
	}
	var extern wasmExtern
	shown, _ := v.(*goja.Object)
	switch i.Type.Kind {
	case wasm.Func:
		callee, ok := goja.AssertFunction(v)
		if !ok {
			refuse("a function is required")
		}
		f, ok := w.exported(v)
		if !ok {
			return in.host(callee, i.Type), nil
		}
		extern = w.importable(f)
	case wasm.Memory:
		m, ok := stateOf[*wasmMemory](v)
		if !ok || m.engine != w {
			refuse("a WebAssembly.Memory is required")
		}
		extern = m.extern
		extern.kind.Limits.Min = uint64(m.memory.Size() / wasmPageBytes)
	case wasm.Table:
		t, ok := stateOf[*wasmTable](v)
		if !ok || t.engine != w {
			refuse("a WebAssembly.Table is required")
		}
		extern = t.extern
		extern.kind.Limits.Min = uint64(t.size())
	case wasm.Global:
		g, ok := stateOf[*wasmGlobal](v)
		if !ok {
			g = in.constant(i.Type, v, refuse)
			shown = w.globalObject(g)
		}
		if g.shown != nil {
			refuse("an immutable externref cannot be linked")
		}
		extern = g.extern
	}
	if !wasm.Accepts(i.Type, extern.kind) {
		refuse("the %s has another type than the module imports", i.Type.Kind)
	}
	return extern, shown
}

// constant makes the global of an import that is a plain value.
func (in *wasmImports) constant(t wasm.Type, v goja.Value, refuse func(string, ...any)) *wasmGlobal {
	if t.Mutable {
		refuse("a WebAssembly.Global is required, since it is mutable")
	}
	isBig := isBigInt(v)
	_, isNumber := primitive(v).(float64)
	if !isNumber {
		_, isNumber = primitive(v).(int64)
	}
	switch t.Value {
	case wasm.I64:
		if !isBig {
			refuse("a BigInt is required")
		}
	case wasm.I32, wasm.F32, wasm.F64:
		if !isNumber {
			refuse("a number is required")
		}
	case wasm.V128:
		refuse("a value of type v128 cannot come from JavaScript")
	case wasm.FuncRef:
		if _, ok := in.engine.exported(v); !ok && !goja.IsNull(v) {
			refuse("null or an exported function is required")
		}
	}
	return in.engine.newGlobal(t, v)
}

// host adds a function of the script.
func (in *wasmImports) host(callee goja.Callable, t wasm.Type) wasmExtern {
	if in.hosts == nil {
		in.hosts = in.engine.runtime.NewHostModuleBuilder("host")
	}
	name := fmt.Sprint(in.hostName)
	in.hostName++
	in.hosts.NewFunctionBuilder().WithGoModuleFunction(in.engine.host(callee, t.Func), t.Func.Params, t.Func.Results).Export(name)
	return wasmExtern{name: name, kind: t}
}

// sources returns a module for each name that is imported from. unnamed stands for an empty name.
func (in *wasmImports) sources(unnamed string) map[string]wazeroapi.Module {
	if in.hosts != nil {
		compiled, err := in.hosts.Compile(in.engine.watch())
		var hosts wazeroapi.Module
		if err == nil {
			hosts, err = in.engine.start(compiled, nil, nil)
		}
		if err != nil {
			in.engine.throw(in.engine.classes.link, "%s", err)
		}
		for _, h := range in.hostsAt {
			in.externs[h.module][h.at].module = hosts
		}
	}
	out := make(map[string]wazeroapi.Module, len(in.modules))
	for _, name := range in.modules {
		linked := in.engine.link(in.fields[name], in.externs[name])
		if name == "" {
			name = unnamed
		}
		out[name] = linked
	}
	return out
}

// instantiate is "instantiate the core of a WebAssembly module" and "create an exports
// object" of the JavaScript API.
func (w *wasmEngine) instantiate(m *wasmModule, in *wasmImports) *wasmInstance {
	if stackUsed() > maxWasmStack {
		panic(w.realm.errorOf("RangeError", "Maximum call stack size exceeded"))
	}
	elements := uint64(0)
	for _, t := range m.info.Entities[wasm.Table][m.info.Imported[wasm.Table]:] {
		elements += t.Limits.Min
	}
	w.takeElements(elements)
	memory := &wasmMemory{engine: w}
	for _, t := range m.info.Entities[wasm.Memory][m.info.Imported[wasm.Memory]:] {
		w.roomFor(t.Limits.Min)
	}
	w.checkElements(m, in)
	mod, err := w.start(m.compiled, memory, in.sources(m.info.Unnamed))
	if err != nil {
		w.raise(err)
	}
	w.mu.Lock()
	w.running = append(w.running, mod)
	w.mu.Unlock()
	w.raise(nil) // what stopped the start function
	exports := w.realm.vm.CreateObject(nil)
	for _, e := range m.info.Exports {
		list := &in.objects[e.Type.Kind]
		for len(*list) <= e.Index {
			*list = append(*list, nil)
		}
		if (*list)[e.Index] == nil {
			(*list)[e.Index] = w.export(wasmExtern{mod, e.Name, e.Type}, memory)
		}
		must(exports.DefineDataProperty(e.Name, (*list)[e.Index], goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
	}
	_, err = w.classes.freeze(goja.Undefined(), exports)
	must(err)
	return &wasmInstance{w, exports}
}

// checkElements throws a RuntimeError if an element segment is outside of its table: wazero would
// leave it out. It looks at all segments before the instance is made, so those before it have no
// effect on an imported table.
func (w *wasmEngine) checkElements(m *wasmModule, in *wasmImports) {
	for _, e := range m.info.Elements {
		tables := m.info.Entities[wasm.Table]
		if e.Table >= len(tables) {
			continue
		}
		size := tables[e.Table].Limits.Min
		if e.Table < m.info.Imported[wasm.Table] {
			t, _ := stateOf[*wasmTable](in.objects[wasm.Table][e.Table])
			size = uint64(t.size())
		}
		if uint64(e.Offset)+uint64(e.Count) > size {
			w.throw(w.classes.runtime, "table index is out of bounds: %d elements at %d in a table of %d", e.Count, e.Offset, size)
		}
	}
}

// roomFor throws a RangeError if no memory of so many pages can be made.
func (w *wasmEngine) roomFor(pages uint64) {
	if pages*wasmPageBytes+w.bytes > w.limit {
		panic(w.realm.errorOf("RangeError", fmt.Sprintf("WebAssembly: a memory of %d pages does not fit the memory limit of the function", pages)))
	}
}

// export makes the object of an exported entity. memory is the one that the instance made.
func (w *wasmEngine) export(e wasmExtern, memory *wasmMemory) *goja.Object {
	switch e.kind.Kind {
	case wasm.Func:
		return w.function(e.module.ExportedFunction(e.name), e).object
	case wasm.Memory:
		return w.memoryObject(memory, e)
	case wasm.Table:
		return w.tableObject(&wasmTable{engine: w, extern: e})
	}
	return w.globalObject(&wasmGlobal{engine: w, extern: e, global: e.module.ExportedGlobal(e.name)})
}
