package child

import (
	"time"

	"github.com/dop251/goja"
)

// performance counts from the activation's start (https://w3c.github.io/hr-time/).
func performance(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"now", function("now", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			if !r.effect() {
				return r.vm.ToValue(0)
			}
			return r.vm.ToValue(float64(time.Since(r.act.began).Microseconds()) / 1000)
		})},
		{"timeOrigin", func(r *realm) goja.Value {
			if !r.effect() {
				return r.vm.ToValue(0)
			}
			return r.vm.ToValue(float64(r.act.began.UnixMicro()) / 1000)
		}},
	})
}
