package child

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dop251/goja"
)

// invokeHead is what an invoke says beside the event.
type invokeHead struct {
	Function string `json:"function"`
	Alias    string `json:"alias,omitempty"`
	Version  int64  `json:"version,omitempty"`
}

// csInvoke runs another function and answers its result.
func csInvoke(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		const name = "cs.invoke"
		function, ok := call.Argument(0).(goja.String)
		if !ok || function.Length() == 0 {
			r.badArgument(name + ": the function must be a string that is not empty")
		}
		head := invokeHead{Function: function.String()}
		if options := r.options(call.Argument(2), name, "alias", "version"); options != nil {
			head.Alias = r.option(options, "alias", name, false)
			version := r.numberOption(options, "version", name)
			if head.Version = int64(version); float64(head.Version) != version {
				r.badArgument(name + ": options.version must be a whole number")
			}
		}
		event := r.optionalJSON(call.Argument(1), name+": the event")
		d, _ := r.call("invoke", head, event, func(reply, result []byte) goja.Value {
			var said struct {
				HasValue bool `json:"has_value"`
			}
			r.decode(reply, &said)
			if !said.HasValue {
				return goja.Undefined()
			}
			return r.parsed(result)
		})
		return d
	})
}

// options takes an object, nil where there is none, that has no members but those known;
// all are where none are named.
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

// optionsJSON is such an object as JSON, {} where there is none. The host knows its
// members.
func (r *realm) optionsJSON(v goja.Value, name string) json.RawMessage {
	options := r.options(v, name)
	if options == nil {
		return json.RawMessage("{}")
	}
	return r.optionalJSON(options, name+": the options")
}
