package child

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csInvoke runs another function and answers its result:
//
//	cs.invoke("resize", {url})                    in the function's own namespace
//	cs.invoke("media/resize", {url}, {version: 3})
//
// If the other function fails, the promise rejects with its code, activationId, status and
// cause.
func csInvoke(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		const name = "cs.invoke"
		function, ok := call.Argument(0).(goja.String)
		if !ok || function.Length() == 0 {
			r.badArgument(name + ": the function must be a string that is not empty")
		}
		target := wire.InvokeTarget{Function: function.String()}
		if options := r.options(call.Argument(2), name, "alias", "version"); options != nil {
			target.Alias = r.option(options, "alias", name, false)
			version := r.numberOption(options, "version", name)
			target.Version = int64(version)
			if float64(target.Version) != version {
				r.badArgument(name + ": options.version must be a whole number")
			}
		}
		event := r.optionalJSON(call.Argument(1), name+": the event")
		return send(r, wire.InvokeFunction, target, event, func(reply wire.InvokeReply, result []byte) goja.Value {
			if !reply.HasValue {
				return goja.Undefined()
			}
			return r.parsed(result)
		})
	})
}

// options takes an object, nil if there is none. Of its members only the known ones are
// allowed, so that a misspelt option is not ignored; all are allowed if none are named.
// name is the function's, for the messages.
func (r *realm) options(v goja.Value, name string, known ...string) *goja.Object {
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return nil
	}
	options, ok := v.(*goja.Object)
	if !ok {
		r.badArgument(name + ": the options must be an object")
	}
	if len(known) == 0 {
		return options
	}
	for _, member := range options.Keys() {
		if !slices.Contains(known, member) {
			r.badArgument(name + ": there is no option " + strconv.Quote(member[:min(len(member), 64)]))
		}
	}
	return options
}

// optionsJSON takes an object as JSON, {} if there is none. The host knows its members.
func (r *realm) optionsJSON(v goja.Value, name string) json.RawMessage {
	options := r.options(v, name)
	if options == nil {
		return json.RawMessage("{}")
	}
	return r.optionalJSON(options, name+": the options")
}
