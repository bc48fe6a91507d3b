package child

import (
	"time"

	"github.com/dop251/goja"
)

// elapsed is the time since the start of the activation, in milliseconds with microseconds
// behind the point.
func (a *activation) elapsed() float64 { return float64(time.Since(a.began).Microseconds()) / 1000 }

// elapsedTime is performance.now, and the time of an event. Reading it while modules are
// evaluated ahead is an effect.
func elapsedTime(r *realm, _ goja.FunctionCall) goja.Value {
	if !r.effect() {
		return r.vm.ToValue(0)
	}
	return r.vm.ToValue(r.act.elapsed())
}

// performanceRows are the natives of internal/performance.
func performanceRows() []row {
	return []row{
		{"now", function("now", 0, elapsedTime)},
		{"origin", function("origin", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
			if !r.effect() {
				return r.vm.ToValue(0)
			}
			return r.vm.ToValue(float64(r.act.began.UnixMicro()) / 1000)
		})},
	}
}
