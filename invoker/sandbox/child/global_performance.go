package child

import (
	"time"

	"github.com/dop251/goja"
)

// performance counts milliseconds from the activation's start
// (https://w3c.github.io/hr-time/), with microseconds behind the point. Reading it while
// modules are evaluated ahead is an effect.
func performance(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"now", function("now", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			if !r.effect() {
				return r.vm.ToValue(0)
			}
			return r.vm.ToValue(float64(time.Since(r.act.began).Microseconds()) / 1000)
		})},
	}, liveRow{name: "timeOrigin", of: func(r *realm, a *activation) goja.Value {
		return r.vm.ToValue(float64(a.began.UnixMicro()) / 1000)
	}})
}
