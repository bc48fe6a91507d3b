package cadenceworker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/cadence/activity"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/bindings"
)

// The causes for which a task is stopped before its function has ended. The answer to Cadence
// depends on the cause, see task.answer.
var (
	errCancelRequested = errors.New("the workflow cancelled the activity")
	errGone            = errors.New("Cadence does not wait for the task any more")
	errSilent          = errors.New("no heartbeat in time: Cadence does not wait for the task any more")
	errShutdown        = errors.New("this replica is shutting down")
)

// The pauses between two attempts that the store or another delivery prevents.
const (
	retryPauseMin = 100 * time.Millisecond
	retryPauseMax = 2 * time.Second
)

// task is one attempt of an activity. execute runs it once. stop may be called at any time, by
// any goroutine, and more than once; the first cause counts.
type task struct {
	w     *activityWorker
	key   taskKey
	info  activity.Info
	input []byte
	last  []byte // the last heartbeat details of the previous attempt

	// ctx ends at the task's deadline or by stop; context.Cause has the reason.
	ctx    context.Context
	stop   context.CancelCauseFunc
	expire context.CancelFunc
	beats  *beats
	begun  bool       // it has begun in slots, and ends there after its response
	span   trace.Span // nil for none
	logger *zap.Logger
}

// newTask returns the task that info describes. run must follow, which ends its context.
func newTask(ctx context.Context, info activity.Info, w *activityWorker, input []byte) *task {
	t := &task{w: w, info: info, input: input, key: taskKey{w.b.path.Tenant, api.TaskActivationID(info.TaskToken)}}
	if activity.HasHeartbeatDetails(ctx) {
		// Bytes are decoded unchanged: this cannot fail.
		_ = activity.GetHeartbeatDetails(ctx, &t.last)
	}
	// The client's context would end with its worker; the task outlives that.
	ctx, t.expire = context.WithDeadline(w.b.s.life, info.Deadline)
	t.ctx, t.stop = context.WithCancelCause(ctx)
	t.logger = w.b.logger.With(zap.String("activation_id", t.key.activationID), zap.String("workflow_id", info.WorkflowExecution.ID),
		zap.String("run_id", info.WorkflowExecution.RunID), zap.String("activity_id", info.ActivityID),
		zap.String("activity_type", info.ActivityType.Name))
	t.beats = newBeats(t)
	return t
}

// run runs the function and answers Cadence. A task is left without an answer if another delivery
// answers it, if Cadence does not wait for it any more, or if its activity type is not in the
// binding.
func (t *task) run() {
	defer t.expire()
	defer t.stop(nil)
	if t.span != nil {
		defer t.span.End()
	}
	s := t.w.b.s
	if !s.register(t) {
		t.count(taskRepeated, "") // the first delivery responds
		return
	}
	defer s.unregister(t)
	stored, target, ok := t.w.b.target(t.ctx, t.w, t.info.ActivityType.Name)
	if !ok {
		// A response would end the activity; the next attempt may reach a replica that
		// knows the type.
		t.count(taskUnknown, "")
		t.logger.Warn("activity type is not in the binding: the task will time out")
		t.w.b.setProblem(fmt.Sprintf("received a task for activity %q, which the binding does not have", t.info.ActivityType.Name))
		return
	}
	inv, err := t.invocation(stored, target)
	if err != nil {
		t.respond(t.refusal(err))
		return
	}
	out, err := t.begin(inv)
	if missing(err) {
		t.w.b.setProblem(functionMissing(t.info.ActivityType.Name, target.Function, err))
	}
	t.respond(t.answer(out, err))
	if t.begun {
		t.w.b.slots.end()
	}
}

// begin waits until the task may begin within the limit and runs the function. Heartbeats
// are sent for the task while it waits, and the function's own while it runs.
func (t *task) begin(inv api.Invocation) (*api.Outcome, error) {
	t.beats.start()
	defer t.beats.end()
	if err := t.w.b.slots.begin(t.ctx); err != nil {
		return nil, err
	}
	t.begun = true
	return t.invoke(inv)
}

