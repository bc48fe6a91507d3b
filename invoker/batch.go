package invoker

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/storage/triggers"
)

// batch is the jobs that an activation of a queue trigger handles. An activation of its own
// belongs to each attempt: unlike an asynchronous invocation, it is no activation of the job.
type batch struct {
	trigger *triggers.Found
	ref     api.Ref // of the version that runs all jobs, however its alias moves meanwhile
	jobs    []*leasedJob
	lead    *leasedJob     // the one that counts as having a slot
	more    bool           // the slot is used again, for the job that comes next
	slot    *triggers.Slot // nil without a concurrency limit
}

// serveBatch runs a batch and settles its jobs. It is the whole life of the batch's goroutine. A
// function that takes one job at a time gets them one after the other.
func (w *worker) serveBatch(b *batch) {
	defer func() {
		for _, j := range b.jobs {
			w.done(j)
		}
		if b.slot != nil {
			w.leaveSlot(b.slot)
			w.block(b.lead.queue, time.Time{})
			w.markReady(b.lead.queue) // its next batch waits for the slot
		}
	}()
	if err := w.i.enter(); err != nil {
		w.settleBatch(b, func(int) verdict { return verdict{putBack: true} })
		return
	}
	defer w.i.active.Done()
	t := b.trigger
	res, err := w.i.resolver.Resolve(context.WithoutCancel(b.lead.ctx), resolve.Target{Tenant: t.Tenant, Namespace: t.Namespace, Function: t.Function, Ref: t.Ref()})
	if err != nil {
		w.refuse(b, err)
		return
	}
	b.ref = api.Ref{Alias: t.Ref().Alias, Version: res.Version.Version}
	w.learn(b.lead.queue, w.i.program(b.invocation(), res), &res.Version)
	if len(b.jobs) > 1 && !slices.Contains(res.Version.Handlers, api.HandlerQueue) {
		for k, j := range b.jobs {
			if j.lost() {
				w.metrics.attempts.WithLabelValues(attemptLost).Inc()
				continue
			}
			w.runBatch(&batch{trigger: t, ref: b.ref, jobs: []*leasedJob{j}, lead: b.lead, more: k < len(b.jobs)-1})
		}
		return
	}
	w.runBatch(b)
}

// held returns a context that ends when the leases of all jobs are lost.
func (b *batch) held() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(b.jobs[0].ctx))
	var left atomic.Int64
	left.Store(int64(len(b.jobs)))
	stops := make([]func() bool, len(b.jobs))
	for i, j := range b.jobs {
		stops[i] = context.AfterFunc(j.ctx, func() {
			if left.Add(-1) == 0 {
				cancel(errLeaseLost)
			}
		})
	}
	return ctx, func() {
		for _, unlink := range stops {
			unlink()
		}
		cancel(nil)
	}
}

// invocation returns the invocation for the trigger's function, without its event.
func (b *batch) invocation() *api.Invocation {
	t := b.trigger
	source := trigger.QueueSource{Queue: t.Queue}
	for _, j := range b.jobs {
		source.Jobs = append(source.Jobs, j.job.ID)
	}
	return &api.Invocation{
		Tenant: t.Tenant, Namespace: t.Namespace, Function: t.Function, Ref: b.ref,
		Trigger: api.Trigger{Type: api.TriggerQueue, Source: mustJSON(source)}, Principal: t.Principal, Access: t.Access,
	}
}

