package followup

import (
	"context"
	"strconv"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/outcome"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// SendOutcome ends the activation that r ran, unless its worker did, and sends the outcome
// to the destination that its version names.
func (f *Follower) SendOutcome(ctx context.Context, tenant string, r *jobstore.Record) error {
	id := r.Spec.ActivationID(r.ID)
	if id == "" {
		return nil
	}
	_, a, err := f.EndActivation(ctx, tenant, id, r)
	if err != nil || r.Spec.Activation == nil {
		return err
	}
	switch r.Run.State {
	case api.JobCompleted:
		return f.sendOutcome(ctx, tenant, r, a, r.Spec.Activation.OnSuccess)
	case api.JobDead:
		return f.sendOutcome(ctx, tenant, r, a, r.Spec.Activation.OnFailure)
	}
	return nil // the client that cancelled it needs no outcome
}

// EndActivation ends an activation as its job r ended, unless it has ended, and returns it.
// ended reports whether this call ended it. A worker ends the activation before it acks the
// job, so this call finds work only if the job ended without one, or if the worker died in
// between. A missing record is stored as ended: a queued one would be an answer to a repeated call.
func (f *Follower) EndActivation(ctx context.Context, tenant, id string, r *jobstore.Record) (ended bool, a *activations.Record, err error) {
	end := func() (bool, *activations.Record, error) {
		return f.activations.End(ctx, tenant, id, func(a *activations.Record) { outcome.End(a, r, f.Store.NowMS()) })
	}
	ended, a, err = end()
	if api.ErrorCode(err) == api.CodeActivationNotFound { // the write of its record was interrupted, or the record has expired
		a = activations.Queued(tenant, r.ID, r.Spec)
		outcome.End(a, r, f.Store.NowMS())
		ended, a, err = f.activations.RecordEnded(ctx, a, nil)
		if err == nil && !ended { // another caller has stored one meanwhile
			ended, a, err = end()
		}
	}
	if err != nil || !ended {
		return ended, a, err
	}
	// A worker that still runs it stops, at the latest after its next heartbeat.
	if err := f.Store.PublishChange(ctx, storage.Change{Kind: storage.ChangeCancel, Tenant: tenant, ActivationID: id}); err != nil {
		f.Log.Debug("the notice that an activation has ended was not published; its worker stops after its next heartbeat", zap.String("activation_id", id), zap.Error(err))
	}
	return ended, a, nil
}

// sendOutcome makes the job that sends an outcome to a destination, nil for none. Its id is
// derived from the activation and the epoch, so that a repeat makes no other job, and a retried
// job that ends again sends another outcome. Destinations that are functions count hops: after
// api.MaxDestinationHops the outcome is dropped, so that two functions that name each other do
// not run for ever.
func (f *Follower) sendOutcome(ctx context.Context, tenant string, r *jobstore.Record, a *activations.Record, to *api.Destination) error {
	if to == nil {
		return nil
	}
	payload, err := outcome.JSON(a, r)
	if err != nil {
		return err
	}
	spec := &api.JobSpec{Payload: payload, ParentID: r.ID}
	q := r.Queue(tenant)
	q.Name = to.Queue
	if to.Function != "" {
		from := r.Spec.Activation
		if from.Hops >= api.MaxDestinationHops {
			f.Log.Warn("an outcome was dropped: functions that are destinations of each other reached the limit of hops", zap.String("tenant", tenant),
				zap.String("namespace", a.Namespace), zap.String("function", a.Function), zap.String("activation_id", a.ActivationID))
			return nil
		}
		q.Name = api.FunctionQueuePrefix + to.Function
		spec.Target = &api.JobTarget{Function: to.Function, Alias: to.Alias, Version: to.Version}
		if to.Alias == "" && to.Version == 0 {
			spec.Target.Alias = api.DefaultAlias
		}
		// The version that names the destination was published, so the destination may be
		// called at all, as with the capability of cs.invoke. Its list of roles applies to the
		// caller of the function: the worker checks it (api.Invocation.Permit).
		access := api.AccessGranted
		if from.Access == api.AccessUnrestricted {
			access = api.AccessUnrestricted
		}
		spec.Activation = &api.AsyncActivation{
			Trigger: api.Trigger{Type: api.TriggerQueue}, Principal: from.Principal, Access: access,
			RequestID: from.RequestID, Hops: from.Hops + 1, Traceparent: from.Traceparent, Tracestate: from.Tracestate,
		}
	}
	// An outcome has the payload once more, and the result. It counts while there is room; then no
	// other asynchronous invocation is accepted, and none ends with an outcome.
	_ = f.Admission.Bytes(ctx, tenant, len(payload))
	return f.Enqueue(ctx, q, api.DerivedJobID("outcome", tenant, a.ActivationID, strconv.FormatInt(r.Run.Epoch, 10)), spec)
}
