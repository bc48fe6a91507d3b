package child

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csJob is cs.job, the job that the activation is an attempt of. In other activations its
// members are undefined and its calls reject.
func csJob(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"progress", function("progress", 1, jobProgress)},
		{"checkpoint", function("checkpoint", 1, jobCheckpoint)},
		{"lastCheckpoint", function("lastCheckpoint", 0, jobLastCheckpoint)},
	},
		liveRow{name: "id", of: jobMember(func(j *api.RunningJob) any { return j.ID })},
		liveRow{name: "queue", of: jobMember(func(j *api.RunningJob) any { return j.Queue })},
		liveRow{name: "attempt", of: jobMember(func(j *api.RunningJob) any { return j.Attempt })},
		liveRow{name: "maxAttempts", of: jobMember(func(j *api.RunningJob) any { return j.MaxAttempts })},
	)
}

// jobMember makes a member of the job, undefined if there is none. Reading one at the top
// level of a module is an effect: the job is not known ahead.
func jobMember(of func(*api.RunningJob) any) func(*realm, *activation) goja.Value {
	return func(r *realm, a *activation) goja.Value {
		if len(a.head.Job) == 0 {
			return goja.Undefined()
		}
		var job api.RunningJob
		r.decode(a.head.Job, &job)
		return r.vm.ToValue(of(&job))
	}
}

// jobProgress takes a share of 100, or {current, total, message}: progress(40) is {current:
// 40, total: 100}. The worker sends it with the next renewal of the job's lease.
func jobProgress(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		const name = "cs.job.progress"
		progress := wire.Progress{Order: r.order()}
		if options, ok := call.Argument(0).(*goja.Object); ok {
			progress.Current = r.count(options.Get("current"), name+": current", wire.MaxProgressCount)
			if total := options.Get("total"); total != nil && !goja.IsUndefined(total) {
				progress.Total = r.count(total, name+": total", wire.MaxProgressCount)
			}
			progress.Message = r.option(options, "message", name, false)
		} else {
			progress.Current, progress.Total = r.count(call.Argument(0), name+": a share", 100), 100
		}
		return sendOnly(r, wire.JobProgress, progress, nil)
	})
}

// count takes a number from 0 to most, as it is, also a fraction; the host cuts fractions
// off. what names the argument in the message.
func (r *realm) count(v goja.Value, what string, most float64) float64 {
	n := -1.0
	if v != nil && (goja.IsNumber(v)) {
		n = v.ToFloat()
	}
	if !(n >= 0 && n <= most) {
		r.badArgument(what + " must be a number from 0 to " + r.vm.ToValue(most).String())
	}
	return n
}

// order numbers the updates that the activation sends of its job, from 1: the host serves
// calls concurrently, and must keep the update that was sent last. Progress and checkpoints
// share the numbers.
func (r *realm) order() int64 {
	if r.act == nil {
		return 0
	}
	r.act.order++
	return r.act.order
}

// jobCheckpoint keeps a value for the next attempt, which reads it by lastCheckpoint. A
// missing value is null.
func jobCheckpoint(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		value := r.optionalJSON(call.Argument(0), "cs.job.checkpoint: the value")
		if value == nil {
			value = json.RawMessage("null")
		}
		return sendOnly(r, wire.JobCheckpoint, wire.Checkpoint{Order: r.order()}, value)
	})
}

// jobLastCheckpoint returns the last checkpoint of the earlier attempts, undefined where
// there is none.
func jobLastCheckpoint(r *realm, _ goja.FunctionCall) goja.Value {
	if !r.effect() || len(r.act.head.Checkpoint) == 0 {
		return goja.Undefined()
	}
	return r.parsed(r.act.head.Checkpoint)
}
