package hostcall

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Workflows starts and signals the workflows of a Cadence server. Package cadenceworker
// implements it. Its methods may be called concurrently.
type Workflows interface {
	// StartWorkflow starts a workflow and returns its run. Errors:
	// CodeHostWorkflowExists, CodeHostCadence….
	StartWorkflow(ctx context.Context, w WorkflowStart) (WorkflowRun, error)
	// SignalWorkflow signals a running workflow of the type. Errors:
	// CodeHostWorkflowNotFound, CodeHostCadence….
	SignalWorkflow(ctx context.Context, w WorkflowSignal) error
}

// WorkflowStart is a workflow to be started. Calls with the same RequestID are one start.
//
// Input, the timeouts and IDReuse are checked and completed before they get here. An ID
// that the script leaves out is random.
type WorkflowStart struct {
	Domain, Tasklist, Type, ID, RequestID string
	Input                                 []byte // JSON, empty for none
	ExecutionTimeout, DecisionTimeout     time.Duration
	IDReuse                               string // one of the IDReuse constants
}

// WorkflowRun names a run of a workflow.
type WorkflowRun struct {
	WorkflowID, RunID string
}

// WorkflowSignal is a signal for a workflow, with a RequestID as a start has one. An
// empty RunID is the run under way.
type WorkflowSignal struct {
	Domain, Type, ID, RunID, Signal, RequestID string
	Input                                      []byte // JSON, empty for none
}

// The policies for a workflow id that was used before. None allows two runs at once.
const (
	IDReuseFailedOnly = "allow_failed_only" // where the last run did not complete
	IDReuseAllow      = "allow"             // the default
	IDReuseReject     = "reject"
)

// Timeouts of a workflow that is started from a function.
const (
	defaultExecutionTimeout = 24 * time.Hour
	defaultDecisionTimeout  = 10 * time.Second
	maxDecisionTimeout      = 60 * time.Second
	maxExecutionTimeout     = 10 * 365 * 24 * time.Hour
)

// maxCadenceInput bounds the input of a workflow or a signal, in bytes of JSON.
const maxCadenceInput = 1 << 20

// cadenceCalls serves cs.cadence. workflows is nil where no server is configured.
type cadenceCalls struct {
	workflows Workflows
}

// calls returns the three calls. Heartbeats go through Scope.Heartbeat, to the server that
// the activity came from; the others through Workflows.
func (c *cadenceCalls) calls() map[string]call {
	return map[string]call{
		wire.CadenceHeartbeat.Name: handle(wire.CadenceHeartbeat, free, c.heartbeat),
		wire.CadenceStart.Name:     handle(wire.CadenceStart, c.permit, c.start),
		wire.CadenceSignal.Name:    handle(wire.CadenceSignal, c.permit, c.signal),
	}
}

// heartbeat needs no capability: an invocation that is not an activity is refused with
// that reason.
func (*cadenceCalls) heartbeat(_ context.Context, s *Scope, _ wire.None, details []byte) (none wire.None, _ []byte, err error) {
	switch {
	case s.Heartbeat == nil:
		return none, nil, invalid("cs.cadence.heartbeat is for activities: this invocation's trigger is not cadence")
	case len(details) > api.MaxHeartbeatBytes:
		return none, nil, invalid("the details of a heartbeat are at most %s of JSON", api.SizeText(api.MaxHeartbeatBytes))
	case len(details) > 0 && !json.Valid(details):
		return none, nil, invalid("the details of a heartbeat are JSON")
	}
	return none, nil, s.Heartbeat(details)
}

// permit compares the domain and the workflow type with the declared ones; "*" admits all.
func (*cadenceCalls) permit(s *Scope, a wire.Workflow) string {
	if allowed := s.Capabilities.Cadence; allowed != nil && allows(allowed.Domains, a.Domain) && allows(allowed.Workflows, a.Workflow) {
		return ""
	}
	return `{"cadence": {"domains": [` + quoted(shortened(a.Domain)) + `], "workflows": [` + quoted(shortened(a.Workflow)) + `]}}`
}

