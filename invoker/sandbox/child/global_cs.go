package child

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// platform makes cs, the platform's own object. Its table lists all namespaces. Those of
// one function stand in this file, larger ones in a file of their own, global_NAME.go.
func platform(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"log", csLog},
		{"env", csEnv},
		{"kv", csKV},
		{"storage", csDocuments},
		{"http", csHTTP},
		{"queue", csQueue},
		{"invoke", function("invoke", 2, csInvoke)},
		{"respond", function("respond", 2, csRespond)},
		{"job", csJob},
		{"step", function("step", 2, csStep)},
		{"sleep", function("sleep", 1, csSleep)},
		{"waitForEvent", function("waitForEvent", 1, csWaitForEvent)},
		{"waitForApproval", function("waitForApproval", 0, csWaitForApproval)},
		{"cadence", csCadence},
		{"secrets", csSecrets},
		{"ai", csAI},
		{"mcp", csMCP},
	})
}

// csLog is cs.log: log lines without console's formats, one level a method. A value is
// logged as JSON, so that readers of logs can query it.
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

// logValues logs a string as text, an Error as console shows it, and any other value as
// JSON, or as console shows it if JSON cannot hold it.
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
	text, ok, err := r.logJSON(args[0], wire.MaxCallBlob)
	if err != nil && uncatchable(err) {
		panic(err)
	}
	if err != nil || !ok {
		r.log(level, false, []byte(r.format(args)))
		return
	}
	r.log(level, true, text)
}

// isError reports whether v is an Error object.
func isError(v goja.Value) bool {
	obj, ok := v.(*goja.Object)
	return ok && obj.ClassName() == "Error"
}

// csEnv is the version's environment: frozen, without a prototype, so that only
// what was set is there.
//
// Its values are not secret: they are stored with the version. It is the same for all
// activations of the version.
func csEnv(r *realm) goja.Value {
	env := r.vm.CreateObject(nil)
	for _, key := range slices.Sorted(maps.Keys(r.program.assign.Env)) {
		must(env.DefineDataProperty(key, r.vm.ToValue(r.program.assign.Env[key]),
			goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
	}
	freeze, ok := goja.AssertFunction(orUndefined(r.vm.Get("Object")).ToObject(r.vm).Get("freeze"))
	if !ok {
		panic(r.vm.NewTypeError("cs.env: Object.freeze is not a function"))
	}
	_, err := freeze(goja.Undefined(), env)
	must(err)
	return env
}

// decode reads the head of a host's reply. It throws if the head is not of the form that
// the call declares, which only a bug of the host can cause.
func (r *realm) decode(head []byte, into any) {
	if err := json.Unmarshal(head, into); err != nil {
		panic(r.newError(api.CodeInternal, "the host's answer cannot be read"))
	}
}

// csHTTP is cs.http, whose fetch is the global one.
func csHTTP(r *realm) goja.Value {
	return r.newNamespace([]row{{"fetch", function("fetch", 1, fetch)}})
}

// csQueue puts jobs into the queues of the function's namespace.
func csQueue(r *realm) goja.Value {
	return r.newNamespace([]row{{"enqueue", function("enqueue", 2, queueEnqueue)}})
}

// queueEnqueue adds a job and answers {id, state, duplicate}:
//
//	cs.queue.enqueue("mail", {to: "a@example.com"}, {delaySeconds: 60, maxAttempts: 5})
//
// The options travel as the script's JSON; the host knows their names and bounds
// (hostcall/queue.go). A missing payload is sent as an empty blob, and the host checks it.
func queueEnqueue(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		const name = "cs.queue.enqueue"
		queue, ok := call.Argument(0).(goja.String)
		if !ok || queue.Length() == 0 {
			r.badArgument(name + ": the queue must be a string that is not empty")
		}
		target := wire.EnqueueTarget{Queue: queue.String(), Options: r.optionsJSON(call.Argument(2), name)}
		payload := r.optionalJSON(call.Argument(1), name+": the payload")
		d, _ := r.call(wire.EnqueueJob.Name, target, payload, func(reply, _ []byte) goja.Value { return r.parsed(reply) })
		return d
	})
}

// csSecrets is cs.secrets: the secrets that the manifest names.
func csSecrets(r *realm) goja.Value {
	return r.newNamespace([]row{{"get", function("get", 1, secretsGet)}})
}

// secretsGet answers a secret's current value, a string. The host caches it, so scripts
// need not.
func secretsGet(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		name, ok := call.Argument(0).(goja.String)
		if !ok || name.Length() == 0 {
			r.badArgument("cs.secrets.get: the name must be a string that is not empty")
		}
		return send(r, wire.SecretGet, wire.SecretName{Name: name.String()}, nil, func(_ wire.None, value []byte) goja.Value {
			return r.vm.ToValue(string(value))
		})
	})
}
