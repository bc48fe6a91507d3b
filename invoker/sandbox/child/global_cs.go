package child

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// platform is cs, the platform's own object.
func platform(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"log", csLog},
		{"env", csEnv},
		{"kv", csKV},
		{"storage", csDocuments},
		{"http", csHTTP},
		{"queue", csQueue},
		{"invoke", function("invoke", 2, csInvoke)},
		{"job", csJob},
		{"cadence", csCadence},
		{"secrets", csSecrets},
	})
}

func csLog(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"debug", csLogMethod("debug", levelDebug)},
		{"info", csLogMethod("info", levelInfo)},
		{"warn", csLogMethod("warn", levelWarn)},
		{"error", csLogMethod("error", levelError)},
	})
}

// csLogMethod logs one value as JSON, several as an array of them.
func csLogMethod(name string, level uint8) func(*realm) goja.Value {
	return function(name, 1, func(r *realm, call goja.FunctionCall) goja.Value {
		r.logValues(level, call.Arguments)
		return goja.Undefined()
	})
}

func (r *realm) logValues(level uint8, args []goja.Value) {
	if len(args) != 1 {
		items := make([]any, len(args))
		for i, arg := range args {
			items[i] = arg
		}
		args = []goja.Value{r.vm.NewArray(items...)}
	}
	if s, ok := args[0].(goja.String); ok {
		r.log(level, false, []byte(s.String()))
		return
	}
	if isError(args[0]) {
		r.log(level, false, []byte(r.format(args)))
		return
	}
	text, ok, err := r.encodeJSON(args[0], wire.MaxCallBlob)
	if err != nil && uncatchable(err) {
		panic(err)
	}
	if err != nil || !ok {
		r.log(level, false, []byte(r.format(args)))
		return
	}
	r.log(level, true, text)
}

// isError says whether v is an Error object.
func isError(v goja.Value) bool {
	obj, ok := v.(*goja.Object)
	return ok && obj.ClassName() == "Error"
}

// csEnv is the version's environment: frozen, without a prototype, so that only
// what was set is there.
func csEnv(r *realm) goja.Value {
	env := r.vm.CreateObject(nil)
	for _, key := range slices.Sorted(maps.Keys(r.program.assign.Env)) {
		must(env.DefineDataProperty(key, r.vm.ToValue(r.program.assign.Env[key]),
			goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
	}
	freeze, _ := goja.AssertFunction(r.vm.Get("Object").(*goja.Object).Get("freeze"))
	if freeze != nil {
		_, err := freeze(goja.Undefined(), env)
		must(err)
	}
	return env
}

// decode reads the head of a host's reply.
func (r *realm) decode(head []byte, into any) {
	if err := json.Unmarshal(head, into); err != nil {
		panic(r.newError(api.CodeInternal, "the host's answer cannot be read"))
	}
}

func csHTTP(r *realm) goja.Value {
	return r.newNamespace([]row{{"fetch", function("fetch", 1, fetch)}})
}
