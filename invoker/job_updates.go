package invoker

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/sandbox"
)

// maxUpdateBytes bounds the checkpoints that one renewal carries together, in bytes; the
// others follow with the next one. A single checkpoint has at most api.MaxCheckpointBytes,
// 256 KiB.
const maxUpdateBytes = 4 << 20

// join makes an activation the job's attempt: its function sees the job (cs.job), and can
// send progress and checkpoints of it.
//
// Updates wait in j.update for the next tick of renew, usually less than half a second. A
// later update replaces an earlier one that is not sent yet, so a function that reports
// progress in a loop costs the store one write for each renewal. order decides which is
// later, because the host calls of a function are served concurrently:
//
//	cs.job.progress(10)   order 1, served second: dropped, 2 > 1
//	cs.job.progress(20)   order 2, served first: kept
func (w *worker) join(j *leasedJob, call *sandbox.Call, s *hostcall.Scope) {
	call.Head.Job = mustJSON(j.running())
	call.Head.Checkpoint = j.job.Checkpoint
	s.UpdateJob, s.Run = w.updates(j), j.steps()
	s.Models.Admit, s.Models.Spend = nil, w.spends(j, s.Models.Spend) // the report of a job decides
}

// steps returns the activation of the job's run.
func (j *leasedJob) steps() *step.Activation {
	return step.NewActivation(step.Lease{Tenant: j.queue.Tenant, Namespace: j.queue.Namespace, ID: j.job.ID, Epoch: j.job.LeaseEpoch})
}

// running returns the job as its function sees it.
func (j *leasedJob) running() api.RunningJob {
	return api.RunningJob{ID: j.job.ID, Queue: j.queue.Queue, Attempt: j.job.Attempt, MaxAttempts: j.job.MaxAttempts, CreatedAtMS: j.job.CreatedAtMS}
}

// updates returns the function that takes updates of j.
func (w *worker) updates(j *leasedJob) func(order int64, u hostcall.JobUpdate) {
	var progress, checkpoint int64 // the order of the last update of each
	return func(order int64, u hostcall.JobUpdate) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if u.Progress != nil && order > progress {
			progress, j.update.Progress = order, u.Progress
		}
		if u.Checkpoint != nil && order > checkpoint {
			checkpoint, j.update.Checkpoint = order, u.Checkpoint
		}
	}
}

// takeRenewal returns the renewal of j, with the update of j if its checkpoint fits into
// room bytes; a negative room takes no update. The caller holds j.updating until it has
// called sent with the result, unless room is negative.
func (w *worker) takeRenewal(j *leasedJob, room int) (renewal api.JobHeartbeat, taken hostcall.JobUpdate) {
	renewal = api.JobHeartbeat{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, LeaseMS: leaseTime.Milliseconds()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(j.update.Checkpoint) > room {
		return renewal, hostcall.JobUpdate{}
	}
	taken, j.update = j.update, hostcall.JobUpdate{}
	renewal.Progress, renewal.Checkpoint = taken.Progress, taken.Checkpoint
	return renewal, taken
}

// sent keeps an update that did not arrive for the next renewal. Parts that the function
// has updated again meanwhile are not brought back.
func (w *worker) sent(j *leasedJob, taken hostcall.JobUpdate, arrived bool) {
	if arrived || taken.Empty() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	j.update = j.update.Over(taken)
}

// answered handles the answer to a renewal: a new deadline, or the loss of the lease, which
// ends the run with errLeaseLost.
func (w *worker) answered(j *leasedJob, answer *api.JobOutcome) {
	if !answer.OK {
		j.lose(errLeaseLost)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	j.expiresMS = answer.LeaseExpiresMS
}

// flushUpdate sends the update that no renewal has carried yet: the next attempt begins
// with its checkpoint.
//
// It is called after the run and before the settlement, which ends the lease that an update
// needs.
func (w *worker) flushUpdate(j *leasedJob) {
	j.updating.Lock()
	defer j.updating.Unlock()
	renewal, taken := w.takeRenewal(j, maxUpdateBytes)
	if taken.Empty() {
		return
	}
	w.settleJob(j, func(ctx context.Context) error {
		answers, err := w.i.broker.Heartbeat(ctx, j.queue.Tenant, []api.JobHeartbeat{renewal})
		if err == nil {
			w.answered(j, &answers[0])
		}
		return err
	})
}