// event is the event of the function:
//
//	{"type":"cadence.activity",
//	 "cadence":{"domain":"shop","tasklist":"mail","workflowId":"w-1","runId":"…",
//	            "activityId":"5","activityType":"Send","attempt":0},
//	 "input":{"json":{"to":"a"},"raw_base64":"eyJ0byI6ImEifQ=="}}
//
// Cadence counts attempts from 0; the attempt of the activation is one more.
type event struct {
	Type    string            `json:"type"`
	Cadence api.CadenceSource `json:"cadence"`
	Input   eventInput        `json:"input"`
}

// eventInput is a task's input; JSON is set if it is one JSON value.
type eventInput struct {
	JSON      json.RawMessage `json:"json,omitempty"`
	RawBase64 string          `json:"raw_base64"`
}

const eventType = "cadence.activity"

// invocation returns the invocation of the task's function. It runs on behalf of the author of
// the binding, waits for a slot of the version, and ends at the deadline of the attempt. Errors:
// CodeBodyLimit for an input that is too large for an event.
func (t *task) invocation(stored *bindings.Record, target api.JobTarget) (api.Invocation, error) {
	source := api.CadenceSource{
		Domain: t.w.stored.Domain, Tasklist: t.w.stored.Tasklist,
		WorkflowID: t.info.WorkflowExecution.ID, RunID: t.info.WorkflowExecution.RunID,
		ActivityID: t.info.ActivityID, ActivityType: t.info.ActivityType.Name, Attempt: t.info.Attempt,
	}
	e := event{Type: eventType, Cadence: source, Input: eventInput{RawBase64: base64.StdEncoding.EncodeToString(t.input)}}
	if json.Valid(t.input) {
		e.Input.JSON = t.input
	}
	body, err := api.EncodeJSON(e)
	if err != nil {
		return api.Invocation{}, fmt.Errorf("encode the event: %w", err)
	}
	if len(body) > api.MaxEventBytes {
		return api.Invocation{}, api.Errorf(api.CodeBodyLimit, "the activity's input is too large for an event of %d bytes", api.MaxEventBytes)
	}
	rawSource, err := api.EncodeJSON(source)
	if err != nil {
		return api.Invocation{}, fmt.Errorf("encode the trigger: %w", err)
	}
	return api.Invocation{
		Tenant: t.w.b.path.Tenant, Namespace: t.w.b.path.Namespace, Function: target.Function, Ref: target.Ref(),
		Trigger:   api.Trigger{Type: api.TriggerCadence, Source: rawSource},
		Principal: stored.Principal, Access: stored.Access, Event: body,
		ActivationID: t.key.activationID, Attempt: int(t.info.Attempt) + 1,
		Deadline: t.info.Deadline, WaitForSlot: true,
		Started: t.beats.started, Heartbeat: t.beats.add, LastHeartbeat: lastHeartbeat(t.last),
	}, nil
}

// lastHeartbeat returns the heartbeat details of the previous attempt for the function.
// Another worker may have recorded them, so that they need not be JSON.
func lastHeartbeat(details []byte) json.RawMessage {
	details = bytes.TrimSpace(details)
	switch {
	case len(details) == 0:
		return nil
	case json.Valid(details):
		return details
	}
	return json.RawMessage(`{"raw_base64":"` + base64.StdEncoding.EncodeToString(details) + `"}`)
}

// errPending means that another delivery of the task responds.
var errPending = errors.New("another delivery of the task is running")

// invoke runs the function. It retries while the store is unavailable, and waits for the
// result of an earlier try whose record was delayed: nothing runs twice.
//
//	try  the engine returns        meaning                            then
//	1    CodeIdempotencyRunning    another delivery runs it           errPending, no answer
//	1    CodeStoreUnavailable      the record may have been written   try again
//	2    CodeIdempotencyRunning    it was: perhaps by try 1           try again, for its end
//	3    the activation            it has ended                       answer
func (t *task) invoke(inv api.Invocation) (*api.Outcome, error) {
	tried := false // by this delivery: the running activation may be its own
	for wait := retryPauseMin; ; wait = min(2*wait, retryPauseMax) {
		out, err := t.w.b.s.engine.Invoke(t.ctx, inv)
		switch code := api.ErrorCode(err); {
		case err == nil:
			return out, nil
		case code == api.CodeIdempotencyRunning && !tried:
			return nil, errPending
		case code != api.CodeIdempotencyRunning && code != api.CodeStoreUnavailable:
			return nil, err
		}
		tried = true
		select {
		case <-t.ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}
