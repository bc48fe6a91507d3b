package invoker

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage/activations"
)

// snoozeTime is the delay of a job that found no slot.
const snoozeTime = time.Second

// serve runs a job and settles it. It is the whole life of the job's goroutine.
//
//	acquire succeeds          run: an attempt
//	ctx has ended             interrupted: put back, unless the lease is lost
//	a temporary refusal       put back for snoozeTime; no attempt is counted
//	any other refusal         run with an attempt that fails, so that the activation ends
func (w *worker) serve(j *leasedJob) {
	defer w.done(j)
	if err := w.i.enter(); err != nil {
		w.putBack(j, 0)
		return
	}
	defer w.i.active.Done()
	w.i.metrics.inFlight.Inc()
	defer w.i.metrics.inFlight.Dec()
	inv := j.invocation()
	// Cancel and Close stop the run by its activation's id.
	ctx, stop := context.WithCancel(j.ctx)
	defer stop()
	defer w.i.running.Add(inv.Tenant, j.activationID(), stop)()
	if w.i.tracer != nil {
		traced, span := w.traceJob(ctx, j, inv)
		defer span.End()
		ctx = traced
	}
	res, a, err := w.acquire(ctx, j, inv)
	switch {
	case err == nil:
		w.run(ctx, j, inv, res, a)
	case ctx.Err() != nil:
		w.interrupted(j)
	case postpones(err):
		w.metrics.attempts.WithLabelValues(attemptPostponed).Inc()
		w.putBack(j, snoozeTime)
	default:
		if api.ErrorCode(err) == api.CodeInternal {
			w.i.logger.Error("an asynchronous invocation could not be run", zap.String("tenant", inv.Tenant),
				zap.String("namespace", inv.Namespace), zap.String("function", inv.Function), zap.String("job_id", j.job.ID), zap.Error(err))
		}
		w.run(ctx, j, inv, res, refused(err))
	}
}

// activationID returns the id of the activation that the job runs: the job's own, or
// another one if an operator retried the job.
func (j *leasedJob) activationID() string { return j.job.Spec.ActivationID(j.job.ID) }

// invocation returns the invocation that the job describes. A job without Spec.Activation
// has no caller: no list of roles admits it.
func (j *leasedJob) invocation() *api.Invocation {
	spec := j.job.Spec
	inv := &api.Invocation{
		Tenant: j.queue.Tenant, Namespace: j.queue.Namespace, Function: spec.Target.Function, Ref: spec.Target.Ref(),
		Trigger: api.Trigger{Type: api.TriggerQueue}, Access: api.AccessGranted, Event: j.job.Payload,
	}
	if of := spec.Activation; of != nil {
		inv.Trigger.Type, inv.Principal, inv.Access, inv.RequestID = of.Trigger.Type, of.Principal, of.Access, of.RequestID
		inv.AllNamespaces = of.AllNamespaces
	}
	return inv
}

// acquire resolves the job's function again at each attempt, checks its caller's roles
// again, and takes a slot and a sandbox for it. res is nil if the function was not
// resolved. After an error the caller holds neither slot nor sandbox.
func (w *worker) acquire(ctx context.Context, j *leasedJob, inv *api.Invocation) (res *resolve.Resolution, a attempt, err error) {
	i := w.i
	if err := i.admit(ctx, inv.Tenant); err != nil {
		return nil, a, err
	}
	res, err = i.resolver.Resolve(ctx, resolve.Target{Tenant: inv.Tenant, Namespace: inv.Namespace, Function: inv.Function, Ref: inv.Ref})
	if err != nil {
		return nil, a, err
	}
	if err := inv.Permit(res.Version.Config.Authz); err != nil {
		return res, a, err
	}
	program := i.program(inv, res)
	w.learn(j.queue, program, &res.Version)
	release, err := i.limits.Acquire(ctx, program.Key, res.Version.Config.MaxConcurrency, nil)
	if err != nil {
		return res, a, err
	}
	w.slotTaken(j)
	began := time.Now()
	box, err := i.pool.Acquire(ctx, program, nil)
	switch {
	case api.ErrorCode(err) == api.CodeValidationSource:
		return res, unusable(err, began, release), nil
	case err != nil:
		release()
		return res, a, err
	}
	return res, i.attemptIn(box, began, release), nil
}

// postpones reports whether err is temporary, so that the job is tried again later.
func postpones(err error) bool {
	switch api.ErrorCode(err) {
	case api.CodeConcurrencyLimit, api.CodeCapacityLimit, api.CodeTenantRate, api.CodeStoreUnavailable, api.CodeShuttingDown:
		return true
	}
	return false
}

