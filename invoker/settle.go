package invoker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/logsink"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/tracing"
)

// ending is the end of an attempt, with all that its record and its log line need. rec is
// the record as the attempt began, final as it would end; a retry stores neither as it is.
type ending struct {
	rec, final *activations.Record
	logs       *logsink.Sink
	parked     *step.Park // the state in which the activation leaves its run; nil if it ends the run
	last       bool       // no attempt follows a failure
	retryAfter *int64     // the delay in milliseconds that the function asked for; nil for none
	took       time.Duration
	at         time.Time
	traceID    string // "" for none
}

// settle records an attempt's end, then settles its job:
//
//	final's status                   record                 job
//	success, and its run sleeps      queued, attempt 0      parked
//	cancelled, and Close aborted it  queued, attempt - 1    put back, no attempt counted
//	error or timeout, not the last   queued, with the error failed; it decides on the retry
//	anything else                    terminal               as the record says (settleAs)
//
// In this order the activation is never behind its job, and a worker that finds the job
// unsettled beside an activation that ended settles the job without running it. If a write
// fails, the lease expires.
func (w *worker) settle(j *leasedJob, e *ending) {
	switch {
	case e.parked != nil && e.final.Status == api.StatusSuccess:
		w.park(j, e)
	case e.final.Status == api.StatusCancelled && w.aborting():
		w.giveBack(j, e)
	case e.final.Status == api.StatusError && !e.last, e.final.Status == api.StatusTimeout && !e.last:
		w.retry(j, e)
	default:
		w.finish(j, e)
	}
}

// aborting reports whether Close has stopped waiting for running work.
func (w *worker) aborting() bool {
	select {
	case <-w.i.aborted:
		return true
	default:
		return false
	}
}

// finish writes the terminal record and settles the job by the record that stands, its own
// or that of a cancel that came first. Only the writer of the record counts and logs the
// activation.
func (w *worker) finish(j *leasedJob, e *ending) {
	var current *activations.Record
	err := w.retryWrite(j, func(ctx context.Context) (err error) {
		current, err = w.i.recorder.try(ctx, e.final, e.logs)
		return err
	})
	if err != nil {
		e.logs.Discard()
		return
	}
	if current == e.final {
		w.i.ended(current, e.took, e.at, e.traceID)
		w.metrics.attempts.WithLabelValues(attemptEnded).Inc()
	}
	w.settleAs(j, current)
}

// retry returns an activation to its queue with the error of its attempt, and fails the
// job, which decides when the next attempt begins. A crash between the two leaves a queued
// record and a leased job: the lease expires, and the job gets its next attempt.
func (w *worker) retry(j *leasedJob, e *ending) {
	queued := *e.final
	queued.Status, queued.EndMS, queued.Result = api.StatusQueued, 0, nil
	if current, ok := w.requeue(j, e, &queued); !ok {
		w.settleAs(j, current)
		return
	}
	w.metrics.attempts.WithLabelValues(attemptRetried).Inc()
	w.i.logger.Info("attempt failed", append(ids(&queued), zap.Int("attempt", queued.Attempt),
		zap.String("status", string(e.final.Status)), zap.String("error", string(e.final.Error.Type)), tracing.Field(e.traceID))...)
	w.fail(j, e.final.Error, false, e.retryAfter)
}

// giveBack returns an activation to its queue as if its attempt had not been made. Its logs
// stay.
func (w *worker) giveBack(j *leasedJob, e *ending) {
	queued := *activations.Queued(j.queue.Tenant, j.job.ID, j.job.Spec)
	queued.Attempt, queued.RetentionMS, queued.Events = e.rec.Attempt-1, e.rec.RetentionMS, e.rec.Events
	queued.LeaseEpoch = e.rec.LeaseEpoch
	queued.InQueue(j.queue.Queue, queued.Attempt)
	if current, ok := w.requeue(j, e, &queued); !ok {
		w.settleAs(j, current)
		return
	}
	w.metrics.attempts.WithLabelValues(attemptGivenBack).Inc()
	w.putBack(j, 0)
}

