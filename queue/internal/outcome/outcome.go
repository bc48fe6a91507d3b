// Package outcome computes how an asynchronous activation ended from how its job ended, and
// the record of it that the activation's destination receives. It reads and writes no store:
// package queue stores the activation and makes the destination's job.
package outcome

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage/activations"
)

// End sets status, end and error of a, an activation that its job r ended. now is a Unix time
// in milliseconds. DurationMS remains that of the last attempt. Of two concurrent callers one
// prevails, by a.Claim.
//
//	the job r is                        status            error
//	completed                           success           none
//	cancelled, or dead as rejected      cancelled         none
//	dead as expired                     error             ErrExpired, with a's last error
//	dead for a failed dependency        error             ErrRefused
//	dead, a has its last attempt's error  error, timeout  that of the attempt
//	dead otherwise                      error             ErrLost: its workers died
func End(a *activations.Record, r *jobstore.Record, now int64) {
	a.EndMS = max(now, a.StartMS)
	a.Claim = uuid.NewString() // distinguishes callers that end it in the same millisecond
	// The worker's error of the last attempt is more precise than the job's.
	reported := a.Error != nil && a.Attempt == r.Run.Attempt
	reason := r.Details[jobstore.FieldDeadReason]
	a.Status = api.StatusError
	switch {
	case r.Run.State == api.JobCompleted:
		a.Status, a.Error = api.StatusSuccess, nil
	case r.Run.State == api.JobCancelled || reason == api.DeadRejected:
		a.Status, a.Error = api.StatusCancelled, nil
	case reason == api.DeadExpired:
		message := "the activation did not complete within max_event_age_ms"
		if a.Error != nil {
			message += "; its last attempt: " + a.Error.Message
		}
		a.Error = &api.ActivationError{Type: api.ErrExpired, Message: message, Code: string(api.CodeEventExpired)}
	case reason == api.DeadDependency:
		a.Error = &api.ActivationError{Type: api.ErrRefused, Message: "a job that it depends on did not complete"}
	case reported:
		if a.Error.Type == api.ErrTimeout {
			a.Status = api.StatusTimeout
		}
	default:
		a.Error = &api.ActivationError{Type: api.ErrLost, Message: "the workers that ran this activation died before it completed"}
	}
}

// The conditions of an outcome, named as in AWS Lambda's invocation records.
const (
	conditionSuccess   = "Success"
	conditionExhausted = "RetriesExhausted"
	conditionExpired   = "EventAgeExceeded"
)

// outcome is the payload that a destination receives. Its format is that of AWS Lambda's
// invocation records:
//
//	{"version":"1.0","timestamp":"2026-01-02T03:04:05.678Z",
//	 "requestContext":{"requestId":"…","function":"shop/mail","ref":"prod","version":7,
//	   "condition":"RetriesExhausted","approximateInvokeCount":3},
//	 "requestPayload":{"to":"a"},
//	 "responseContext":{"statusCode":200,"functionError":"…"},
//	 "responsePayload":{"type":"…","message":"…"}}
//
// responsePayload is the function's result, or its error if functionError is set.
type outcome struct {
	Version         string          `json:"version"`
	Timestamp       string          `json:"timestamp"`
	RequestContext  outcomeContext  `json:"requestContext"`
	RequestPayload  json.RawMessage `json:"requestPayload"`
	ResponseContext outcomeResponse `json:"responseContext"`
	ResponsePayload json.RawMessage `json:"responsePayload"`
}

type outcomeContext struct {
	RequestID              string `json:"requestId"` // the activation's id
	Function               string `json:"function"`
	Ref                    string `json:"ref"`
	Version                int64  `json:"version,omitempty"` // the one that ran last
	Condition              string `json:"condition"`
	ApproximateInvokeCount int    `json:"approximateInvokeCount"`
}

type outcomeResponse struct {
	StatusCode    int    `json:"statusCode"`
	FunctionError string `json:"functionError,omitempty"`
}

// outcomeOf returns the outcome of a, an activation of the job r, without the payload of a
// failure.
func outcomeOf(a *activations.Record, r *jobstore.Record) outcome {
	o := outcome{
		Version:   "1.0",
		Timestamp: time.UnixMilli(r.Run.At).UTC().Format("2006-01-02T15:04:05.000Z"),
		RequestContext: outcomeContext{
			RequestID: a.ActivationID, Function: a.Namespace + "/" + a.Function, Ref: r.Spec.Target.Ref().String(), Version: a.Ref.Version,
			Condition: conditionSuccess, ApproximateInvokeCount: r.Run.Attempt,
		},
		RequestPayload:  json.RawMessage(cmp.Or(string(r.Spec.Payload), "null")),
		ResponseContext: outcomeResponse{StatusCode: http.StatusOK},
		ResponsePayload: a.Result,
	}
	if r.Run.State != api.JobCompleted {
		o.RequestContext.Condition = conditionExhausted
		if r.Details[jobstore.FieldDeadReason] == api.DeadExpired {
			o.RequestContext.Condition = conditionExpired
		}
	}
	return o
}

// JSON returns the payload for a destination of a: the outcome of its job r, which has ended.
// It depends on the records only, not on the time of the call.
func JSON(a *activations.Record, r *jobstore.Record) (json.RawMessage, error) {
	o := outcomeOf(a, r)
	if a.Error != nil {
		o.ResponseContext.FunctionError = string(a.Error.Type)
		raw, err := api.EncodeJSON(a.Error)
		if err != nil {
			return nil, fmt.Errorf("queue: encode an outcome: %w", err)
		}
		o.ResponsePayload = raw
	}
	raw, err := api.EncodeJSON(o)
	if err != nil {
		return nil, fmt.Errorf("queue: encode an outcome: %w", err)
	}
	return raw, nil
}
