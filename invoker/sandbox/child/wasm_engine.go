package child

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/dop251/goja"
	"github.com/tetratelabs/wazero"
	wazeroapi "github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/codesous/sous/invoker/sandbox/child/wasm"
)

// wasmEngine is the WebAssembly store of a realm. It is made when a script first names
// WebAssembly, so other functions pay nothing for it, and is garbage with its realm.
//
// It interprets: a compiler needs executable pages, which the system call filter refuses.
type wasmEngine struct {
	realm   *realm
	runtime wazero.Runtime
	limit   uint64 // bytes of all memories
	bytes   uint64 // that memories hold
	held    uint64 // of those, after the first activation
	// elements are those of all tables, without what modules added to theirs by table.grow. They
	// are never given back, as an instance lives as long as the engine.
	elements     uint64
	heldElements uint64 // of those, after the first activation
	modules      map[[sha256.Size]byte]*wasmModule
	types        map[string]wasm.FuncType // of all modules, by their text

	functions map[functionKey]*wasmFunction
	memories  map[wazeroapi.Memory]*wasmMemory
	scratch   wazeroapi.Module        // turns references into functions
	values    []goja.Value            // of externref, which is an index from 1
	indices   map[*goja.Object]uint64 // of objects among values
	classes   wasmClasses

	thrown error // by an import, while it passes frames of WebAssembly

	ctl     *control // whose stop the engine watches
	mu      sync.Mutex
	running []wazeroapi.Module // to be stopped
}

// wasmClasses are the constructors of the errors, and builtins as they were when the script first
// named WebAssembly.
type wasmClasses struct {
	compile, link, runtime *goja.Object
	asIntN, freeze, then   goja.Callable
}

// wasmModule is a compiled module.
type wasmModule struct {
	info     *wasm.Module
	compiled wazero.CompiledModule
}

// wasmPageBytes is the size of a page of a memory.
const wasmPageBytes = 64 << 10

// maxTableElements bounds a table, as the JavaScript API suggests for all engines.
const maxTableElements = 10_000_000

// maxKeptModules bounds the modules that are kept to be compiled once.
const maxKeptModules = 64

func newWasmEngine(r *realm) *wasmEngine {
	config := wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true).WithDebugInfoEnabled(false).
		WithCoreFeatures(wazeroapi.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst)
	return &wasmEngine{
		realm:     r,
		runtime:   wazero.NewRuntimeWithConfig(context.Background(), config),
		limit:     uint64(max(r.program.assign.MemoryMB, 1)) << 20,
		modules:   map[[sha256.Size]byte]*wasmModule{},
		types:     map[string]wasm.FuncType{},
		functions: map[functionKey]*wasmFunction{},
		memories:  map[wazeroapi.Memory]*wasmMemory{},
		indices:   map[*goja.Object]uint64{},
	}
}

// maxElements is the most elements of a table, and of all tables when they are made: they take
// at most half of the limit.
func (w *wasmEngine) maxElements() uint64 { return min(maxTableElements, w.limit/16) }

// hasElements reports whether there is room for n more elements.
func (w *wasmEngine) hasElements(n uint64) bool {
	return n <= w.maxElements()-min(w.elements, w.maxElements())
}

// takeElements counts n elements of new tables, or throws a RangeError.
func (w *wasmEngine) takeElements(n uint64) {
	if !w.hasElements(n) {
		panic(w.realm.errorOf("RangeError", fmt.Sprintf("WebAssembly: tables of %d more elements are above the limit of %d elements of all tables", n, w.maxElements())))
	}
	w.elements += n
}

// measureHeld notes what the memories and tables hold after the first activation.
func (w *wasmEngine) measureHeld() {
	if w != nil {
		w.held, w.heldElements = w.bytes, w.elements
	}
}

// grown reports whether memories or tables hold more than half of the room that was left after
// the first activation. An instance of a module lives as long as its realm, so a handler that
// makes one in each activation needs a new realm from time to time.
func (w *wasmEngine) grown() bool {
	overHalf := func(now, held, limit uint64) bool { return now-held > (limit-held)/2 }
	return w != nil && (overHalf(w.bytes, w.held, w.limit) || overHalf(w.elements, w.heldElements, w.maxElements()))
}

