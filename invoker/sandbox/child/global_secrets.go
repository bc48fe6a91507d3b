package child

import (
	"github.com/dop251/goja"
)

// csSecrets is the secrets that the manifest names.
func csSecrets(r *realm) goja.Value {
	return r.newNamespace([]row{{"get", function("get", 1, secretsGet)}})
}

// secretsGet answers a secret's value of now, a string.
func secretsGet(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		name, ok := call.Argument(0).(goja.String)
		if !ok || name.Length() == 0 {
			r.badArgument("cs.secrets.get: the name must be a string that is not empty")
		}
		head := struct {
			Name string `json:"name"`
		}{name.String()}
		d, _ := r.call("secrets.get", head, nil, func(_, value []byte) goja.Value { return r.vm.ToValue(string(value)) })
		return d
	})
}
