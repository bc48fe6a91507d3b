package child

import (
	"bytes"
	"runtime"
	"slices"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/node"
)

// nodeNatives makes the functions in Go that a module of Node is made with, nil for none.
func (r *realm) nodeNatives(module string) goja.Value {
	var rows []row
	switch module {
	case "async_hooks":
		rows = contextRows()
		r.vm.SetAsyncContextTracker(contextTracker{r}) // an instance has it from the start
	case "process":
		rows = processRows()
	case "timers":
		rows = timerRows()
	case eventsModule:
		rows = []row{{"now", function("now", 0, elapsedTime)}}
	case "internal/performance":
		rows = performanceRows()
	case serverModule:
		rows = serverRows()
	case "internal/timeline":
		rows = timelineRows()
	case "internal/signals":
		rows = signalRows()
	case "internal/reporting":
		rows = reportRows()
	case "internal/messaging":
		rows = messageRows()
	case "internal/websocket":
		rows = socketRows()
	case "internal/views":
		rows = viewRows()
	case "stream/web":
		rows = []row{{"classes", streamClasses}}
	case "module":
		rows = []row{{"require", function("require", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.requireByName(call.Argument(0).String())
		})}, {"isBuiltin", function("isBuiltin", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			_, ok := node.Resolve(call.Argument(0).String())
			return r.vm.ToValue(ok)
		})}, {"modules", func(r *realm) goja.Value { return r.vm.ToValue(node.Modules()) }}}
	default:
		if o := node.Natives(r.vm, module); o != nil {
			return o
		}
		return nil
	}
	o := r.vm.NewObject()
	for _, row := range rows {
		must(define(o, row.name, row.make(r)))
	}
	return o
}

// globalsFor returns the globals that a script can reach: those of the table, and those of
// Node, which its own libraries expect. They are made when they are first read.
func globalsFor(script []byte) []row {
	of := func(module, name string) row {
		return row{name, func(r *realm) goja.Value { return r.builtin(module).(*goja.Object).Get(name) }}
	}
	rows := append(globalTable(), scopeRows()...)
	rows = append(rows,
		row{"global", func(r *realm) goja.Value { return r.vm.GlobalObject() }},
		row{"process", func(r *realm) goja.Value { return r.builtin("process") }},
		row{"WebAssembly", webAssembly},
		of("buffer", "Buffer"),
	)
	for _, class := range webClasses() {
		rows = append(rows, of(class.module, class.name))
	}
	if bytes.Contains(script, []byte("unref")) {
		// Timers of Node are objects, those of the web are numbers: a script that names a
		// method of the object gets objects.
		for i := range rows {
			switch name := rows[i].name; name {
			case "setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate":
				rows[i] = of("timers", name)
			}
		}
	}
	return rows
}

// processRows are the natives of node:process.
func processRows() []row {
	return []row{
		{"env", func(r *realm) goja.Value {
			env := r.vm.NewObject()
			for name, value := range r.program.assign.Env {
				must(env.DefineDataProperty(name, r.vm.ToValue(value), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
			}
			return env
		}},
		{"log", function("log", 2, func(r *realm, call goja.FunctionCall) goja.Value {
			r.log(uint8(call.Argument(0).ToInteger()), false, []byte(call.Argument(1).String()))
			return goja.Undefined()
		})},
		{"nanoseconds", function("nanoseconds", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			return r.vm.ToValue(r.now().Sub(r.instance.began).Nanoseconds())
		})},
		{"cpu", function("cpu", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			return r.vm.ToValue(cpuTime().Microseconds())
		})},
		{"memory", function("memory", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			return r.vm.ToValue(gauge(metricObjects))
		})},
		{"arch", func(r *realm) goja.Value {
			return r.vm.ToValue(map[string]string{"amd64": "x64"}[runtime.GOARCH])
		}},
		{"memoryLimit", func(r *realm) goja.Value { return r.vm.ToValue(r.program.assign.MemoryMB << 20) }},
		{"onTick", function("onTick", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			// The name of the script keeps its frame out of stacks.
			made, err := r.vm.RunScript(scriptName, "(function (run) { return function (f) { var v = f(); run(); return v } })")
			must(err)
			wrap, _ := goja.AssertFunction(made)
			ticks, err := wrap(goja.Undefined(), call.Argument(0))
			must(err)
			r.ticks, _ = goja.AssertFunction(ticks)
			return goja.Undefined()
		})},
		{"loaded", function("loaded", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.vm.ToValue(r.node[call.Argument(0).String()] != nil)
		})},
		{"microtask", function("microtask", 1, queueMicrotask)},
	}
}

