package cadenceworker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"go.uber.org/cadence"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// response is the response to Cadence for a task.
type response struct {
	status string // one of the task statuses of the metrics
	reason string // of a failure
	result []byte
	err    error // from which the client builds a failure or a cancellation
}

// reservedPrefix is the prefix of the reasons that Cadence's client uses itself. It panics for a
// custom error whose reason begins with it.
const reservedPrefix = "cadenceInternal:"

// maxReason is the maximum length of the reason of a failure, in bytes.
const maxReason = 128

// details are the details of a failure beside its reason, in JSON. ActivationID leads to the
// logs of the function.
type details struct {
	Message      string        `json:"message"`
	Type         api.ErrorType `json:"type,omitempty"`
	Stack        string        `json:"stack,omitempty"`
	ActivationID string        `json:"activation_id,omitempty"`
}

// answer returns the response for the result of an invocation. The first of these that applies
// decides:
//
//	another delivery runs the task           none
//	the function succeeded                   completed, also if the task was stopped meanwhile;
//	                                         failed if the result is too large or malformed
//	the workflow cancelled the activity      cancelled
//	Cadence does not wait any more           none
//	this replica shuts down                  failed, CodeShuttingDown, so that it is retried
//	the deadline passed before it could run  failed, CodeRuntimeTimeout
//	it could not run                         failed, with the code of the error
//	the activation was cancelled             failed, CodeRuntimeCancelled
//	the function failed                      failed, see reasonOf
//
// A failure's reason is a string on which the workflow's retry policy can decide.
func (t *task) answer(out *api.Outcome, err error) response {
	cause := context.Cause(t.ctx)
	switch {
	case errors.Is(err, errPending):
		return response{status: taskRepeated}
	case err == nil && out.Activation.Status == api.StatusSuccess:
		return t.success(&out.Activation)
	case errors.Is(cause, errCancelRequested):
		return response{status: taskCancelled, err: cadence.NewCanceledError()}
	case errors.Is(cause, errGone), errors.Is(cause, errSilent):
		return response{status: taskGone}
	case errors.Is(cause, errShutdown):
		return t.failure(string(api.CodeShuttingDown), details{Message: errShutdown.Error()})
	case errors.Is(cause, context.DeadlineExceeded) && err != nil:
		return t.failure(string(api.CodeRuntimeTimeout), details{Message: "the activity's time ended before the function could run"})
	case err != nil:
		return t.refusal(err)
	}
	return t.answerFailed(&out.Activation)
}

// answerFailed returns the response for an activation that did not succeed.
func (t *task) answerFailed(a *api.Activation) response {
	switch {
	case a.Status == api.StatusCancelled:
		// The workflow did not cancel it: Cadence would reject a cancellation.
		return t.failure(string(api.CodeRuntimeCancelled), details{Message: "the activation was cancelled"})
	case a.Error == nil:
		return t.failure(string(api.CodeRuntimeException), details{Message: "the function failed"})
	}
	return t.failure(reasonOf(a.Error), details{Message: a.Error.Message, Type: a.Error.Type, Stack: a.Error.Stack})
}

// failure returns a failure that names the task's activation.
func (t *task) failure(reason string, d details) response {
	d.ActivationID = t.key.activationID
	return newFailure(reason, d)
}

// newFailure returns a failure. reason must not begin with reservedPrefix.
func newFailure(reason string, d details) response {
	raw, err := api.EncodeJSON(d)
	if err != nil { // strings always encode
		raw = []byte(`{}`)
	}
	return response{status: taskFailed, reason: reason, err: cadence.NewCustomError(reason, raw)}
}

// refusal returns the response for a task whose function could not run.
func (t *task) refusal(err error) response {
	if api.ErrorCode(err) == api.CodeInternal {
		t.logger.Error("function of a task could not run", zap.Error(err))
	}
	message := "the function could not be run; the server's log says why"
	var coded *api.Error
	if errors.As(err, &coded) {
		message = coded.Message
	}
	return newFailure(string(api.ErrorCode(err)), details{Message: message, Type: api.ErrRefused})
}

// reasonOf returns the reason of a failure, which a retry policy can name: the type of
// the failure, or the code of the error that the function threw.
func reasonOf(e *api.ActivationError) string {
	switch e.Type {
	case api.ErrTimeout:
		return string(api.CodeRuntimeTimeout)
	case api.ErrMemoryLimit:
		return string(api.CodeRuntimeMemoryLimit)
	case api.ErrCPULimit:
		return string(api.CodeRuntimeCPULimit)
	case api.ErrResultTooLarge:
		return string(api.CodeRuntimeResultTooLarge)
	}
	return cleanReason(e.Code)
}