// runBatch invokes the function with the jobs, and settles them. A job whose lease is lost
// meanwhile belongs to another worker, or was cancelled: the run stops when no job is left.
func (w *worker) runBatch(b *batch) {
	ctx, stop := b.held()
	defer stop()
	inv := b.invocation()
	inv.Messages = len(b.jobs)
	first := b.jobs[0]
	inv.Started = func() { w.slotTaken(b.lead) }
	if len(b.jobs) == 1 {
		update := w.updates(first)
		inv.Event, inv.Attempt = first.job.Payload, first.job.Attempt
		inv.Job = &api.InvokedJob{
			RunningJob: first.running(), Checkpoint: first.job.Checkpoint, Run: first.steps(),
			Update: func(order int64, progress *api.JobProgress, checkpoint json.RawMessage) {
				update(order, hostcall.JobUpdate{Progress: progress, Checkpoint: checkpoint})
			},
			Spend: w.spends(first, func(ctx context.Context, u agent.Usage) error {
				return w.i.spending.Add(ctx, inv.Tenant, inv.Namespace, inv.Function, []agent.Usage{u})
			}),
		}
	} else {
		inv.Event = b.event()
	}
	out, err := w.i.Invoke(ctx, *inv)
	if !b.more {
		w.releaseSlot(b.lead)
	}
	if len(b.jobs) == 1 {
		w.flushUpdate(first)
	}
	if out != nil && inv.Job != nil && w.parkTriggered(b, first, inv.Job.Run, out) {
		return
	}
	if out == nil { // else it ran, and a failed write of its record does not change that
		w.refuse(b, err)
		return
	}
	w.settleBatch(b, func(position int) verdict { return w.verdict(out, position, len(b.jobs)) })
}

// event returns the event of several jobs.
func (b *batch) event() []byte {
	e := api.MessageBatch{Queue: b.trigger.Queue, Messages: make([]api.QueueMessage, len(b.jobs))}
	for i, j := range b.jobs {
		e.Messages[i] = api.QueueMessage{ID: j.job.ID, CreatedAtMS: j.job.CreatedAtMS, Attempt: j.job.Attempt, Body: j.job.Payload}
	}
	return mustJSON(e)
}

// handles makes an activation handle the jobs of an invocation by a queue trigger.
func handles(inv *api.Invocation, head *wire.InvokeHead, sc *scope) {
	if inv.Job == nil {
		head.Flags |= wire.FlagBatch
		return
	}
	head.Job, head.Checkpoint = mustJSON(inv.Job.RunningJob), inv.Job.Checkpoint
	sc.Run = inv.Job.Run
	sc.Models.Admit, sc.Models.Spend = nil, inv.Job.Spend
	sc.UpdateJob = func(order int64, u hostcall.JobUpdate) { inv.Job.Update(order, u.Progress, u.Checkpoint) }
}

// verdict is how a job is settled: put back without a counted attempt, failed if failure is not
// nil, else completed.
type verdict struct {
	putBack bool
	failure *api.ActivationError
	fatal   bool   // no attempt follows
	delayMS *int64 // of the next attempt; nil for the job's backoff
	result  json.RawMessage
}

// refuse settles jobs whose function could not be invoked.
func (w *worker) refuse(b *batch, err error) {
	if api.ErrorCode(err) == api.CodeInternal {
		w.i.logger.Error("a queue trigger could not invoke its function", zap.String("tenant", b.trigger.Tenant),
			zap.String("namespace", b.trigger.Namespace), zap.String("queue", b.trigger.Queue), zap.String("function", b.trigger.Function), zap.Error(err))
	}
	w.settleBatch(b, func(int) verdict { return refusal(err) })
}

// refusal returns the verdict on jobs whose function could not be invoked: they are put back if
// the cause is temporary, and fail otherwise, so that the cause is seen.
func refusal(err error) verdict {
	if postpones(err) {
		delay := snoozeTime.Milliseconds()
		return verdict{putBack: true, delayMS: &delay}
	}
	message := "the function could not be run; the server's log says why"
	if api.ErrorCode(err) != api.CodeInternal {
		message = messageOf(err)
	}
	return verdict{failure: &api.ActivationError{Type: api.ErrRefused, Message: message, Code: string(api.ErrorCode(err))}}
}