// check refuses a malformed start or signal before the server is asked. Errors:
// CodeHostCadenceUnavailable without a server, CodeHostInvalidArgument.
func (c *cadenceCalls) check(a wire.Workflow, input []byte) error {
	switch {
	case c.workflows == nil:
		return api.Errorf(api.CodeHostCadenceUnavailable, "no Cadence server is configured on this platform (--cadence-addr)")
	case len(input) > maxCadenceInput:
		return invalid("the input is at most %s of JSON", api.SizeText(maxCadenceInput))
	case len(input) > 0 && !json.Valid(input):
		return invalid("the input is JSON")
	}
	for _, name := range []string{a.Domain, a.Workflow, a.WorkflowID, a.RunID, a.Signal, a.Tasklist} {
		if len(name) > api.MaxCadenceNameBytes {
			return invalid(
				"the domain, the workflow type, workflowId, runId, signal and tasklist are at most %s", api.SizeText(api.MaxCadenceNameBytes))
		}
	}
	return nil
}

// start starts a workflow. Its RequestID is new for each call: a script that repeats a call
// with an unknown outcome names a workflow ID and the policy reject to have one start.
func (c *cadenceCalls) start(ctx context.Context, _ *Scope, a wire.Workflow, input []byte) (out wire.WorkflowRun, _ []byte, err error) {
	if err := c.check(a, input); err != nil {
		return out, nil, err
	}
	w := WorkflowStart{
		Domain: a.Domain, Tasklist: a.Tasklist, Type: a.Workflow, ID: a.WorkflowID, Input: input, IDReuse: a.IDReuse,
		RequestID:        newID(),
		ExecutionTimeout: seconds(a.ExecutionTimeoutSeconds, defaultExecutionTimeout),
		DecisionTimeout:  seconds(a.DecisionTimeoutSeconds, defaultDecisionTimeout),
	}
	if w.ID == "" {
		w.ID = newID()
	}
	switch {
	case w.Tasklist == "":
		return out, nil, invalid("tasklist is missing")
	case w.ExecutionTimeout < time.Second || w.ExecutionTimeout > maxExecutionTimeout:
		return out, nil, invalid("executionTimeoutSeconds is from 1 to %d", int(maxExecutionTimeout/time.Second))
	case w.DecisionTimeout < time.Second || w.DecisionTimeout > maxDecisionTimeout:
		return out, nil, invalid("decisionTimeoutSeconds is from 1 to %d", int(maxDecisionTimeout/time.Second))
	}
	switch w.IDReuse {
	case "":
		w.IDReuse = IDReuseAllow
	case IDReuseAllow, IDReuseFailedOnly, IDReuseReject:
	default:
		return out, nil, invalid("idReuse is %s, %s or %s", IDReuseAllow, IDReuseFailedOnly, IDReuseReject)
	}
	run, err := c.workflows.StartWorkflow(ctx, w)
	return wire.WorkflowRun(run), nil, err
}

// seconds returns n as a duration, rounded up to whole seconds, which Cadence counts in; 0
// stands for otherwise. A negative n becomes 0, which the caller's bounds refuse.
func seconds(n float64, otherwise time.Duration) time.Duration {
	if n == 0 {
		return otherwise
	}
	return time.Duration(math.Ceil(max(0, min(n, 1e9)))) * time.Second
}

// signal signals a running workflow. It does not start one.
func (c *cadenceCalls) signal(ctx context.Context, _ *Scope, a wire.Workflow, input []byte) (none wire.None, _ []byte, err error) {
	if err := c.check(a, input); err != nil {
		return none, nil, err
	}
	if a.WorkflowID == "" || a.Signal == "" {
		return none, nil, invalid("workflowId and signal are required")
	}
	return none, nil, c.workflows.SignalWorkflow(ctx, WorkflowSignal{
		Domain: a.Domain, Type: a.Workflow, ID: a.WorkflowID, RunID: a.RunID, Signal: a.Signal, Input: input,
		RequestID: newID(),
	})
}
