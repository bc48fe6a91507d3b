package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csQueue puts jobs into the queues of the function's namespace.
func csQueue(r *realm) goja.Value {
	return r.newNamespace([]row{{"enqueue", function("enqueue", 2, queueEnqueue)}})
}

// queueEnqueue adds a job and answers {id, state, duplicate}.
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