// requeue writes the remaining logs and replaces the running record by queued. If another
// record stands instead, it returns that one with ok false, or nil if it is unknown,
// because the store did not answer.
func (w *worker) requeue(j *leasedJob, e *ending, queued *activations.Record) (current *activations.Record, ok bool) {
	err := w.retryWrite(j, func(ctx context.Context) (err error) {
		if err := e.logs.Drain(ctx, queued); err != nil {
			return err
		}
		queued.LogsTruncated = queued.LogsTruncated || e.logs.Truncated()
		ok, current, err = w.i.activations.Requeue(ctx, queued)
		return err
	})
	if err != nil {
		e.logs.Discard()
		return nil, false
	}
	return current, ok
}

// settleAs settles the job of an activation that ended as current. An activation that has
// not ended, or is unknown (nil), belongs to another worker: the job is left to its lease.
func (w *worker) settleAs(j *leasedJob, current *activations.Record) {
	switch {
	case current == nil || !current.Status.Terminal():
		w.metrics.attempts.WithLabelValues(attemptLost).Inc()
	case current.Status == api.StatusSuccess:
		w.ack(j)
	case current.Status == api.StatusCancelled:
		w.i.cancelJob(context.WithoutCancel(j.ctx), current)
	default:
		w.fail(j, current.Error, !j.last(w.i.store.NowMS()), nil)
	}
}

// ack completes the job. The answer for a lost lease is not read: the other worker finds
// the terminal record and settles the job.
func (w *worker) ack(j *leasedJob) {
	acks := []api.JobAck{{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch}}
	w.settleJob(j, func(ctx context.Context) error {
		_, err := w.i.broker.Ack(ctx, j.queue.Tenant, acks)
		return err
	})
}

// fail counts the attempt as failed, with the error's type, message and stack. fatal makes
// it the last one, whatever the job's options say; retryAfter, in milliseconds, replaces the
// backoff unless it is nil.
func (w *worker) fail(j *leasedJob, why *api.ActivationError, fatal bool, retryAfter *int64) {
	f := api.JobFail{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, Fatal: fatal, RetryAfterMS: retryAfter}
	if why != nil {
		f.Error, f.Stack = string(why.Type)+": "+why.Message, why.Stack
	}
	w.settleJob(j, func(ctx context.Context) error {
		_, err := w.i.broker.Fail(ctx, j.queue.Tenant, []api.JobFail{f})
		return err
	})
}

// putBack returns a job to its queue after a while, without counting its attempt.
func (w *worker) putBack(j *leasedJob, after time.Duration) {
	ms := after.Milliseconds()
	f := api.JobFail{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, SnoozeMS: &ms}
	w.settleJob(j, func(ctx context.Context) error {
		_, err := w.i.broker.Fail(ctx, j.queue.Tenant, []api.JobFail{f})
		return err
	})
}

// interrupted settles a job whose run was stopped before it began: by Cancel, by Close, or
// by the loss of its lease.
func (w *worker) interrupted(j *leasedJob) {
	if !j.lost() {
		w.putBack(j, 0) // if it is cancelled, the next attempt finds that out
	}
}

// settleJob settles the job by write, and logs a failure. A lost lease is no failure:
// another worker has the job.
func (w *worker) settleJob(j *leasedJob, write func(context.Context) error) {
	if err := w.retryWrite(j, write); err != nil && !j.lost() {
		w.i.logger.Warn("a job was not settled; its lease will expire", zap.String("tenant", j.queue.Tenant),
			zap.String("job_id", j.job.ID), zap.Error(err))
	}
}

// retryWrite repeats write while the store is unavailable and the job is held, with the
// delays of recorder.later. It tries once after Close has stopped waiting. The write itself
// is not interrupted by the end of the run; the store bounds it.
func (w *worker) retryWrite(j *leasedJob, write func(context.Context) error) error {
	ctx := context.WithoutCancel(j.ctx)
	for wait := recordRetryMin; ; wait = min(2*wait, recordRetryMax) {
		err := write(ctx)
		if err == nil || api.ErrorCode(err) != api.CodeStoreUnavailable {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-j.ctx.Done():
			timer.Stop()
			return err
		case <-w.i.aborted:
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}
