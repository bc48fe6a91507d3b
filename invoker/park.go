package invoker

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/storage/activations"
)

// park returns an activation to its queue, before any attempt, and leaves the job asleep: the run of
// its function continues when it is due, or when what it waits for arrives. A crash between the two
// leaves a queued record and a leased job: the lease expires, and the next attempt parks again.
func (w *worker) park(j *leasedJob, e *ending) {
	queued := *activations.Queued(j.queue.Tenant, j.job.ID, j.job.Spec)
	queued.RetentionMS, queued.Events, queued.LeaseEpoch = e.rec.RetentionMS, e.rec.Events, e.rec.LeaseEpoch
	queued.AsleepUntilMS = e.parked.DueMS
	queued.InQueue(j.queue.Queue, 0)
	current, ok := w.requeue(j, e, &queued)
	if !ok {
		w.settleAs(j, current)
		return
	}
	w.metrics.attempts.WithLabelValues(attemptParked).Inc()
	w.leaveAsleep(j, e.parked)
}

// leaveAsleep settles the job of a run that sleeps.
func (w *worker) leaveAsleep(j *leasedJob, p *step.Park) {
	w.settleJob(j, func(ctx context.Context) error {
		_, err := w.i.runs.Park(ctx, j.steps().Lease, p)
		return err
	})
}

// parkTriggered leaves the job of a queue trigger asleep if its activation has parked, and reports
// whether it did. The activation has a record of its own, which has ended.
func (w *worker) parkTriggered(b *batch, j *leasedJob, run *step.Activation, out *api.Outcome) bool {
	p := run.Parked()
	if p == nil || out.Activation.Status != api.StatusSuccess || j.lost() {
		return false
	}
	w.leaveAsleep(j, p)
	w.metrics.attempts.WithLabelValues(attemptParked).Inc()
	w.settled(b)
	return true
}

// endsRun reports whether an error of a function ends its run: another attempt would replay the same
// steps to the same end.
func endsRun(e *api.ActivationError) bool {
	if e == nil {
		return false
	}
	switch api.Code(e.Code) {
	case api.CodeHostStepOrder, api.CodeHostStepLimit, api.CodeHostStepFailed:
		return true
	}
	return false
}
