package child

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"

	"github.com/dop251/goja"
	wazeroapi "github.com/tetratelabs/wazero/api"
	wazerotable "github.com/tetratelabs/wazero/experimental/table"

	"github.com/codesous/sous/invoker/sandbox/child/wasm"
)

// stackUsed returns how many bytes of the goroutine's stack are in use.
func stackUsed() uintptr

// maxWasmStack is how much of the stack may be in use when WebAssembly is entered. Go ends
// the process at maxStackBytes; the interpreter's own limit of 2,000 frames takes less than
// the rest.
const maxWasmStack = maxStackBytes / 4

// wasmExtern names an entity by a module of wazero that exports it.
type wasmExtern struct {
	module wazeroapi.Module
	name   string
	kind   wasm.Type
}

// functionKey identifies a function. Functions of two instances share a definition.
type functionKey struct {
	definition wazeroapi.FunctionDefinition
	instance   uintptr
}

// wasmFunction is an exported function.
type wasmFunction struct {
	engine *wasmEngine
	call   wazeroapi.Function
	extern wasmExtern // module is nil for a function that was found in a table
	ref    uint64     // 0 until it is needed
	object *goja.Object
	busy   bool // call runs
}

func keyOf(f wazeroapi.Function) functionKey {
	key := functionKey{definition: f.Definition()}
	if key.definition.GoFunction() == nil {
		// wazero does not tell which instance a function is of, and one that is found in a
		// table has no other identity.
		if inner := reflect.ValueOf(f).Elem().FieldByName("f"); inner.IsValid() {
			key.instance = inner.Elem().FieldByName("moduleInstance").Pointer()
		}
	}
	return key
}

// function returns the object of a function, the same each time. name is shown as its name,
// which is its index.
func (w *wasmEngine) function(f wazeroapi.Function, extern wasmExtern) *wasmFunction {
	key := keyOf(f)
	if known, ok := w.functions[key]; ok {
		if known.extern.module == nil {
			known.extern = extern
		}
		return known
	}
	known := &wasmFunction{engine: w, call: f, extern: extern}
	known.object = w.realm.newFunction(fmt.Sprint(f.Definition().Index()), len(extern.kind.Func.Params), known.invoke)
	w.realm.attach(known.object, known)
	w.functions[key] = known
	return known
}

// invoke is "call an Exported Function" of the JavaScript API.
func (f *wasmFunction) invoke(call goja.FunctionCall) goja.Value {
	w, t := f.engine, f.extern.kind.Func
	for _, v := range append(append([]byte(nil), t.Params...), t.Results...) {
		if v == wasm.V128 {
			panic(w.realm.vm.NewTypeError("a function with values of type v128 cannot be called from JavaScript"))
		}
	}
	stack := make([]uint64, max(len(t.Params), len(t.Results)))
	for i, p := range t.Params {
		stack[i] = w.toWasm(call.Argument(i), p)
	}
	callee := f.call
	if f.busy { // a function of wazero has one stack
		extern := w.importable(f)
		callee = extern.module.ExportedFunction(extern.name)
	} else {
		f.busy = true
		defer func() { f.busy = false }()
	}
	w.run(func(ctx context.Context) error { return callee.CallWithStack(ctx, stack) })
	switch len(t.Results) {
	case 0:
		return goja.Undefined()
	case 1:
		return w.fromWasm(stack[0], t.Results[0])
	}
	results := make([]any, len(t.Results))
	for i, r := range t.Results {
		results[i] = w.fromWasm(stack[i], r)
	}
	return w.realm.vm.NewArray(results...)
}

// run runs WebAssembly and throws what it threw: an exception of an import as it was, a trap
// as a RuntimeError.
func (w *wasmEngine) run(f func(ctx context.Context) error) {
	if stackUsed() > maxWasmStack {
		panic(w.realm.errorOf("RangeError", "Maximum call stack size exceeded"))
	}
	w.watch()
	// The engine closes instances itself, see watch; wazero would start a goroutine for each call.
	w.raise(f(context.Background()))
}