// compile returns the module of some bytes. The error is for a CompileError.
func (w *wasmEngine) compile(binary []byte) (m *wasmModule, err error) {
	key := sha256.Sum256(binary)
	if m, ok := w.modules[key]; ok {
		return m, nil
	}
	m, err = w.compileNew(binary)
	if err != nil {
		return nil, err
	}
	for _, t := range m.info.Types {
		w.types[fmt.Sprintf("%x:%x", t.Params, t.Results)] = t
	}
	if len(w.modules) >= maxKeptModules {
		clear(w.modules)
	}
	w.modules[key] = m
	return m, nil
}

// compileNew compiles without the cache. A panic of wazero over bytes that its decoder does
// not expect is an error as well.
func (w *wasmEngine) compileNew(binary []byte) (m *wasmModule, err error) {
	defer func() {
		if x := recover(); x != nil {
			m, err = nil, fmt.Errorf("invalid module: %v", x)
		}
	}()
	info, err := wasm.Parse(binary, w.maxElements())
	if err != nil {
		return nil, err
	}
	compiled, err := w.runtime.CompileModule(context.Background(), info.Binary)
	if err != nil {
		return nil, err
	}
	return &wasmModule{info, compiled}, nil
}

// build compiles and instantiates a module of the engine's own. sources are the modules that
// it imports from, by name.
func (w *wasmEngine) build(binary []byte, memory *wasmMemory, sources map[string]wazeroapi.Module) wazeroapi.Module {
	compiled, err := w.runtime.CompileModule(context.Background(), binary)
	var mod wazeroapi.Module
	if err == nil {
		mod, err = w.start(compiled, memory, sources)
	}
	if err != nil {
		panic(w.realm.errorOf("RangeError", "WebAssembly: "+err.Error()))
	}
	return mod
}

// start instantiates a compiled module. memory is where its own memory will be. It returns
// also a panic of wazero as an error.
func (w *wasmEngine) start(compiled wazero.CompiledModule, memory *wasmMemory, sources map[string]wazeroapi.Module) (mod wazeroapi.Module, err error) {
	defer func() {
		if x := recover(); x != nil {
			mod, err = nil, fmt.Errorf("%v", x)
		}
	}()
	ctx := experimental.WithImportResolver(w.watch(), func(name string) wazeroapi.Module { return sources[name] })
	if memory != nil {
		ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return memory }))
	}
	return w.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
}

// link returns a module that exports entities of others under new names.
func (w *wasmEngine) link(names []string, externs []wasmExtern) wazeroapi.Module {
	var b wasm.Builder
	sources := make(map[string]wazeroapi.Module, len(externs))
	for i, e := range externs {
		t := e.kind
		t.Limits = wasm.Limits{} // wazero looks at the entity itself
		source := fmt.Sprint(i)
		sources[source] = e.module
		b.Export(names[i], t.Kind, b.Import(source, e.name, t))
	}
	return w.build(b.Binary(), nil, sources)
}

// watch returns the context that ends when the activation is stopped. Instances are then
// closed wherever they run: their loops look for it.
func (w *wasmEngine) watch() context.Context {
	ctx := w.realm.ctl.context()
	if w.ctl != w.realm.ctl {
		w.ctl = w.realm.ctl
		context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, mod := range w.running {
				// Close would free the memory that is in use.
				if m, ok := mod.(interface{ CloseWithCtxErr(ctx context.Context) }); ok {
					m.CloseWithCtxErr(ctx)
				}
			}
		})
	}
	return ctx
}

// throw throws an error of one of the API's classes.
func (w *wasmEngine) throw(class *goja.Object, format string, args ...any) {
	e, err := w.realm.vm.New(class, w.realm.vm.ToValue(fmt.Sprintf(format, args...)))
	must(err)
	panic(e)
}
