package child

import (
	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csSecrets is the secrets that the manifest names.
func csSecrets(r *realm) goja.Value {
	return r.newNamespace([]row{{"get", function("get", 1, secretsGet)}})
}

// secretsGet returns a secret's current value, a string.
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
