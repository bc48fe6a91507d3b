package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// followOutcome ends the activation that r ran, if it died without a worker that
// could, and sends the outcome where the version wants it.
func (b *Broker) followOutcome(ctx context.Context, tenant string, r *record) error {
	id := r.spec.ActivationID(r.id)
	if id == "" {
		return nil
	}
	_, a, err := b.endActivation(ctx, tenant, id, r)
	if err != nil || r.spec.Activation == nil {
		return err
	}
	switch r.run.state {
	case api.JobCompleted:
		return b.sendOutcome(ctx, tenant, r, a, r.spec.Activation.OnSuccess)
	case api.JobDead:
		return b.sendOutcome(ctx, tenant, r, a, r.spec.Activation.OnFailure)
	}
	return nil // whoever cancelled it knows
}

// endActivation ends an activation as its job ended, unless it has, and gives it;
// ended says whether this call did.
func (b *Broker) endActivation(ctx context.Context, tenant, id string, r *record) (ended bool, a *activations.Record, err error) {
	end := func() (bool, *activations.Record, error) {
		return b.activations.End(ctx, tenant, id, func(a *activations.Record) { b.endAs(a, r) })
	}
	ended, a, err = end()
	if api.ErrorCode(err) == api.CodeActivationNotFound { // its record was cut short, or is too old
		if _, _, err := b.activations.Start(ctx, activations.Queued(tenant, r.id, r.spec)); err != nil {
			return false, nil, err
		}
		ended, a, err = end()
	}
	if err != nil || !ended {
		return ended, a, err
	}
	// Who runs it is to stop; one that misses this learns it by its next heartbeat.
	if err := b.store.PublishChange(ctx, storage.Change{Kind: storage.ChangeCancel, Tenant: tenant, ActivationID: id}); err != nil {
		b.log.Debug("a notice of an end was not sent", zap.String("activation_id", id), zap.Error(err))
	}
	return ended, a, nil
}

// endAs gives a the end that r, its job, had.
func (b *Broker) endAs(a *activations.Record, r *record) {
	a.EndMS = max(b.store.NowMS(), a.StartMS)
	a.Claim = uuid.NewString() // of two who end it in one millisecond one has
	// What is known of the last attempt is better than what the job knows of it.
	told := a.Error != nil && a.Attempt == r.run.attempt
	reason := r.more[fieldDeadReason]
	a.Status = api.StatusError
	switch {
	case r.run.state == api.JobCompleted:
		a.Status, a.Error = api.StatusSuccess, nil
	case r.run.state == api.JobCancelled || reason == api.DeadRejected:
		a.Status, a.Error = api.StatusCancelled, nil
	case reason == api.DeadExpired:
		message := "it was not done within max_event_age_ms"
		if a.Error != nil {
			message += "; its last attempt: " + a.Error.Message
		}
		a.Error = &api.ActivationError{Type: api.ErrExpired, Message: message, Code: string(api.CodeEventExpired)}
	case reason == api.DeadDependency:
		a.Error = &api.ActivationError{Type: api.ErrRefused, Message: "a job that it depends on did not complete"}
	case told:
		if a.Error.Type == api.ErrTimeout {
			a.Status = api.StatusTimeout
		}
	default:
		a.Error = &api.ActivationError{Type: api.ErrLost, Message: "the processes that ran this activation ended before it did"}
	}
}

// The conditions of an outcome, as AWS Lambda's records name them.
const (
	conditionSuccess   = "Success"
	conditionExhausted = "RetriesExhausted"
	conditionExpired   = "EventAgeExceeded"
)

// outcome is what a destination gets: the record that AWS Lambda sends.
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
	Version                int64  `json:"version,omitempty"` // that ran last
	Condition              string `json:"condition"`
	ApproximateInvokeCount int    `json:"approximateInvokeCount"`
}

type outcomeResponse struct {
	StatusCode    int    `json:"statusCode"`
	FunctionError string `json:"functionError,omitempty"`
}

func outcomeOf(a *activations.Record, r *record) outcome {
	o := outcome{
		Version:   "1.0",
		Timestamp: time.UnixMilli(r.run.at).UTC().Format("2006-01-02T15:04:05.000Z"),
		RequestContext: outcomeContext{
			RequestID: a.ActivationID, Function: a.Namespace + "/" + a.Function, Ref: r.spec.Target.Ref().String(), Version: a.Ref.Version,
			Condition: conditionSuccess, ApproximateInvokeCount: r.run.attempt,
		},
		RequestPayload:  json.RawMessage(cmp.Or(string(r.spec.Payload), "null")),
		ResponseContext: outcomeResponse{StatusCode: http.StatusOK},
		ResponsePayload: a.Result,
	}
	if r.run.state != api.JobCompleted {
		o.RequestContext.Condition = conditionExhausted
		if r.more[fieldDeadReason] == api.DeadExpired {
			o.RequestContext.Condition = conditionExpired
		}
	}
	return o
}

// sendOutcome makes the job that tells to of an outcome. Its id is derived from
// the activation: a repeat makes no other.
func (b *Broker) sendOutcome(ctx context.Context, tenant string, r *record, a *activations.Record, to *api.Destination) error {
	if to == nil {
		return nil
	}
	payload, err := outcomeJSON(a, r)
	if err != nil {
		return err
	}
	spec := &api.JobSpec{Payload: payload, ParentID: r.id}
	q := r.key(tenant)
	q.queue = to.Queue
	if to.Function != "" {
		from := r.spec.Activation
		if from.Hops >= api.MaxDestinationHops {
			b.log.Warn("functions are each other's destination: the circle ends here", zap.String("tenant", tenant),
				zap.String("namespace", a.Namespace), zap.String("function", a.Function), zap.String("activation_id", a.ActivationID))
			return nil
		}
		q.queue = api.FunctionQueuePrefix + to.Function
		spec.Target = &api.JobTarget{Function: to.Function, Alias: to.Alias, Version: to.Version}
		if to.Alias == "" && to.Version == 0 {
			spec.Target.Alias = api.DefaultAlias
		}
		// The version that named it decided that it may be told.
		spec.Activation = &api.AsyncActivation{
			Trigger: api.Trigger{Type: api.TriggerQueue}, Principal: from.Principal, Access: api.AccessUnrestricted,
			RequestID: from.RequestID, Hops: from.Hops + 1, Traceparent: from.Traceparent, Tracestate: from.Tracestate,
		}
	}
	return b.enqueueInternal(ctx, q, api.DerivedJobID("outcome", tenant, a.ActivationID, strconv.FormatInt(r.run.epoch, 10)), spec)
}

func outcomeJSON(a *activations.Record, r *record) (json.RawMessage, error) {
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
