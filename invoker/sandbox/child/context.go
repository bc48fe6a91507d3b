package child

import (
	"time"

	"github.com/dop251/goja"
)

// newContext makes the handler's second argument. Its members are made when
// they are read: most handlers read none.
func (r *realm) newContext(a *activation) goja.Value {
	assign, head := &r.program.assign, &a.head
	text := func(s string) func(*realm) goja.Value {
		return func(r *realm) goja.Value { return r.vm.ToValue(s) }
	}
	number := func(n int64) func(*realm) goja.Value {
		return func(r *realm) goja.Value { return r.vm.ToValue(n) }
	}
	document := func(raw []byte) func(*realm) goja.Value {
		return func(r *realm) goja.Value {
			if len(raw) == 0 {
				return goja.Undefined()
			}
			return r.parsed(raw)
		}
	}
	return r.newNamespace([]row{
		{"activation_id", text(head.ActivationID)},
		{"deadline_ms", number(head.DeadlineMS)},
		{"tenant", text(assign.Tenant)},
		{"namespace", text(assign.Namespace)},
		{"function", text(assign.Function)},
		{"version", number(assign.Version)},
		{"ref", document(head.Ref)},
		{"trigger", document(head.Trigger)},
		{"principal", document(head.Principal)},
		{"attempt", number(int64(head.Attempt))},
		{"request_id", text(head.RequestID)},
		{"remainingMs", function("remainingMs", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			return r.vm.ToValue(max(0, head.DeadlineMS-time.Now().UnixMilli()))
		})},
	})
}
