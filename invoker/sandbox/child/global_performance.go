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

// timelineRows are the natives of internal/timeline.
func timelineRows() []row {
	return []row{
		{"now", function("now", 0, elapsedTime)},
		{"activation", activationToken()},
		{"clone", function("clone", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			v, _ := r.cloned(call.Argument(0), nil)
			return v
		})},
	}
}

// activationToken makes the function that returns an object that stands for the activation
// that runs.
func activationToken() func(*realm) goja.Value {
	return function("activation", 0, func(r *realm, _ goja.FunctionCall) goja.Value {
		if !r.effect() {
			return goja.Undefined()
		}
		if r.act.token == nil {
			r.act.token = r.vm.NewObject()
		}
		return r.act.token
	})
}
