package queue

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

// followOutcome ends the activation that r ran, if it died without a worker that
// could, and sends the outcome where the version wants it.
func (b *Broker) followOutcome(ctx context.Context, tenant string, r *jobstore.Record) error {
	id := r.Spec.ActivationID(r.Id)
	if id == "" {
		return nil
	}
	_, a, err := b.endActivation(ctx, tenant, id, r)
	if err != nil || r.Spec.Activation == nil {
		return err
	}
	switch r.Run.State {
	case api.JobCompleted:
		return b.sendOutcome(ctx, tenant, r, a, r.Spec.Activation.OnSuccess)
	case api.JobDead:
		return b.sendOutcome(ctx, tenant, r, a, r.Spec.Activation.OnFailure)
	}
	return nil // whoever cancelled it knows
}

// endActivation ends an activation as its job ended, unless it has, and gives it;
// ended says whether this call did.
func (b *Broker) endActivation(ctx context.Context, tenant, id string, r *jobstore.Record) (ended bool, a *activations.Record, err error) {
	end := func() (bool, *activations.Record, error) {
		return b.activations.End(ctx, tenant, id, func(a *activations.Record) { outcome.End(a, r, b.store.NowMS()) })
	}
	ended, a, err = end()
	if api.ErrorCode(err) == api.CodeActivationNotFound { // its record was cut short, or is too old
		if _, _, err := b.activations.Start(ctx, activations.Queued(tenant, r.Id, r.Spec)); err != nil {
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

// sendOutcome makes the job that tells to of an outcome. Its id is derived from
// the activation: a repeat makes no other.
func (b *Broker) sendOutcome(ctx context.Context, tenant string, r *jobstore.Record, a *activations.Record, to *api.Destination) error {
	if to == nil {
		return nil
	}
	payload, err := outcome.JSON(a, r)
	if err != nil {
		return err
	}
	spec := &api.JobSpec{Payload: payload, ParentID: r.Id}
	q := r.Queue(tenant)
	q.Name = to.Queue
	if to.Function != "" {
		from := r.Spec.Activation
		if from.Hops >= api.MaxDestinationHops {
			b.log.Warn("functions are each other's destination: the circle ends here", zap.String("tenant", tenant),
				zap.String("namespace", a.Namespace), zap.String("function", a.Function), zap.String("activation_id", a.ActivationID))
			return nil
		}
		q.Name = api.FunctionQueuePrefix + to.Function
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
	return b.enqueueInternal(ctx, q, api.DerivedJobID("outcome", tenant, a.ActivationID, strconv.FormatInt(r.Run.Epoch, 10)), spec)
}
