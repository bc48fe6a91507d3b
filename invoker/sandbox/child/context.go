package child

import (
	"time"

	"github.com/dop251/goja"
)

// newContext makes the handler's second argument, ctx. Its members are made when they are
// read: most handlers read none. They stay those of the activation also when a later one
// reads them in the same instance.
func (r *realm) newContext() goja.Value {
	return r.vm.NewDynamicObject(&space{realm: r, live: r.program.context, act: r.act})
}

// contextTable holds the fields of ctx that a handler reads. Those of the version come from
// the assignment, those of the activation from its Invoke frame. ref, trigger and principal
// are JSON, parsed at their first reading.
func contextTable() []liveRow {
	text := func(of func(*activation) string) func(*realm, *activation) goja.Value {
		return func(r *realm, a *activation) goja.Value { return r.vm.ToValue(of(a)) }
	}
	number := func(of func(*activation) int64) func(*realm, *activation) goja.Value {
		return func(r *realm, a *activation) goja.Value { return r.vm.ToValue(of(a)) }
	}
	document := func(of func(*activation) []byte) func(*realm, *activation) goja.Value {
		return func(r *realm, a *activation) goja.Value {
			raw := of(a)
			if len(raw) == 0 {
				return goja.Undefined()
			}
			return r.parsed(raw)
		}
	}
	return []liveRow{
		{name: "activation_id", of: text(func(a *activation) string { return a.head.ActivationID })},
		{name: "deadline_ms", of: number(func(a *activation) int64 { return a.head.DeadlineMS })},
		{name: "tenant", of: text(func(a *activation) string { return a.server.program.assign.Tenant })},
		{name: "namespace", of: text(func(a *activation) string { return a.server.program.assign.Namespace })},
		{name: "function", of: text(func(a *activation) string { return a.server.program.assign.Function })},
		{name: "version", of: number(func(a *activation) int64 { return a.server.program.assign.Version })},
		{name: "ref", of: document(func(a *activation) []byte { return a.head.Ref })},
		{name: "trigger", of: document(func(a *activation) []byte { return a.head.Trigger })},
		{name: "principal", of: document(func(a *activation) []byte { return a.head.Principal })},
		{name: "attempt", of: number(func(a *activation) int64 { return int64(a.head.Attempt) })},
		{name: "request_id", of: text(func(a *activation) string { return a.head.RequestID })},
		{name: "remainingMs", of: func(r *realm, a *activation) goja.Value {
			return r.newFunction("remainingMs", 0, func(goja.FunctionCall) goja.Value {
				return r.vm.ToValue(max(0, a.head.DeadlineMS-time.Now().UnixMilli()))
			})
		}},
		{name: "waitUntil", of: waitUntil},
		{name: "signal", of: func(r *realm, a *activation) goja.Value { return a.callerSignal(r) }, unlisted: true},
		{name: "instance", of: contextInstance},
	}
}
