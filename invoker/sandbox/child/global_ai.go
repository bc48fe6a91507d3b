package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// csAI is cs.ai, the models of the providers that the manifest names. The host's half is
// hostcall/models.go; it knows the fields of requests.
func csAI(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"chat", function("chat", 1, modelCall(network.Chat, "cs.ai.chat"))},
		{"embed", function("embed", 1, modelCall(network.Embed, "cs.ai.embed"))},
		{"stream", function("stream", 1, modelStream)},
	})
}

// modelCall makes a function that answers what the host replies, an object:
//
//	cs.ai.chat({provider: "main", messages: [{role: "user", content: "How high is the tide?"}]}, {signal})
//
// If the signal aborts, the promise rejects with its reason, and the host ends the request.
func modelCall(declared wire.Call[network.Prompt, wire.None], name string) func(*realm, goja.FunctionCall) goja.Value {
	return func(r *realm, call goja.FunctionCall) goja.Value {
		return r.promised(func() *deferred {
			head, request, signal := r.prompt(call, name)
			d, id := r.call(declared.Name, head, request, func(_, reply []byte) goja.Value { return r.parsed(reply) })
			r.abandonOn(signal, id, func([]byte) {})
			return d
		})
	}
}

// modelStream answers a stream of the deltas of an answer, an asynchronous iterable.
func modelStream(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		head, request, signal := r.prompt(call, "cs.ai.stream")
		d, id := r.call(network.ChatStream.Name, head, request, func(head, _ []byte) goja.Value {
			var h network.Handle
			r.decode(head, &h)
			return r.callBuiltin("internal/aistream", "make", r.incomingBody(h, nil, nil, signal))
		})
		r.abandonOn(signal, id, func(head []byte) {
			var h network.Handle
			r.decode(head, &h)
			r.dispatch(network.BodyCancel.Name, h, nil)
		})
		return d
	})
}

// prompt reads the arguments of a call of a model: the request and {signal}. It throws the reason of a
// signal that has aborted.
func (r *realm) prompt(call goja.FunctionCall, name string) (head network.Prompt, request []byte, signal *abortSignal) {
	request = r.optionalJSON(call.Argument(0), name+": the request")
	object, ok := call.Argument(0).(*goja.Object)
	if !ok || len(request) == 0 || request[0] != '{' {
		r.badArgument(name + ": the request must be an object")
	}
	switch provider := object.Get("provider").(type) {
	case goja.String:
		head.Provider = provider.String()
	case nil:
	default:
		if !goja.IsUndefined(provider) {
			r.badArgument(name + ": the provider must be a string")
		}
	}
	if options := r.options(call.Argument(1), name, "signal"); options != nil {
		if v := options.Get("signal"); v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
			signal = receiver[*abortSignal](r, v, "AbortSignal")
		}
	}
	if signal != nil && signal.aborted {
		panic(signal.reason)
	}
	return head, request, signal
}

// abandonOn withdraws a call when the signal aborts, and rejects its promise with the reason. late
// undoes a call that has succeeded meanwhile. signal may be nil.
func (r *realm) abandonOn(signal *abortSignal, id uint32, late func(head []byte)) {
	if signal == nil {
		return
	}
	signal.then = append(signal.then, func(reason goja.Value) {
		if waiting := r.abandon(id, late); waiting != nil {
			must(waiting.reject(reason))
		}
	})
}
