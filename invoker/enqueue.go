package invoker

import (
	"context"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/tracing"
)

// Enqueue accepts an invocation that any replica runs later: when it returns, the job and
// the activation's record are durable. The caller's rights and the version's retries and
// destinations are read now; the alias and the rights are checked again at each attempt.
//
// A repeat under the same idempotency key returns the first activation and its current
// status. Errors: CodeInvalid… for a malformed invocation, CodeBodyLimit,
// Code…NotFound, CodeAuthnRequired and CodeAuthzDenied, CodeIdempotencyMismatch,
// CodeQueueDraining, CodeTenantQuota, CodeTenantRate, CodeStoreUnavailable (it may have been
// accepted),
// CodeShuttingDown.
//
// The version's timeout, memory and capabilities are not fixed by Enqueue: an attempt of an
// alias runs the version that the alias names when the attempt begins.
func (i *Invoker) Enqueue(ctx context.Context, inv api.Invocation) (*api.Queued, error) {
	if i.tracer != nil {
		return i.traceEnqueue(ctx, &inv)
	}
	return i.enqueue(ctx, &inv)
}

func (i *Invoker) enqueue(ctx context.Context, inv *api.Invocation) (*api.Queued, error) {
	if err := i.enter(); err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	defer i.active.Done()
	if err := i.enqueueable(inv); err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	res, err := i.resolver.Resolve(ctx, resolve.Target{Tenant: inv.Tenant, Namespace: inv.Namespace, Function: inv.Function, Ref: inv.Ref})
	if err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	if err := inv.Permit(res.Version.Config.Authz); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	if err := i.admit(ctx, inv.Tenant); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	out, err := i.accept(ctx, inv, res)
	switch {
	case err != nil:
		return nil, i.metrics.refuse(inv, true, err)
	case out.Replayed:
		i.metrics.replays.Inc()
	}
	return out, nil
}

// enqueueable refuses a malformed invocation before the store is asked. Errors:
// CodeInvalid… for its reference, CodeInternal on a replica without a broker, CodeBodyLimit
// for an event over api.MaxJobPayloadBytes, which is less than a synchronous event may
// have.
func (i *Invoker) enqueueable(inv *api.Invocation) error {
	switch {
	case i.broker == nil:
		return api.Errorf(api.CodeInternal, "this replica has no queue")
	case len(inv.Event) > api.MaxJobPayloadBytes:
		return api.Errorf(api.CodeBodyLimit, "the event of an asynchronous invocation exceeds %s", api.SizeText(api.MaxJobPayloadBytes))
	}
	return inv.Ref.Validate()
}

// accept makes the job, then the record. After a crash between the two steps the worker
// finds a job without a record and writes the record itself (activations.Attempt); in the
// other order a crash would leave a queued record without a job to run it. The worker also
// writes the record if it is faster than this call.
//
// With an idempotency key the id is derived, and an earlier call may have got as far as the
// record, the job, or neither. A record answers the call. A job with another fingerprint is
// another request. A job that has ended answers the call if its record has expired, which a
// version with a short retention allows: a new record would say that it waits. Replayed is
// false for the call that made the job, also if a worker wrote the record first: both carry its
// request id. It is false, too, for a call that writes the record of a waiting job again.
func (i *Invoker) accept(ctx context.Context, inv *api.Invocation, res *resolve.Resolution) (*api.Queued, error) {
	id, digest := newActivationID(), ""
	if inv.IdempotencyKey != "" {
		id = inv.DerivedID()
		digest = fingerprint(inv)
		existing, err := i.activations.Get(ctx, inv.Tenant, id)
		if api.ErrorCode(err) != api.CodeActivationNotFound {
			return repeated(existing, digest, err)
		}
	}
	spec := i.jobSpec(inv, res, digest)
	if i.tracer != nil {
		spec.Activation.Traceparent, spec.Activation.Tracestate = tracing.Carry(ctx)
	}
	spec, state, err := i.broker.EnqueueInvocation(ctx, inv.Tenant, id, spec)
	if err != nil {
		return nil, err
	}
	if digest != "" && (spec.Activation == nil || spec.Activation.Fingerprint != digest) {
		return nil, mismatch()
	}
	current := spec.ActivationID(id) // differs from the job's id after an operator's retry
	if state.Terminal() {
		// A worker may have been faster than this call: then there is a record.
		existing, err := i.activations.Get(ctx, inv.Tenant, current)
		if api.ErrorCode(err) == api.CodeActivationNotFound {
			return &api.Queued{ActivationID: current, Status: endOf(state), Replayed: true}, nil
		}
		return answered(inv, spec, existing, digest, err)
	}
	queued := activations.Queued(inv.Tenant, id, spec)
	queued.RetentionMS = res.Version.Config.RetentionMS()
	created, existing, err := i.activations.Start(ctx, queued)
	if err == nil && !created && digest != "" {
		return answered(inv, spec, existing, digest, nil)
	}
	return &api.Queued{ActivationID: current, Status: api.StatusQueued}, err
}