// refused returns an attempt that fails with err, which keeps the function from running.
// The text of an error without a code is hidden from the record. It is the last attempt
// unless err is CodeInternal, which a retry may not meet.
func refused(err error) attempt {
	message := "the function could not be run; the server's log says why"
	var coded *api.Error
	if errors.As(err, &coded) {
		message = coded.Message
	}
	result := sandbox.Result{
		Status: api.StatusError,
		Error:  &api.ActivationError{Type: api.ErrRefused, Message: message, Code: string(api.ErrorCode(err))},
	}
	return attempt{
		began:   time.Now(),
		run:     func(context.Context, sandbox.Call) sandbox.Result { return result },
		release: func() {},
		// A missing function or right is not retried.
		final: api.ErrorCode(err) != api.CodeInternal,
	}
}

// run records the beginning of the job's attempt, makes it, and settles it. The run stops
// when ctx ends.
//
// The beginning is a compare-and-set: a worker that finds a record that has ended, or that is
// of this lease already, runs nothing, and settles the job as that record says. So an activation
// that ended, whose worker died before it settled the job, is not run again.
func (w *worker) run(ctx context.Context, j *leasedJob, inv *api.Invocation, res *resolve.Resolution, a attempt) {
	i := w.i
	begin := i.store.NowMS()
	rec, deadline := j.attempt(res, i.store.Now(), a.cold)
	var current *activations.Record
	mine := false
	err := w.retryWrite(j, func(ctx context.Context) (err error) {
		mine, current, err = i.activations.Begin(ctx, rec)
		return err
	})
	if err != nil || !mine {
		a.release()
		if err == nil {
			w.settleAs(j, current)
		}
		return
	}
	if rec.Attempt == 1 {
		w.metrics.wait.Observe(float64(max(0, begin-j.job.CreatedAtMS)) / 1000)
	}
	logs := i.logsOf(rec).From(j.job.LeaseEpoch)
	result, egress := sandbox.Result{Status: api.StatusCancelled}, int64(0)
	running, end := i.traceRun(ctx, inv)
	logs.Runs = running
	sc := &scope{}
	if ctx.Err() == nil {
		var call sandbox.Call
		if res != nil { // else a runs nothing
			call, sc = i.call(inv, res, rec, deadline, logs, a.box)
			w.join(j, &call, &sc.Scope)
		}
		result = a.run(running, call)
		result = i.withoutSecrets(sc, result)
		sc.keepSecrets(a.box)
		sc.Nested.End()
		egress = sc.EgressBytes()
	}
	a.release()
	w.releaseSlot(j)
	final, took := i.terminal(rec, begin, result), time.Since(a.began)
	final.EgressBytes = egress
	end(final)
	w.flushUpdate(j)
	if j.lost() {
		logs.Discard()
		w.metrics.attempts.WithLabelValues(attemptLost).Inc()
		return
	}
	logs.Fail(final.Error, final.EndMS)
	w.settle(j, &ending{
		rec: rec, final: final, logs: logs, parked: sc.Run.Parked(), last: a.final || endsRun(final.Error) || result.NoRetry || j.last(i.store.NowMS()),
		retryAfter: result.RetryAfterMS, took: took, at: a.began.Add(took), traceID: i.traceID(ctx),
	})
}

// attempt returns the activation's record as the job's attempt begins, and the attempt's
// deadline. res is nil if the function was not resolved; the deadline is now in that case.
// Each attempt has the whole timeout of its version.
func (j *leasedJob) attempt(res *resolve.Resolution, now time.Time, cold bool) (*activations.Record, time.Time) {
	rec := activations.Queued(j.queue.Tenant, j.job.ID, j.job.Spec)
	rec.Status, rec.Attempt, rec.LeaseEpoch, rec.ColdStart = api.StatusRunning, j.job.Attempt, j.job.LeaseEpoch, cold
	rec.InQueue(j.queue.Queue, j.job.Attempt)
	deadline := now
	if res != nil {
		rec.Ref.Version, rec.RetentionMS, rec.MemoryMB = res.Version.Version, res.Version.Config.RetentionMS(), res.Version.Config.MemoryMB
		rec.Events = event.Recorded(&res.Version.Config)
		deadline = now.Add(time.Duration(res.Version.Config.TimeoutMS) * time.Millisecond)
	}
	rec.DeadlineMS = deadline.UnixMilli()
	return rec, deadline
}

// last reports whether no attempt follows a failure at nowMS: all attempts are used, or the
// job has expired.
func (j *leasedJob) last(nowMS int64) bool {
	expires := j.job.Spec.ExpireAtMS
	return j.job.Attempt >= j.job.MaxAttempts || expires > 0 && expires <= nowMS
}
