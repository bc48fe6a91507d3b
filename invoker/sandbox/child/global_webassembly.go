package child

import (
	"bytes"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/wasm"
)

// webAssembly makes the namespace WebAssembly (https://webassembly.github.io/spec/js-api/).
func webAssembly(r *realm) goja.Value {
	w := newWasmEngine(r)
	r.wasm = w
	o := r.vm.NewObject()
	must(o.DefineDataPropertySymbol(goja.SymToStringTag, r.vm.ToValue("WebAssembly"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	for _, f := range []struct {
		name   string
		length int
		call   func(r *realm, call goja.FunctionCall) goja.Value
	}{
		{"compile", 1, wasmCompile}, {"instantiate", 1, wasmInstantiate}, {"validate", 1, wasmValidate},
		{"compileStreaming", 1, wasmCompileStreaming}, {"instantiateStreaming", 1, wasmInstantiateStreaming},
	} {
		must(o.DefineDataProperty(f.name, function(f.name, f.length, f.call)(r), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
	named := func(name string, b built) {
		r.readOnly(b.ctor, "name", r.vm.ToValue(name))
		r.hidden(o, name, b.ctor)
	}
	named("Module", moduleClass().define(r))
	named("Instance", instanceClass().define(r))
	named("Memory", memoryClass().define(r))
	named("Table", tableClass().define(r))
	named("Global", globalClass().define(r))
	value, err := r.vm.RunScript("webassembly.js", wasmErrors)
	must(err)
	for name, class := range map[string]**goja.Object{"CompileError": &w.classes.compile, "LinkError": &w.classes.link, "RuntimeError": &w.classes.runtime} {
		*class = value.(*goja.Object).Get(name).(*goja.Object)
		r.hidden(o, name, *class)
	}
	for name, builtin := range map[string]*goja.Callable{"asIntN": &w.classes.asIntN, "freeze": &w.classes.freeze, "then": &w.classes.then} {
		f, ok := goja.AssertFunction(value.(*goja.Object).Get(name))
		if !ok {
			panic(r.vm.NewTypeError("WebAssembly: %s is not a function", name))
		}
		*builtin = f
	}
	return o
}

// wasmErrors makes the classes of errors, as the language makes its own.
const wasmErrors = `(() => {
	const out = { __proto__: null, asIntN: BigInt.asIntN, freeze: Object.freeze, then: Promise.prototype.then };
	for (const name of ["CompileError", "LinkError", "RuntimeError"]) {
		const make = { __proto__: null, [name]: function (message, options) {
			return Reflect.construct(Error, message === undefined ? [] : [message, options], new.target || make);
		} }[name];
		Object.setPrototypeOf(make, Error);
		Object.defineProperty(make, "length", { value: 1, configurable: true });
		make.prototype = Object.create(Error.prototype, {
			constructor: { value: make, writable: true, configurable: true },
			name: { value: name, writable: true, configurable: true },
			message: { value: "", writable: true, configurable: true },
		});
		Object.defineProperty(make, "prototype", { writable: false });
		out[name] = make;
	}
	return out;
})()`

// wasmBytes returns a copy of a BufferSource.
func (r *realm) wasmBytes(v goja.Value) []byte {
	data, ok := bufferSource(v)
	if !ok {
		panic(r.vm.NewTypeError("WebAssembly: an ArrayBuffer or a view of one is required"))
	}
	return bytes.Clone(data)
}

// compiled returns the module of some bytes, or throws a CompileError.
func (w *wasmEngine) compiled(binary []byte) *wasmModule {
	m, err := w.compile(binary)
	if err != nil {
		w.throw(w.classes.compile, "%s", err)
	}
	return m
}

func wasmValidate(r *realm, call goja.FunctionCall) goja.Value {
	_, err := r.wasm.compile(r.wasmBytes(call.Argument(0)))
	return r.vm.ToValue(err == nil)
}

// soon returns a promise that is settled with what produce returns or throws.
func (r *realm) soon(produce func() goja.Value) goja.Value {
	return r.promised(func() *deferred {
		d := r.newDeferred()
		must(d.settle(r, produce))
		return d
	})
}

func wasmCompile(r *realm, call goja.FunctionCall) goja.Value {
	return r.soon(func() goja.Value {
		return moduleClass().instance(r, r.wasm.compiled(r.wasmBytes(call.Argument(0))))
	})
}

// wasmInstantiate is instantiate(bytes, imports), which resolves with the module and the
// instance, and instantiate(module, imports), which resolves with the instance. The imports of a
// module are read at once, those of bytes when these are compiled.
func wasmInstantiate(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		object := r.importObject(call.Argument(1))
		if m, ok := stateOf[*wasmModule](call.Argument(0)); ok {
			imports := r.wasm.read(m, object)
			return r.later(func() goja.Value { return instanceClass().instance(r, r.wasm.instantiate(m, imports)) })
		}
		binary := r.wasmBytes(call.Argument(0))
		return r.later(func() goja.Value { return r.wasmSource(r.wasm.compiled(binary), object) })
	})
}

// later returns a promise that is settled in a microtask with what produce returns or throws:
// of the steps that the specification runs in parallel, the script sees the order.
func (r *realm) later(produce func() goja.Value) *deferred {
	turn, result := r.newDeferred(), r.newDeferred()
	must(turn.resolve(goja.Undefined()))
	_, err := r.wasm.classes.then(turn.value(r), r.newFunction("", 0, func(goja.FunctionCall) goja.Value {
		must(result.settle(r, produce))
		return goja.Undefined()
	}))
	must(err)
	return result
}

// wasmSource makes a WebAssemblyInstantiatedSource, an object of a module and its instance.
func (r *realm) wasmSource(m *wasmModule, object goja.Value) goja.Value {
	out := r.vm.NewObject()
	r.member(out, "module", moduleClass().instance(r, m))
	r.member(out, "instance", instanceClass().instance(r, r.wasm.instantiate(m, r.wasm.read(m, object))))
	return out
}

// importObject checks the argument that is an object or undefined.
func (r *realm) importObject(v goja.Value) goja.Value {
	if _, ok := v.(*goja.Object); !ok && !goja.IsUndefined(v) {
		panic(r.vm.NewTypeError("WebAssembly: the imports must be an object"))
	}
	return v
}

// wasmNames makes an object of names and texts.
func (r *realm) wasmNames(pairs ...string) *goja.Object {
	o := r.vm.NewObject()
	for i := 0; i < len(pairs); i += 2 {
		must(o.Set(pairs[i], pairs[i+1]))
	}
	return o
}

func moduleClass() *class[*wasmModule] {
	describe := func(name string, length int, list func(r *realm, m *wasm.Module, call goja.FunctionCall) []any) row {
		return row{name, function(name, length, func(r *realm, call goja.FunctionCall) goja.Value {
			m, ok := stateOf[*wasmModule](call.Argument(0))
			if !ok {
				panic(r.vm.NewTypeError("WebAssembly.Module.%s: a WebAssembly.Module is required", name))
			}
			return r.vm.NewArray(list(r, m.info, call)...)
		})}
	}
	return &class[*wasmModule]{
		name: "WebAssembly.Module", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *wasmModule {
			return r.wasm.compiled(r.wasmBytes(call.Argument(0)))
		},
		statics: []row{
			describe("exports", 1, func(r *realm, m *wasm.Module, _ goja.FunctionCall) (out []any) {
				for _, e := range m.Exports {
					out = append(out, r.wasmNames("name", e.Name, "kind", e.Type.Kind.String()))
				}
				return out
			}),
			describe("imports", 1, func(r *realm, m *wasm.Module, _ goja.FunctionCall) (out []any) {
				for _, i := range m.Imports {
					out = append(out, r.wasmNames("module", i.Module, "name", i.Name, "kind", i.Type.Kind.String()))
				}
				return out
			}),
			describe("customSections", 2, func(r *realm, m *wasm.Module, call goja.FunctionCall) (out []any) {
				if len(call.Arguments) < 2 {
					panic(r.vm.NewTypeError("WebAssembly.Module.customSections: a name is required"))
				}
				name := r.text(call.Argument(1)) // not a USVString: a lone surrogate is in no name
				for _, c := range m.Customs {
					if r.vm.ToValue(c.Name).StrictEquals(name) {
						out = append(out, r.vm.NewArrayBuffer(bytes.Clone(c.Data)))
					}
				}
				return out
			}),
		},
	}
}

func instanceClass() *class[*wasmInstance] {
	return &class[*wasmInstance]{
		name: "WebAssembly.Instance", length: 1,
		construct: func(r *realm, call goja.ConstructorCall) *wasmInstance {
			m, ok := stateOf[*wasmModule](call.Argument(0))
			if !ok {
				panic(r.vm.NewTypeError("WebAssembly.Instance: a WebAssembly.Module is required"))
			}
			return r.wasm.instantiate(m, r.wasm.read(m, r.importObject(call.Argument(1))))
		},
		members: []member[*wasmInstance]{
			{name: "exports", get: func(_ *realm, i *wasmInstance) goja.Value { return i.exports }},
		},
	}
}