// cleanReason returns the code of a function's error as a valid reason.
func cleanReason(code string) string {
	code = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, code))
	for strings.HasPrefix(code, reservedPrefix) {
		code = strings.TrimSpace(strings.TrimPrefix(code, reservedPrefix))
	}
	if len(code) > maxReason {
		code = strings.ToValidUTF8(code[:maxReason], "")
	}
	if code == "" {
		return string(api.CodeRuntimeException)
	}
	return code
}

// success returns the response with the function's result.
func (t *task) success(a *api.Activation) response {
	if a.ResultTruncated {
		return t.failure(string(api.CodeRuntimeResultTooLarge), details{
			Message: fmt.Sprintf("this repeats a result of which only the first %d bytes were kept", api.MaxStoredResultBytes),
		})
	}
	result, err := resultBytes(a.Result)
	switch {
	case err != nil:
		return t.failure(string(api.CodeRuntimeException), details{Message: err.Error(), Type: api.ErrResultInvalid})
	case len(result) > api.MaxActivityResultBytes:
		return t.failure(string(api.CodeRuntimeResultTooLarge), details{
			Message: fmt.Sprintf("the result has %d bytes; an activity's may have %d", len(result), api.MaxActivityResultBytes),
			Type:    api.ErrResultTooLarge,
		})
	}
	return response{status: taskCompleted, result: result}
}

// resultBytes returns the result of the activity: the body of an HTTP response, which is
// an object with a statusCode, else the function's result as JSON.
//
//	{"n":1}                                                         {"n":1}
//	{"statusCode":200,"body":"text"}                                text
//	{"statusCode":200,"body":{"n":1}}                               {"n":1}
//	{"statusCode":200,"body":"AAE=","isBase64Encoded":true}         the bytes 00 01
//	{"statusCode":204}                                              none
func resultBytes(result json.RawMessage) ([]byte, error) {
	if len(result) == 0 || result[0] != '{' {
		return result, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(result, &object); err != nil {
		return nil, fmt.Errorf("the result is not JSON: %w", err)
	}
	if _, isResponse := object["statusCode"]; !isResponse {
		return result, nil
	}
	raw, encoded := object["body"], string(object["isBase64Encoded"]) == "true"
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] != '"':
		return raw, nil // a body that is not a string is returned as JSON
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("the result is not JSON: %w", err)
	}
	if !encoded {
		return []byte(text), nil
	}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the body is not base64 although isBase64Encoded is true")
	}
	return body, nil
}

// respondTimeout bounds one call that responds to a task.
const respondTimeout = 10 * time.Second

// respond sends the response to Cadence, and retries until the task times out. A repeat is safe:
// once a response was recorded, Cadence does not know the token any more, which counts as gone.
func (t *task) respond(r response) {
	s := t.w.b.s
	if r.status == taskRepeated || r.status == taskGone {
		t.count(r.status, r.reason)
		return
	}
	if r.status != taskCompleted {
		t.beats.flush() // for the next attempt
	}
	var result any
	if r.result != nil {
		result = r.result
	}
	// The deadline is Cadence's, whose clock may differ a little.
	until, cancel := context.WithDeadline(s.life, t.info.Deadline.Add(silenceSlack))
	defer cancel()
	for wait := retryPauseMin; ; wait = min(2*wait, retryPauseMax) {
		ctx, done := context.WithTimeout(until, respondTimeout)
		err := t.w.client.CompleteActivity(ctx, t.info.TaskToken, result, r.err)
		done()
		switch {
		case err == nil:
			t.count(r.status, r.reason)
			return
		case gone(err):
			t.count(taskGone, "")
			return
		case callRefused(err):
			t.logger.Error("Cadence rejects a response", zap.String("status", r.status), zap.Error(err))
			t.count(taskUnanswered, "")
			return
		}
		t.logger.Warn("a response did not reach Cadence", zap.Error(err))
		select {
		case <-until.Done():
			t.count(taskUnanswered, "")
			return
		case <-time.After(wait):
		}
	}
}

// count records how the task ended in the metrics and in its span; reason is that of a
// failure.
func (t *task) count(status, reason string) {
	t.traceEnd(status, reason)
	b := t.w.b
	b.s.metrics.tasks.WithLabelValues(status).Inc()
	switch status {
	case taskCompleted:
		b.counts.completed.Add(1)
	case taskCancelled:
		b.counts.cancelled.Add(1)
	case taskFailed, taskGone, taskUnanswered:
		b.counts.failed.Add(1)
	}
}

// callRefused reports whether err is a response of the server that a retry would not change.
func callRefused(err error) bool {
	var bad *shared.BadRequestError
	var denied *shared.AccessDeniedError
	var limit *shared.LimitExceededError
	return errors.As(err, &bad) || errors.As(err, &denied) || errors.As(err, &limit)
}