// raise throws an error of wazero.
func (w *wasmEngine) raise(err error) {
	thrown := w.thrown
	w.thrown = nil
	w.realm.checkStopped()
	if err == nil {
		return
	}
	if thrown != nil {
		must(thrown)
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	message = strings.TrimPrefix(message, "wasm error: ")
	if i := strings.Index(message, "wasm error: "); i >= 0 {
		message = message[i+len("wasm error: "):]
	}
	// wazero's error values are internal to it.
	if message == "stack overflow" {
		panic(w.realm.errorOf("RangeError", "Maximum call stack size exceeded"))
	}
	w.throw(w.classes.runtime, "%s", message)
}

// errThrown unwinds frames of WebAssembly for an exception that engine.thrown keeps.
var errThrown = errors.New("an import threw")

// host is the function in Go for an import that is a function of the script: "create a host
// function" of the JavaScript API.
func (w *wasmEngine) host(callee goja.Callable, t wasm.FuncType) wazeroapi.GoModuleFunc {
	return func(_ context.Context, _ wazeroapi.Module, stack []uint64) {
		err := w.realm.try(func() {
			if stackUsed() > maxWasmStack {
				panic(w.realm.errorOf("RangeError", "Maximum call stack size exceeded"))
			}
			w.callHost(callee, t, stack)
		})
		if err != nil {
			w.thrown = err
			panic(errThrown)
		}
	}
}

func (w *wasmEngine) callHost(callee goja.Callable, t wasm.FuncType, stack []uint64) {
	args := make([]goja.Value, len(t.Params))
	for i, p := range t.Params {
		args[i] = w.fromWasm(stack[i], p)
	}
	v, err := callee(goja.Undefined(), args...)
	must(err)
	switch len(t.Results) {
	case 0:
	case 1:
		stack[0] = w.toWasm(v, t.Results[0])
	default:
		var results []goja.Value
		w.realm.vm.ForOf(v, func(item goja.Value) bool {
			results = append(results, item)
			return len(results) <= len(t.Results)
		})
		if len(results) != len(t.Results) {
			panic(w.realm.vm.NewTypeError("an imported function returned %d values, want %d", len(results), len(t.Results)))
		}
		for i, item := range results {
			stack[i] = w.toWasm(item, t.Results[i])
		}
	}
}

// toWasm is ToWebAssemblyValue: it converts as the language does, and throws a TypeError.
func (w *wasmEngine) toWasm(v goja.Value, t wasm.ValueType) uint64 {
	switch t {
	case wasm.I32:
		return uint64(toInt32(numberOf(w.realm, v)))
	case wasm.I64:
		n, err := w.classes.asIntN(goja.Undefined(), w.realm.vm.ToValue(64), v)
		must(err)
		b, _ := n.Export().(*big.Int)
		return uint64(b.Int64())
	case wasm.F32:
		return wazeroapi.EncodeF32(float32(numberOf(w.realm, v)))
	case wasm.F64:
		return wazeroapi.EncodeF64(numberOf(w.realm, v))
	case wasm.ExternRef:
		return w.externRef(v)
	case wasm.FuncRef:
		if goja.IsNull(v) {
			return 0
		}
		if f, ok := w.exported(v); ok {
			return w.reference(f)
		}
		panic(w.realm.vm.NewTypeError("a funcref must be null or an exported function of WebAssembly"))
	}
	panic(w.realm.vm.NewTypeError("a value of type v128 cannot come from JavaScript"))
}

// numberOf is ToNumber.
func numberOf(r *realm, v goja.Value) float64 {
	if _, ok := v.(*goja.Object); ok {
		v = v.ToNumber()
	}
	if _, ok := v.Export().(*big.Int); ok {
		panic(r.vm.NewTypeError("Cannot convert a BigInt value to a number"))
	}
	if _, ok := v.(*goja.Symbol); ok {
		panic(r.vm.NewTypeError("Cannot convert a Symbol value to a number"))
	}
	return v.ToFloat()
}

// toInt32 is ToInt32, as the bits of the result.
func toInt32(f float64) uint32 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	f = math.Mod(math.Trunc(f), 1<<32)
	return uint32(int64(f))
}