// answered is repeated for a call that has found or made the job. Replayed is false if the job is
// the call's own, and a worker was faster than the record.
func answered(inv *api.Invocation, spec *api.JobSpec, existing *activations.Record, digest string, err error) (*api.Queued, error) {
	out, err := repeated(existing, digest, err)
	if err == nil && inv.RequestID != "" && spec.Activation.RequestID == inv.RequestID {
		out.Replayed = false
	}
	return out, err
}

// endOf returns the status of an activation whose job has ended.
func endOf(state api.JobState) api.Status {
	switch state {
	case api.JobCompleted:
		return api.StatusSuccess
	case api.JobCancelled:
		return api.StatusCancelled
	default:
		return api.StatusError
	}
}

// jobSpec returns the job of inv: payload, retries, expiry and destinations as the version
// configures them now, and the alias or version as the caller named it: with an alias, an
// attempt after a deployment runs the new version.
func (i *Invoker) jobSpec(inv *api.Invocation, res *resolve.Resolution, digest string) *api.JobSpec {
	config := res.Version.Config
	return &api.JobSpec{
		Namespace: inv.Namespace, Queue: api.FunctionQueuePrefix + inv.Function, Payload: inv.Event,
		JobOptions: config.JobOptions(i.store.NowMS(), api.JobTarget{Function: inv.Function, Alias: inv.Ref.Alias, Version: inv.Ref.Version}),
		Activation: &api.AsyncActivation{
			Trigger: api.Trigger{Type: inv.Trigger.Type}, Principal: inv.Principal, Access: inv.Access, AllNamespaces: inv.AllNamespaces,
			RequestID: inv.RequestID, Fingerprint: digest, OnSuccess: config.OnSuccess, OnFailure: config.OnFailure,
		},
	}
}

// repeated answers an asynchronous call whose activation id is in use, with the status that
// the activation has now. Errors: err, CodeIdempotencyMismatch.
func repeated(existing *activations.Record, digest string, err error) (*api.Queued, error) {
	switch {
	case err != nil:
		return nil, err
	case existing.EventSHA256 != digest:
		return nil, mismatch()
	}
	return &api.Queued{ActivationID: existing.ActivationID, Status: existing.Status, Replayed: true}, nil
}

// cancelJob ends the job of an activation that was cancelled. If that fails, the worker
// that takes the job finds the activation cancelled.
func (i *Invoker) cancelJob(ctx context.Context, rec *activations.Record) {
	if rec.JobID == "" || i.broker == nil {
		return
	}
	_, err := i.broker.Cancel(ctx, rec.Tenant, rec.JobID)
	if code := api.ErrorCode(err); err != nil && code != api.CodeJobState && code != api.CodeJobNotFound {
		i.logger.Warn("the job of a cancelled activation was not cancelled; it ends at its next attempt", append(ids(rec), zap.Error(err))...)
	}
}
