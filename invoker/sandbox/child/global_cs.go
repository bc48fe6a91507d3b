package child

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/dop251/goja"
)

// platform is cs, the platform's own object.
func platform(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"log", csLog},
		{"env", csEnv},
		{"kv", csKV},
		{"storage", csStorage},
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
	text, ok, err := r.encodeJSON(args[0], maxBlob)
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

func csKV(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"get", function("get", 1, kvGet)},
		{"set", function("set", 2, kvSet)},
		{"del", function("del", 1, kvDel)},
	})
}

type kvHead struct {
	Key        string `json:"key"`
	TTLSeconds int64  `json:"ttl_seconds,omitempty"`
}

// kvGet answers the value under a key, undefined where there is none.
func kvGet(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		d, _ := r.call("kv.get", kvHead{Key: r.key(call, "cs.kv.get")}, nil, func(head, blob []byte) goja.Value {
			var reply struct {
				Found bool `json:"found"`
			}
			r.decode(head, &reply)
			if !reply.Found {
				return goja.Undefined()
			}
			return r.parsed(blob)
		})
		return d
	})
}

func kvSet(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		head := kvHead{Key: r.key(call, "cs.kv.set"), TTLSeconds: r.ttl(call.Argument(2))}
		value, ok, err := r.encodeJSON(call.Argument(1), maxBlob)
		switch {
		case err == nil:
		case notEncodable(err):
			r.badArgument("cs.kv.set: the value is not JSON: " + err.Error())
		default:
			must(err)
		}
		if !ok {
			r.badArgument("cs.kv.set: the value must be JSON, not undefined or a function; cs.kv.del deletes")
		}
		d, _ := r.call("kv.set", head, value, func(_, _ []byte) goja.Value { return goja.Undefined() })
		return d
	})
}

// kvDel answers whether there was something to delete.
func kvDel(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		d, _ := r.call("kv.del", kvHead{Key: r.key(call, "cs.kv.del")}, nil, func(head, _ []byte) goja.Value {
			var reply struct {
				Deleted bool `json:"deleted"`
			}
			r.decode(head, &reply)
			return r.vm.ToValue(reply.Deleted)
		})
		return d
	})
}

// key takes the first argument, which must be a string.
func (r *realm) key(call goja.FunctionCall, name string) string {
	s, ok := call.Argument(0).(goja.String)
	if !ok || s.Length() == 0 {
		r.badArgument(name + ": the key must be a string that is not empty")
	}
	return s.String()
}

// ttl takes {ttlSeconds}, a whole number of at least 1; 0 stands for none.
func (r *realm) ttl(options goja.Value) int64 {
	obj := r.options(options, "cs.kv.set", "ttlSeconds")
	if obj == nil {
		return 0
	}
	v := obj.Get("ttlSeconds")
	if v == nil || goja.IsUndefined(v) {
		return 0
	}
	seconds := v.ToFloat()
	if seconds < 1 || seconds != math.Trunc(seconds) || seconds > maxTTLSeconds {
		r.badArgument("cs.kv.set: ttlSeconds must be a whole number of at least 1")
	}
	return int64(seconds)
}

const maxTTLSeconds = 1 << 31

// decode reads the head of a host's reply.
func (r *realm) decode(head []byte, into any) {
	if err := json.Unmarshal(head, into); err != nil {
		panic(r.newError("CS_INTERNAL", "the host's answer cannot be read"))
	}
}

func csHTTP(r *realm) goja.Value {
	return r.newNamespace([]row{{"fetch", function("fetch", 1, fetch)}})
}