// fromWasm is ToJSValue.
func (w *wasmEngine) fromWasm(bits uint64, t wasm.ValueType) goja.Value {
	switch t {
	case wasm.I32:
		return w.realm.vm.ToValue(int32(bits))
	case wasm.I64:
		return w.realm.vm.ToValue(big.NewInt(int64(bits)))
	case wasm.F32:
		return w.realm.vm.ToValue(float64(wazeroapi.DecodeF32(bits)))
	case wasm.F64:
		return w.realm.vm.ToValue(wazeroapi.DecodeF64(bits))
	case wasm.ExternRef:
		if bits == 0 || bits > uint64(len(w.values)) {
			return goja.Null()
		}
		return w.values[bits-1]
	case wasm.FuncRef:
		return w.dereference(bits)
	}
	panic(w.realm.vm.NewTypeError("a value of type v128 cannot be passed to JavaScript"))
}

// externRef returns the reference of a value. It keeps the value for as long as the realm.
func (w *wasmEngine) externRef(v goja.Value) uint64 {
	if goja.IsNull(v) {
		return 0
	}
	object, isObject := v.(*goja.Object)
	if i, ok := w.indices[object]; isObject && ok {
		return i
	}
	w.values = append(w.values, v)
	if isObject {
		w.indices[object] = uint64(len(w.values))
	}
	return uint64(len(w.values))
}

// exported returns the exported function that a value is.
func (w *wasmEngine) exported(v goja.Value) (*wasmFunction, bool) {
	f, ok := stateOf[*wasmFunction](v)
	return f, ok && f.object == v && f.engine == w
}

// reference returns the funcref of a function.
func (w *wasmEngine) reference(f *wasmFunction) uint64 {
	if f.ref == 0 {
		source := w.link([]string{"f"}, []wasmExtern{f.extern})
		mod := w.build(wasm.Reference(f.extern.kind.Func), nil, map[string]wazeroapi.Module{"f": source})
		result, err := mod.ExportedFunction("ref").Call(context.Background())
		w.raise(err)
		f.ref = result[0]
	}
	return f.ref
}

// importable returns where to import a function from.
func (w *wasmEngine) importable(f *wasmFunction) wasmExtern {
	if f.extern.module == nil {
		mod := w.build(wasm.Trampoline(f.extern.kind.Func), nil, nil)
		_, err := mod.ExportedFunction("set").Call(context.Background(), f.ref)
		w.raise(err)
		f.extern.module, f.extern.name = mod, "f"
	}
	return f.extern
}

// dereference returns the object of a funcref, null for none.
func (w *wasmEngine) dereference(ref uint64) goja.Value {
	if ref == 0 {
		return goja.Null()
	}
	if w.scratch == nil {
		w.scratch = w.build(wasm.Scratch(), nil, nil)
	}
	_, err := w.scratch.ExportedFunction("set").Call(context.Background(), ref)
	w.raise(err)
	for _, t := range w.types {
		if f := w.lookup(t); f != nil {
			known := w.function(f, wasmExtern{kind: wasm.Type{Kind: wasm.Func, Func: t}})
			known.ref = ref
			return known.object
		}
	}
	panic(w.realm.vm.NewTypeError("the function has no signature that is known"))
}

// lookup returns the function in the scratch table if it has that signature, else nil.
func (w *wasmEngine) lookup(t wasm.FuncType) (f wazeroapi.Function) {
	defer func() {
		if recover() != nil { // how wazero reports another signature
			f = nil
		}
	}()
	return wazerotable.LookupFunction(w.scratch, 0, 0, t.Params, t.Results)
}
