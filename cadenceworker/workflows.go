package cadenceworker

import (
	"context"
	"errors"
	"time"

	"go.uber.org/cadence/.gen/go/shared"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
)

// workflowTimeout bounds a start or a signal of a function, with its retries.
const workflowTimeout = 10 * time.Second

var idReuse = map[string]shared.WorkflowIdReusePolicy{
	hostcall.IDReuseAllow:      shared.WorkflowIdReusePolicyAllowDuplicate,
	hostcall.IDReuseFailedOnly: shared.WorkflowIdReusePolicyAllowDuplicateFailedOnly,
	hostcall.IDReuseReject:     shared.WorkflowIdReusePolicyRejectDuplicate,
}

// StartWorkflow starts a workflow for a function. RequestID makes it safe to repeat: Cadence
// answers a repeat with the run of the first call. Timeouts are rounded down to seconds. Its
// errors have codes for host calls: CodeHostWorkflowExists, CodeHostWorkflowNotFound (the domain),
// CodeHostCadenceRefused, CodeHostCadenceUnavailable, after which the workflow may have started.
func (c *Conn) StartWorkflow(ctx context.Context, w hostcall.WorkflowStart) (hostcall.WorkflowRun, error) {
	ctx, cancel := context.WithTimeout(ctx, workflowTimeout)
	defer cancel()
	identity, policy := callerName, idReuse[w.IDReuse]
	execution, decision := int32(w.ExecutionTimeout/time.Second), int32(w.DecisionTimeout/time.Second)
	request := &shared.StartWorkflowExecutionRequest{
		Domain: &w.Domain, WorkflowId: &w.ID, RequestId: &w.RequestID, Identity: &identity, Input: w.Input,
		WorkflowType: &shared.WorkflowType{Name: &w.Type}, TaskList: &shared.TaskList{Name: &w.Tasklist},
		ExecutionStartToCloseTimeoutSeconds: &execution, TaskStartToCloseTimeoutSeconds: &decision,
		WorkflowIdReusePolicy: &policy, Header: traceHeader(ctx),
	}
	var started *shared.StartWorkflowExecutionResponse
	err := retry(ctx, func() (err error) {
		started, err = c.Service.StartWorkflowExecution(ctx, request)
		return err
	})
	if err != nil {
		return hostcall.WorkflowRun{}, workflowError(err, w.Domain, w.ID)
	}
	return hostcall.WorkflowRun{WorkflowID: w.ID, RunID: started.GetRunId()}, nil
}

// SignalWorkflow signals a workflow for a function. Capabilities are granted by workflow
// type, so it reads the type first and signals the run that had it. Between the two calls the
// run may end, but no other workflow can take its run id. Its errors are those of StartWorkflow;
// a workflow of another type is CodeHostWorkflowNotFound, so that its existence is not revealed.
func (c *Conn) SignalWorkflow(ctx context.Context, w hostcall.WorkflowSignal) error {
	ctx, cancel := context.WithTimeout(ctx, workflowTimeout)
	defer cancel()
	target := &shared.WorkflowExecution{WorkflowId: &w.ID}
	if w.RunID != "" {
		target.RunId = &w.RunID
	}
	var found *shared.DescribeWorkflowExecutionResponse
	err := retry(ctx, func() (err error) {
		found, err = c.Service.DescribeWorkflowExecution(ctx, &shared.DescribeWorkflowExecutionRequest{Domain: &w.Domain, Execution: target})
		return err
	})
	if err != nil {
		return workflowError(err, w.Domain, w.ID)
	}
	info := found.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != w.Type || info.CloseStatus != nil {
		return api.Errorf(api.CodeHostWorkflowNotFound, "no workflow %q of type %q runs in domain %q", w.ID, w.Type, w.Domain)
	}
	identity := callerName
	err = retry(ctx, func() error {
		return c.Service.SignalWorkflowExecution(ctx, &shared.SignalWorkflowExecutionRequest{
			Domain: &w.Domain, WorkflowExecution: info.GetExecution(), SignalName: &w.Signal, Input: w.Input,
			Identity: &identity, RequestId: &w.RequestID,
		})
	})
	return workflowError(err, w.Domain, w.ID)
}

// retry repeats a call that the server did not answer, until ctx ends. The call has an id
// by which the server recognizes a repeat.
func retry(ctx context.Context, call func() error) error {
	for wait := retryPauseMin; ; wait = min(2*wait, retryPauseMax) {
		err := call()
		if err == nil || final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// final reports whether err is a response of the server and not a temporary failure.
func final(err error) bool {
	var started *shared.WorkflowExecutionAlreadyStartedError
	return callRefused(err) || gone(err) || errors.As(err, &started)
}

// workflowError returns the error that the function gets.
func workflowError(err error, domain, workflowID string) error {
	if err == nil {
		return nil
	}
	var started *shared.WorkflowExecutionAlreadyStartedError
	var absent *shared.EntityNotExistsError
	var completed *shared.WorkflowExecutionAlreadyCompletedError
	switch {
	case errors.As(err, &started):
		return api.Errorf(api.CodeHostWorkflowExists, "workflow %q exists already", workflowID)
	case errors.As(err, &absent), errors.As(err, &completed):
		return api.Errorf(api.CodeHostWorkflowNotFound, "no workflow %q runs in domain %q, or the domain does not exist", workflowID, domain)
	case final(err):
		return api.Wrap(api.CodeHostCadenceRefused, err, publicError(err))
	}
	return api.Wrap(api.CodeHostCadenceUnavailable, err, publicError(err))
}