// verdict returns the verdict on the job at a position of count: the handler's own, or else that
// of the activation. The result of a function that took one job is the job's.
func (w *worker) verdict(out *api.Outcome, position, count int) verdict {
	act := &out.Activation
	var decided api.MessageVerdict
	if position < len(out.Verdicts) {
		decided = out.Verdicts[position]
	}
	switch {
	case decided.Acked:
		return verdict{}
	case decided.Retried:
		return verdict{failure: failedIn(act, api.ErrException, decided.RetryText()), delayMS: decided.DelayMS}
	case act.Status == api.StatusCancelled && w.aborting():
		return verdict{putBack: true}
	case act.Status == api.StatusSuccess && count == 1 && len(act.Result) <= api.MaxJobResultBytes:
		return verdict{result: act.Result}
	case act.Status == api.StatusSuccess:
		return verdict{}
	case act.Error == nil:
		return verdict{failure: failedIn(act, api.ErrRefused, "the activation was cancelled")}
	}
	failed := failedIn(act, act.Error.Type, act.Error.Message)
	failed.Stack = act.Error.Stack
	return verdict{failure: failed, fatal: endsRun(act.Error)}
}

// failedIn returns the error of a job's attempt, which names the activation.
func failedIn(act *api.Activation, kind api.ErrorType, message string) *api.ActivationError {
	return &api.ActivationError{Type: kind, Message: message + " (activation " + act.ActivationID + ")"}
}

// settleBatch settles the jobs of a batch, those that complete by one call and the others by
// another. A result that the job's schema refuses fails the attempt.
func (w *worker) settleBatch(b *batch, judge func(position int) verdict) {
	var acks []api.JobAck
	var fails []api.JobFail
	var held *leasedJob // as long as it is, the writes are repeated
	for i, j := range b.jobs {
		if j.lost() {
			w.metrics.attempts.WithLabelValues(attemptLost).Inc()
			continue
		}
		held = j
		v := judge(i)
		switch {
		case v.putBack:
			after := int64(0)
			if v.delayMS != nil {
				after = *v.delayMS
			}
			fails = append(fails, api.JobFail{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, SnoozeMS: &after})
			w.metrics.attempts.WithLabelValues(attemptPostponed).Inc()
		case v.failure != nil:
			f := failOf(j, v.failure, v.delayMS)
			f.Fatal = v.fatal
			fails = append(fails, f)
			w.metrics.attempts.WithLabelValues(attemptRetried).Inc()
		default:
			acks = append(acks, api.JobAck{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, Result: v.result})
			w.metrics.attempts.WithLabelValues(attemptEnded).Inc()
		}
	}
	fails = append(fails, w.ackAll(b, held, acks)...)
	defer w.settled(b)
	if len(fails) == 0 {
		return
	}
	w.settleJob(held, func(ctx context.Context) error {
		_, err := w.i.broker.Fail(ctx, b.trigger.Tenant, fails)
		return err
	})
}

// settled ends the renewal of the leases of a batch.
func (w *worker) settled(b *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range b.jobs {
		j.settled = true
	}
}

// failOf returns the failure of a job's attempt.
func failOf(j *leasedJob, why *api.ActivationError, delayMS *int64) api.JobFail {
	return api.JobFail{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, Error: string(why.Type) + ": " + why.Message, Stack: why.Stack, RetryAfterMS: delayMS}
}

// ackAll completes jobs. It returns the failures of those whose result was refused.
func (w *worker) ackAll(b *batch, held *leasedJob, acks []api.JobAck) (refused []api.JobFail) {
	if len(acks) == 0 {
		return nil
	}
	var outcomes []api.JobOutcome
	w.settleJob(held, func(ctx context.Context) (err error) {
		outcomes, err = w.i.broker.Ack(ctx, b.trigger.Tenant, acks)
		return err
	})
	for i := range outcomes {
		o := &outcomes[i]
		if o.OK {
			continue
		}
		if o.Code == api.CodeJobResult {
			refused = append(refused, api.JobFail{ID: acks[i].ID, LeaseEpoch: acks[i].LeaseEpoch, Error: string(api.ErrResultInvalid) + ": " + o.Message})
			continue
		}
		// Another worker has the job, or it was cancelled.
		w.i.logger.Debug("a job of a queue trigger was not completed", zap.String("tenant", b.trigger.Tenant), zap.String("job_id", o.ID), zap.String("code", string(o.Code)))
	}
	return refused
}
