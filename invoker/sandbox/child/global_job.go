package child

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
)

// csJob is the job that the activation is an attempt of, where it is one.
func csJob(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"id", jobMember(func(j *api.RunningJob) any { return j.ID })},
		{"queue", jobMember(func(j *api.RunningJob) any { return j.Queue })},
		{"attempt", jobMember(func(j *api.RunningJob) any { return j.Attempt })},
		{"maxAttempts", jobMember(func(j *api.RunningJob) any { return j.MaxAttempts })},
		{"progress", function("progress", 1, jobProgress)},
		{"checkpoint", function("checkpoint", 1, jobCheckpoint)},
		{"lastCheckpoint", function("lastCheckpoint", 0, jobLastCheckpoint)},
	})
}

// jobMember makes a member of the job, undefined where there is none.
func jobMember(of func(*api.RunningJob) any) func(*realm) goja.Value {
	return func(r *realm) goja.Value {
		if !r.effect() || len(r.act.head.Job) == 0 {
			return goja.Undefined()
		}
		var job api.RunningJob
		r.decode(r.act.head.Job, &job)
		return r.vm.ToValue(of(&job))
	}
}

// progressHead is how far the job has come.
type progressHead struct {
	Order   int64   `json:"order"`
	Current float64 `json:"current"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// jobProgress takes a share of 100, or {current, total, message}.
func jobProgress(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		const name = "cs.job.progress"
		head := progressHead{Order: r.order()}
		if options, ok := call.Argument(0).(*goja.Object); ok {
			head.Current = r.count(options.Get("current"), name+": current", maxCount)
			if total := options.Get("total"); total != nil && !goja.IsUndefined(total) {
				head.Total = r.count(total, name+": total", maxCount)
			}
			head.Message = r.option(options, "message", name, false)
		} else {
			head.Current, head.Total = r.count(call.Argument(0), name+": a share", 100), 100
		}
		d, _ := r.call("job.progress", head, nil, func(_, _ []byte) goja.Value { return goja.Undefined() })
		return d
	})
}

// maxCount is the last whole number that doubles count to.
const maxCount = 1 << 53

// count takes a number from 0 to most.
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

// checkpointHead is the place of a checkpoint among the others.
type checkpointHead struct {
	Order int64 `json:"order"`
}

// order counts what the activation tells: the host serves calls side by side, and the
// last one made is to be the last word.
func (r *realm) order() int64 {
	if r.act == nil {
		return 0
	}
	r.act.order++
	return r.act.order
}

// jobCheckpoint keeps a value for the next attempt.
func jobCheckpoint(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		value := r.optionalJSON(call.Argument(0), "cs.job.checkpoint: the value")
		if value == nil {
			value = json.RawMessage("null")
		}
		d, _ := r.call("job.checkpoint", checkpointHead{r.order()}, value, func(_, _ []byte) goja.Value { return goja.Undefined() })
		return d
	})
}

// jobLastCheckpoint gives what the attempts before kept last, undefined where they
// kept nothing.
func jobLastCheckpoint(r *realm, _ goja.FunctionCall) goja.Value {
	if !r.effect() || len(r.act.head.Checkpoint) == 0 {
		return goja.Undefined()
	}
	return r.parsed(r.act.head.Checkpoint)
}
