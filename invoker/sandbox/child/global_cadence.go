package child

import (
	"encoding/json"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csCadence makes cs.cadence: heartbeats of activities, and calls of workflows. The host's
// half is hostcall/cadence.go, which checks domains, limits and capabilities.
func csCadence(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"heartbeat", function("heartbeat", 1, cadenceHeartbeat)},
		{"lastHeartbeat", function("lastHeartbeat", 0, cadenceLastHeartbeat)},
		{"start", function("start", 2, cadenceStart)},
		{"signal", function("signal", 2, cadenceSignal)},
	})
}

// cadenceHeartbeat records progress: details is any JSON, or nothing. The promise rejects
// outside of activities.
func cadenceHeartbeat(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		details := r.optionalJSON(call.Argument(0), "cs.cadence.heartbeat: the details")
		return sendOnly(r, wire.CadenceHeartbeat, wire.None{}, details)
	})
}

// cadenceLastHeartbeat returns the details that the attempt before recorded last,
// undefined where there are none. Details that are not JSON, because another worker wrote
// them, are {raw_base64}.
func cadenceLastHeartbeat(r *realm, _ goja.FunctionCall) goja.Value {
	if !r.effect() || len(r.act.head.LastHeartbeat) == 0 {
		return goja.Undefined()
	}
	return r.parsed(r.act.head.LastHeartbeat)
}

// cadenceStart starts a workflow and answers {workflowId, runId}:
//
//	cs.cadence.start("OrderWorkflow", {
//		domain: "orders", tasklist: "main", input: {id: 7}, executionTimeoutSeconds: 600 })
func cadenceStart(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		workflow, options := r.workflowOptions(call, "cs.cadence.start")
		workflow.Tasklist = r.option(options, "tasklist", "cs.cadence.start", true)
		workflow.WorkflowID = r.option(options, "workflowId", "cs.cadence.start", false)
		workflow.IDReuse = r.option(options, "idReuse", "cs.cadence.start", false)
		workflow.ExecutionTimeoutSeconds = r.numberOption(options, "executionTimeoutSeconds", "cs.cadence.start")
		workflow.DecisionTimeoutSeconds = r.numberOption(options, "decisionTimeoutSeconds", "cs.cadence.start")
		input := r.optionalJSON(options.Get("input"), "cs.cadence.start: input")
		return send(r, wire.CadenceStart, workflow, input, func(run wire.WorkflowRun, _ []byte) goja.Value {
			out := r.vm.NewObject()
			must(out.Set("workflowId", run.WorkflowID))
			must(out.Set("runId", run.RunID))
			return out
		})
	})
}

// cadenceSignal signals a running workflow: cs.cadence.signal("OrderWorkflow", {domain,
// workflowId, signal, runId, input}), of which runId and input may be missing.
func cadenceSignal(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		workflow, options := r.workflowOptions(call, "cs.cadence.signal")
		workflow.WorkflowID = r.option(options, "workflowId", "cs.cadence.signal", true)
		workflow.RunID = r.option(options, "runId", "cs.cadence.signal", false)
		workflow.Signal = r.option(options, "signal", "cs.cadence.signal", true)
		input := r.optionalJSON(options.Get("input"), "cs.cadence.signal: input")
		return sendOnly(r, wire.CadenceSignal, workflow, input)
	})
}

// workflowOptions takes (workflowType, options), as start and signal do, and reads the
// domain. name is the function's, for the messages.
func (r *realm) workflowOptions(call goja.FunctionCall, name string) (wire.Workflow, *goja.Object) {
	kind, ok := call.Argument(0).(goja.String)
	if !ok || kind.Length() == 0 {
		r.badArgument(name + ": the workflow type must be a string that is not empty")
	}
	options, ok := call.Argument(1).(*goja.Object)
	if !ok {
		r.badArgument(name + ": the options must be an object")
	}
	return wire.Workflow{Workflow: kind.String(), Domain: r.option(options, "domain", name, true)}, options
}

// option takes a member of options that is a string and not empty; "" stands for a missing
// one, which is an error if it is required. A bad one throws CS_RUNTIME_INVALID_ARGUMENT.
func (r *realm) option(options *goja.Object, member, name string, required bool) string {
	v := options.Get(member)
	if v == nil || goja.IsUndefined(v) {
		if required {
			r.badArgument(name + ": options." + member + " is missing")
		}
		return ""
	}
	s, ok := v.(goja.String)
	if !ok || s.Length() == 0 {
		r.badArgument(name + ": options." + member + " must be a string that is not empty")
	}
	return s.String()
}

// numberOption takes a member of options that is a number above 0; 0 stands for a missing
// one. The host knows its upper bound.
func (r *realm) numberOption(options *goja.Object, member, name string) float64 {
	v := options.Get(member)
	if v == nil || goja.IsUndefined(v) {
		return 0
	}
	n := v.ToFloat()
	if !(n > 0 && n < 1e12) {
		r.badArgument(name + ": options." + member + " must be a number above 0")
	}
	return n
}

// optionalJSON encodes v as JSON, and returns nil for undefined. what names the argument in
// the error. It throws CS_RUNTIME_INVALID_ARGUMENT for values that JSON cannot hold.
func (r *realm) optionalJSON(v goja.Value, what string) json.RawMessage {
	if v == nil || goja.IsUndefined(v) {
		return nil
	}
	text, ok, err := r.encodeJSON(v, wire.MaxCallBlob)
	switch {
	case err == nil && !ok:
		r.badArgument(what + " must be JSON, not a function")
	case notEncodable(err):
		r.badArgument(what + ": not JSON: " + err.Error())
	default:
		must(err)
	}
	return text
}
