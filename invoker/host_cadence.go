package invoker

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/codesous/sous/api"
)

// Workflows starts and signals the workflows of a Cadence server.
type Workflows interface {
	// StartWorkflow starts a workflow and gives its run. Errors:
	// CodeHostWorkflowExists, CodeHostCadence….
	StartWorkflow(ctx context.Context, w WorkflowStart) (WorkflowRun, error)
	// SignalWorkflow signals a running workflow of the type. Errors:
	// CodeHostWorkflowNotFound, CodeHostCadence….
	SignalWorkflow(ctx context.Context, w WorkflowSignal) error
}

// WorkflowStart is a workflow to be started. RequestID tells a repeated call of one
// start from another start.
type WorkflowStart struct {
	Domain, Tasklist, Type, ID, RequestID string
	Input                                 []byte // JSON, empty for none
	ExecutionTimeout, DecisionTimeout     time.Duration
	IDReuse                               string // one of the IDReuse constants
}

// WorkflowRun names a run of a workflow.
type WorkflowRun struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// WorkflowSignal is a signal for a workflow, with a RequestID as a start has one. An
// empty RunID is the run under way.
type WorkflowSignal struct {
	Domain, Type, ID, RunID, Signal, RequestID string
	Input                                      []byte // JSON, empty for none
}

// Whether a workflow's id may be used again. None of them lets two run at once.
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

// maxCadenceInput bounds the input of a workflow or a signal, in bytes.
const maxCadenceInput = 1 << 20

// cadenceHost serves cs.cadence. workflows is nil where no server is configured.
type cadenceHost struct {
	workflows Workflows
}

type cadenceArgs struct {
	Workflow                string  `json:"workflow"`
	Domain                  string  `json:"domain"`
	Tasklist                string  `json:"tasklist"`
	WorkflowID              string  `json:"workflow_id"`
	RunID                   string  `json:"run_id"`
	Signal                  string  `json:"signal"`
	ExecutionTimeoutSeconds float64 `json:"execution_timeout_seconds"`
	DecisionTimeoutSeconds  float64 `json:"decision_timeout_seconds"`
	IDReuse                 string  `json:"id_reuse"`
}

// permitHeartbeat lets everybody: who is no activity is refused with a better
// reason than that of a capability.
func (h *cadenceHost) permitHeartbeat(*scope, struct{}) string { return "" }

func (h *cadenceHost) heartbeat(_ context.Context, s *scope, _ struct{}, details []byte) (any, []byte, error) {
	switch {
	case s.heartbeat == nil:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument,
			"cs.cadence.heartbeat is for activities: this invocation's trigger is not cadence")
	case len(details) > api.MaxHeartbeatBytes:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "the details of a heartbeat are at most %d bytes of JSON", api.MaxHeartbeatBytes)
	case len(details) > 0 && !json.Valid(details):
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "the details of a heartbeat are JSON")
	}
	return struct{}{}, nil, s.heartbeat(details)
}

func (h *cadenceHost) permit(s *scope, a cadenceArgs) string {
	if c := s.capabilities.Cadence; c != nil && allows(c.Domains, a.Domain) && allows(c.Workflows, a.Workflow) {
		return ""
	}
	return `{"cadence": {"domains": [` + quoted(cutName(a.Domain)) + `], "workflows": [` + quoted(cutName(a.Workflow)) + `]}}`
}

// cutName shortens what a text shows of a name that may be anything.
func cutName(s string) string { return s[:min(len(s), 64)] }

func (h *cadenceHost) check(a cadenceArgs, input []byte) error {
	switch {
	case h.workflows == nil:
		return api.Errorf(api.CodeHostCadenceUnavailable, "no Cadence server is configured on this platform (--cadence-addr)")
	case len(input) > maxCadenceInput:
		return api.Errorf(api.CodeHostInvalidArgument, "the input is at most %d bytes of JSON", maxCadenceInput)
	case len(input) > 0 && !json.Valid(input):
		return api.Errorf(api.CodeHostInvalidArgument, "the input is JSON")
	}
	for _, name := range []string{a.Domain, a.Workflow, a.WorkflowID, a.RunID, a.Signal, a.Tasklist} {
		if len(name) > api.MaxCadenceNameBytes {
			return api.Errorf(api.CodeHostInvalidArgument,
				"the domain, the workflow type, workflowId, runId, signal and tasklist are at most %d bytes", api.MaxCadenceNameBytes)
		}
	}
	return nil
}

func (h *cadenceHost) start(ctx context.Context, _ *scope, a cadenceArgs, input []byte) (any, []byte, error) {
	if err := h.check(a, input); err != nil {
		return nil, nil, err
	}
	w := WorkflowStart{
		Domain: a.Domain, Tasklist: a.Tasklist, Type: a.Workflow, ID: a.WorkflowID, Input: input, IDReuse: a.IDReuse,
		RequestID:        newActivationID(),
		ExecutionTimeout: seconds(a.ExecutionTimeoutSeconds, defaultExecutionTimeout),
		DecisionTimeout:  seconds(a.DecisionTimeoutSeconds, defaultDecisionTimeout),
	}
	if w.ID == "" {
		w.ID = newActivationID()
	}
	switch {
	case w.Tasklist == "":
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "tasklist is missing")
	case w.ExecutionTimeout < time.Second || w.ExecutionTimeout > maxExecutionTimeout:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "executionTimeoutSeconds is from 1 to %d", int(maxExecutionTimeout/time.Second))
	case w.DecisionTimeout < time.Second || w.DecisionTimeout > maxDecisionTimeout:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "decisionTimeoutSeconds is from 1 to %d", int(maxDecisionTimeout/time.Second))
	}
	switch w.IDReuse {
	case "":
		w.IDReuse = IDReuseAllow
	case IDReuseAllow, IDReuseFailedOnly, IDReuseReject:
	default:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "idReuse is %s, %s or %s", IDReuseAllow, IDReuseFailedOnly, IDReuseReject)
	}
	run, err := h.workflows.StartWorkflow(ctx, w)
	return run, nil, err
}

// seconds is n as a duration, in whole seconds as Cadence counts them.
func seconds(n float64, otherwise time.Duration) time.Duration {
	if n == 0 {
		return otherwise
	}
	return time.Duration(math.Ceil(max(0, min(n, 1e9)))) * time.Second
}

func (h *cadenceHost) signal(ctx context.Context, _ *scope, a cadenceArgs, input []byte) (any, []byte, error) {
	if err := h.check(a, input); err != nil {
		return nil, nil, err
	}
	if a.WorkflowID == "" || a.Signal == "" {
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "workflowId and signal are required")
	}
	return struct{}{}, nil, h.workflows.SignalWorkflow(ctx, WorkflowSignal{
		Domain: a.Domain, Type: a.Workflow, ID: a.WorkflowID, RunID: a.RunID, Signal: a.Signal, Input: input,
		RequestID: newActivationID(),
	})
}
