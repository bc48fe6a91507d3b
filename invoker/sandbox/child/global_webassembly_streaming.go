package child

import (
	"bytes"
	"strings"

	"github.com/dop251/goja"
)

// wasmType is the media type of a module. It has no parameters.
const wasmType = "application/wasm"

// wasmCompileStreaming is WebAssembly.compileStreaming(source)
// (https://webassembly.github.io/spec/web-api/#streaming-modules).
func wasmCompileStreaming(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		return r.wasmStreamed(call.Argument(0), func(m *wasmModule) goja.Value { return moduleClass().instance(r, m) })
	})
}

// wasmInstantiateStreaming is WebAssembly.instantiateStreaming(source, imports), which
// resolves with the module and the instance.
func wasmInstantiateStreaming(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		object := r.importObject(call.Argument(1))
		return r.wasmStreamed(call.Argument(0), func(m *wasmModule) goja.Value { return r.wasmSource(m, object) })
	})
}

// wasmStreamed resolves with what use makes of the module in source, a Response or a promise
// for one. The body is read to its end first: the checks of a module need all of it.
func (r *realm) wasmStreamed(source goja.Value, use func(m *wasmModule) goja.Value) *deferred {
	result, response := r.newDeferred(), r.newDeferred()
	then := r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
		must(result.settle(r, func() goja.Value {
			return r.wasmResponse(call.Argument(0)).read(r, unlimited, nil, func(data []byte) goja.Value {
				return use(r.wasm.compiled(bytes.Clone(data))) // a chunk of a stream is the script's
			}).value(r)
		}))
		return goja.Undefined()
	})
	failed := r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
		must(result.reject(call.Argument(0)))
		return goja.Undefined()
	})
	must(response.resolve(source))
	_, err := r.wasm.classes.then(response.value(r), then, failed)
	must(err)
	return result
}

// wasmResponse returns the body of a Response with a module, or throws a TypeError.
func (r *realm) wasmResponse(v goja.Value) *body {
	p, ok := stateOf[*response](v)
	if !ok {
		panic(r.vm.NewTypeError("WebAssembly: a Response or a promise for one is required"))
	}
	given, ok := p.headers.get("content-type")
	contentType := strings.Trim(given, " \t")
	switch {
	case !ok:
		panic(r.vm.NewTypeError("WebAssembly: the response has no Content-Type, and %s is required", wasmType))
	case len(contentType) != len(wasmType) || !strings.EqualFold(contentType, wasmType):
		panic(r.vm.NewTypeError("WebAssembly: the response has the Content-Type %q, and %s is required", given, wasmType))
	case p.status < 200 || p.status > 299:
		panic(r.vm.NewTypeError("WebAssembly: the response has the status %d", p.status))
	}
	return p.body
}
