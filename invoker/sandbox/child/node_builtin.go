package child

import (
	"strings"

	"github.com/dop251/goja"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/invoker/sandbox/child/node"
)

// builtinNamespace is how esbuild knows Node's modules. They are not part of a script: an
// import gets a stub that asks the realm for the module, which evaluates it once, also for
// require and for globals such as Buffer.
const builtinNamespace = "node"

// requireSuffix marks the stub for require, which has no default export.
const requireSuffix = "?require"

func resolveBuiltin(name string, kind api.ResolveKind) api.OnResolveResult {
	r := api.OnResolveResult{Path: name, Namespace: builtinNamespace, SideEffects: api.SideEffectsFalse}
	if kind == api.ResolveJSRequireCall || kind == api.ResolveJSRequireResolve {
		r.Suffix = requireSuffix
	}
	return r
}

func loadBuiltin(args api.OnLoadArgs) (api.OnLoadResult, error) {
	contents := node.ImportStub(args.Path)
	if args.Suffix == requireSuffix {
		contents = node.RequireStub(args.Path)
	}
	return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, nil
}

// scriptArguments are what the script's function is called with beside its handler's
// variable: the ways to Node's modules, where the script names them.
func (r *realm) scriptArguments() []goja.Value {
	if !r.program.requires {
		return nil
	}
	get := r.newFunction("require", 1, func(call goja.FunctionCall) goja.Value {
		name := call.Argument(0).String()
		if strings.HasPrefix(name, "internal/") {
			return goja.Undefined() // no stub asks for one
		}
		return r.builtin(name)
	})
	require := r.newFunction("require", 1, func(call goja.FunctionCall) goja.Value {
		return r.requireByName(call.Argument(0).String())
	})
	return []goja.Value{goja.Undefined(), get, require}
}

// requireByName is require for a name that is known only at run time.
func (r *realm) requireByName(name string) goja.Value {
	module, ok := node.Resolve(name)
	if !ok {
		e := r.newNamedError("Error", "Cannot find module '"+name+"': it is not in the bundle, and no module of Node.js")
		must(e.Set("code", "MODULE_NOT_FOUND"))
		panic(e)
	}
	return r.builtin(module)
}

// builtin returns the exports of a module of Node. It is evaluated once in a realm.
func (r *realm) builtin(name string) goja.Value {
	if m, ok := r.node[name]; ok {
		return m.Get("exports")
	}
	code, err := r.program.module(name)
	must(err)
	value, err := r.vm.RunProgram(code)
	must(err)
	run, _ := goja.AssertFunction(value)
	module, exports := r.vm.NewObject(), r.vm.NewObject()
	must(define(module, "exports", exports)) // a setter of Object.prototype must not get it
	if r.node == nil {
		r.node = make(map[string]*goja.Object)
	}
	r.node[name] = module
	require := r.vm.ToValue(func(call goja.FunctionCall) goja.Value { return r.builtin(call.Argument(0).String()) })
	if _, err := run(goja.Undefined(), exports, require, module, orUndefined(r.nodeNatives(name))); err != nil {
		delete(r.node, name)
		must(err)
	}
	if name == eventsModule { // the global object is an EventTarget
		must(r.beyond.SetPrototype(r.eventTarget().Get("prototype").(*goja.Object)))
	}
	if names := node.Names(name); len(names) > 0 {
		complete, _ := goja.AssertFunction(r.builtin("internal/unsupported"))
		_, err = complete(goja.Undefined(), r.vm.ToValue(name), module, r.vm.ToValue(names))
		must(err)
	}
	return module.Get("exports")
}

// callBuiltin calls a function of a module.
func (r *realm) callBuiltin(module, name string, args ...goja.Value) goja.Value {
	f, _ := goja.AssertFunction(r.builtin(module).(*goja.Object).Get(name))
	v, err := f(goja.Undefined(), args...)
	must(err)
	return v
}

// installCapture adds Error.captureStackTrace.
func (r *realm) installCapture() error {
	return r.try(func() { r.callBuiltin("internal/callsites", "install") })
}

// module returns a compiled module of Node.
func (p *program) module(name string) (*goja.Program, error) {
	if code, ok := p.modules[name]; ok {
		return code, nil
	}
	code, err := node.Program(name)
	if err != nil {
		return nil, err
	}
	if p.modules == nil {
		p.modules = make(map[string]*goja.Program)
	}
	p.modules[name] = code
	return code, nil
}