// timerRows are the natives of node:timers.
func timerRows() []row {
	return []row{
		{"setTimeout", function("setTimeout", 2, setTimeout)},
		{"setInterval", function("setInterval", 2, setInterval)},
		{"setImmediate", function("setImmediate", 1, setImmediate)},
		{"clear", function("clear", 1, clearTimer)},
	}
}

// callLoop calls a function of the script from the loop. What it gave to process.nextTick
// runs after it and before the reactions of promises: node:process calls it, so that the
// reactions wait for both.
func (r *realm) callLoop(f goja.Callable, args ...goja.Value) (goja.Value, error) {
	if r.ticks == nil {
		return f(goja.Undefined(), args...)
	}
	return r.ticks(goja.Undefined(), r.newFunction("", 0, func(goja.FunctionCall) goja.Value {
		v, err := f(goja.Undefined(), args...)
		must(err)
		return v
	}))
}

// store is the value of one AsyncLocalStorage in a context.
type store struct {
	of    *goja.Object
	value goja.Value
}

// contextRows are the natives of node:async_hooks. A context is immutable: what runs with a
// store runs in a context of its own. Its stores follow promises, timers and functions bound
// to it; the activation of code that runs is always its own.
func contextRows() []row {
	return []row{
		{"get", function("get", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			if r.async != nil {
				for _, s := range r.async.stores {
					if call.Argument(0) == s.of {
						return s.value
					}
				}
			}
			return goja.Undefined()
		})},
		// set is (storage, value): the context from now on has the value. It returns the one before.
		{"set", function("set", 2, func(r *realm, call goja.FunctionCall) goja.Value {
			of, _ := call.Argument(0).(*goja.Object)
			before := r.snapshot()
			stores := slices.DeleteFunc(slices.Clone(before.stores), func(s store) bool { return s.of == of })
			if v := call.Argument(1); !goja.IsUndefined(v) {
				stores = append(stores, store{of, v})
			}
			r.async = &asyncContext{before.act, stores}
			return r.vm.ToValue(&snapshot{before})
		})},
		{"snapshot", function("snapshot", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			return r.vm.ToValue(&snapshot{r.snapshot()})
		})},
		// restore is (snapshot): the context from now on has its stores. It returns the one before.
		{"restore", function("restore", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			before := r.snapshot()
			if s, ok := call.Argument(0).Export().(*snapshot); ok {
				r.async = &asyncContext{before.act, s.context.stores}
			}
			return r.vm.ToValue(&snapshot{before})
		})},
	}
}

// snapshot holds a context for a script.
type snapshot struct{ context *asyncContext }

// snapshot returns the context of the code that runs, an empty one at the top level of
// modules.
func (r *realm) snapshot() *asyncContext {
	if r.async == nil {
		return &asyncContext{}
	}
	return r.async
}

// webBody returns the body and the content type of a Blob, a FormData, a stream, which may be
// the body of another message, or an asynchronous iterable. Other values are text.
func (r *realm) webBody(v goja.Value) (b *body, contentType string, ok bool) {
	obj, ok := v.(*goja.Object)
	if !ok {
		return nil, "", false
	}
	made, ok := r.callBuiltin("internal/web", "bodyOf", obj).(*goja.Object)
	if !ok {
		return nil, "", false
	}
	contentType = made.Get("type").String()
	if stream, ok := made.Get("stream").(*goja.Object); ok {
		return &body{flowing: true, stream: stream}, contentType, true
	}
	raw, _ := bufferSource(made.Get("bytes"))
	return &body{data: bytes.Clone(raw)}, contentType, true
}
