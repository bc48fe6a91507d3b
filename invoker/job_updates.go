package invoker

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/sandbox"
)

// maxToldBytes bounds what one renewal carries of what jobs tell; the rest goes with
// the next one.
const maxToldBytes = 4 << 20

// join makes an activation the job's attempt: its function learns which one it is,
// and can tell of it.
func (w *worker) join(h *held, call *sandbox.Call, s *hostcall.Scope) {
	call.Head.Job = mustJSON(api.RunningJob{ID: h.job.ID, Queue: h.queue.Queue, Attempt: h.job.Attempt, MaxAttempts: h.job.MaxAttempts})
	call.Head.Checkpoint = h.job.Checkpoint
	var progress, checkpoint int64 // the order of the last word of each
	s.UpdateJob = func(order int64, u hostcall.JobUpdate) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if u.Progress != nil && order > progress {
			progress, h.update.Progress = order, u.Progress
		}
		if u.Checkpoint != nil && order > checkpoint {
			checkpoint, h.update.Checkpoint = order, u.Checkpoint
		}
	}
}

// beatOf is the renewal of h, with what h tells if that fits in room. Whoever takes
// it along holds h.telling, so that an older word never comes after a newer one, until
// sent says what became of it.
func (w *worker) beatOf(h *held, room int) (beat api.JobHeartbeat, taken hostcall.JobUpdate) {
	beat = api.JobHeartbeat{ID: h.job.ID, LeaseEpoch: h.job.LeaseEpoch, LeaseMS: leaseTime.Milliseconds()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(h.update.Checkpoint) > room {
		return beat, hostcall.JobUpdate{}
	}
	taken, h.update = h.update, hostcall.JobUpdate{}
	beat.Progress, beat.Checkpoint = taken.Progress, taken.Checkpoint
	return beat, taken
}

// sent keeps what was taken along for the next time where it did not arrive.
func (w *worker) sent(h *held, taken hostcall.JobUpdate, arrived bool) {
	if arrived || taken.Empty() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h.update = h.update.Over(taken)
}

// answered notes what a renewal came to.
func (w *worker) answered(h *held, answer *api.JobOutcome) {
	if !answer.OK {
		h.lose(errLeaseLost)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h.expiresMS = answer.LeaseExpiresMS
}

// tellRest sends what an attempt has told and no renewal has taken along: the next
// attempt begins with it.
func (w *worker) tellRest(h *held) {
	h.telling.Lock()
	defer h.telling.Unlock()
	beat, taken := w.beatOf(h, maxToldBytes)
	if taken.Empty() {
		return
	}
	w.tell(h, func(ctx context.Context) error {
		answers, err := w.i.broker.Heartbeat(ctx, h.queue.Tenant, []api.JobHeartbeat{beat})
		if err == nil {
			w.answered(h, &answers[0])
		}
		return err
	})
}
