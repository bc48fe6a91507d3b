package invoker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/tracing"
)

// ending is how an attempt ended.
type ending struct {
	rec, final *activations.Record
	logs       *logSink
	last       bool // a failure leaves no further attempt
	took       time.Duration
	at         time.Time
	traceID    string // "" for none
}

// settle records an attempt's end, then settles its job: an activation never says
// less than its job does, and whoever finds the one without the other knows what
// is to be done. What cannot be written is left to the lease's end.
func (w *worker) settle(h *held, e *ending) {
	switch {
	case e.final.Status == api.StatusCancelled && w.hurried():
		w.giveBack(h, e)
	case e.final.Status == api.StatusError && !e.last, e.final.Status == api.StatusTimeout && !e.last:
		w.retry(h, e)
	default:
		w.finish(h, e)
	}
}

// hurried says whether the engine ends and waits no longer.
func (w *worker) hurried() bool {
	select {
	case <-w.i.hurry:
		return true
	default:
		return false
	}
}

// finish writes the terminal record.
func (w *worker) finish(h *held, e *ending) {
	var current *activations.Record
	err := w.insist(h, func(ctx context.Context) (err error) {
		current, err = w.i.recorder.try(ctx, e.final, e.logs)
		return err
	})
	if err != nil {
		e.logs.discard()
		return
	}
	if current == e.final {
		w.i.ended(current, e.took, e.at, e.traceID)
		w.metrics.attempts.WithLabelValues(attemptEnded).Inc()
	}
	w.settleAs(h, current)
}

// retry puts an activation back into its queue with why its attempt failed, and
// fails the job: that decides when the next one is.
func (w *worker) retry(h *held, e *ending) {
	queued := *e.final
	queued.Status, queued.EndMS, queued.Result = api.StatusQueued, 0, nil
	if current, ok := w.requeue(h, e, &queued); !ok {
		w.settleAs(h, current)
		return
	}
	w.metrics.attempts.WithLabelValues(attemptRetried).Inc()
	w.i.logger.Info("attempt failed", append(ids(&queued), zap.Int("attempt", queued.Attempt),
		zap.String("status", string(e.final.Status)), zap.String("error", string(e.final.Error.Type)), tracing.Field(e.traceID))...)
	w.fail(h, e.final.Error, false)
}

// giveBack puts an activation back as if its attempt had not been.
func (w *worker) giveBack(h *held, e *ending) {
	queued := *activations.Queued(h.queue.Tenant, h.job.ID, h.job.Spec)
	queued.Attempt = e.rec.Attempt - 1
	queued.InQueue(h.queue.Queue, queued.Attempt)
	if current, ok := w.requeue(h, e, &queued); !ok {
		w.settleAs(h, current)
		return
	}
	w.metrics.attempts.WithLabelValues(attemptGivenBack).Inc()
	w.putBack(h, 0)
}

// requeue writes queued in place of the running record. current is what stands
// there otherwise; nil where that is not known.
func (w *worker) requeue(h *held, e *ending, queued *activations.Record) (current *activations.Record, ok bool) {
	err := w.insist(h, func(ctx context.Context) (err error) {
		if err := e.logs.drain(ctx); err != nil {
			return err
		}
		queued.LogsTruncated = queued.LogsTruncated || e.logs.truncated()
		ok, current, err = w.i.activations.Attempt(ctx, queued, e.rec.Attempt)
		return err
	})
	if err != nil {
		e.logs.discard()
		return nil, false
	}
	return current, ok
}

// settleAs settles the job of an activation that has ended as current. Where it
// has not, or that is not known, the job is another's.
func (w *worker) settleAs(h *held, current *activations.Record) {
	switch {
	case current == nil || !current.Status.Terminal():
		w.metrics.attempts.WithLabelValues(attemptLost).Inc()
	case current.Status == api.StatusSuccess:
		w.ack(h)
	case current.Status == api.StatusCancelled:
		w.i.cancelJob(context.WithoutCancel(h.ctx), current)
	default:
		w.fail(h, current.Error, !h.last(w.i.store.NowMS()))
	}
}

func (w *worker) ack(h *held) {
	acks := []api.JobAck{{ID: h.job.ID, LeaseEpoch: h.job.LeaseEpoch}}
	w.tell(h, func(ctx context.Context) error {
		_, err := w.i.broker.Ack(ctx, h.queue.Tenant, acks)
		return err
	})
}

func (w *worker) fail(h *held, why *api.ActivationError, fatal bool) {
	f := api.JobFail{ID: h.job.ID, LeaseEpoch: h.job.LeaseEpoch, Fatal: fatal}
	if why != nil {
		f.Error, f.Stack = string(why.Type)+": "+why.Message, why.Stack
	}
	w.tell(h, func(ctx context.Context) error {
		_, err := w.i.broker.Fail(ctx, h.queue.Tenant, []api.JobFail{f})
		return err
	})
}

// putBack returns a job to its queue after a while, without counting its attempt.
func (w *worker) putBack(h *held, after time.Duration) {
	ms := after.Milliseconds()
	f := api.JobFail{ID: h.job.ID, LeaseEpoch: h.job.LeaseEpoch, SnoozeMS: &ms}
	w.tell(h, func(ctx context.Context) error {
		_, err := w.i.broker.Fail(ctx, h.queue.Tenant, []api.JobFail{f})
		return err
	})
}

// interrupted settles a job whose run was stopped before it began.
func (w *worker) interrupted(h *held) {
	if !h.lost() {
		w.putBack(h, 0) // if it is cancelled, the next attempt finds that out
	}
}

// tell settles the job. An outcome that says that the lease is lost needs nothing:
// the job is another's then.
func (w *worker) tell(h *held, write func(context.Context) error) {
	if err := w.insist(h, write); err != nil && !h.lost() {
		w.i.logger.Warn("a job was not settled: its lease will run out", zap.String("tenant", h.queue.Tenant),
			zap.String("job_id", h.job.ID), zap.Error(err))
	}
}

// insist goes on trying write until it is done or the job is not held any more; once
// where the engine ends and waits no longer.
func (w *worker) insist(h *held, write func(context.Context) error) error {
	ctx := context.WithoutCancel(h.ctx)
	for wait := recordRetryMin; ; wait = min(2*wait, recordRetryMax) {
		err := write(ctx)
		if err == nil || api.ErrorCode(err) != api.CodeStoreUnavailable {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-h.ctx.Done():
			timer.Stop()
			return err
		case <-w.i.hurry:
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}
