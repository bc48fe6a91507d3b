package child

import (
	"time"

	"github.com/dop251/goja"
)

// newContext makes the handler's second argument, ctx. Its members are made when they are
// read: most handlers read none.
func (r *realm) newContext() goja.Value { return r.newNamespace(r.program.context) }

// contextTable holds the fields of ctx that a handler reads. Those of the version come from
// the assignment, those of the activation from its Invoke frame. ref, trigger and principal
// are JSON, parsed at their first reading.
func contextTable() []row {
	text := func(of func(*activation) string) func(*realm) goja.Value {
		return func(r *realm) goja.Value { return r.vm.ToValue(of(r.act)) }
	}
	number := func(of func(*activation) int64) func(*realm) goja.Value {
		return func(r *realm) goja.Value { return r.vm.ToValue(of(r.act)) }
	}
	document := func(of func(*activation) []byte) func(*realm) goja.Value {
		return func(r *realm) goja.Value {
			raw := of(r.act)
			if len(raw) == 0 {
				return goja.Undefined()
			}
			return r.parsed(raw)
		}
	}
	return []row{
		{"activation_id", text(func(a *activation) string { return a.head.ActivationID })},
		{"deadline_ms", number(func(a *activation) int64 { return a.head.DeadlineMS })},
		{"tenant", text(func(a *activation) string { return a.server.program.assign.Tenant })},
		{"namespace", text(func(a *activation) string { return a.server.program.assign.Namespace })},
		{"function", text(func(a *activation) string { return a.server.program.assign.Function })},
		{"version", number(func(a *activation) int64 { return a.server.program.assign.Version })},
		{"ref", document(func(a *activation) []byte { return a.head.Ref })},
		{"trigger", document(func(a *activation) []byte { return a.head.Trigger })},
		{"principal", document(func(a *activation) []byte { return a.head.Principal })},
		{"attempt", number(func(a *activation) int64 { return int64(a.head.Attempt) })},
		{"request_id", text(func(a *activation) string { return a.head.RequestID })},
		{"remainingMs", function("remainingMs", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			return r.vm.ToValue(max(0, r.act.head.DeadlineMS-time.Now().UnixMilli()))
		})},
	}
}
