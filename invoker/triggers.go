package invoker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/triggers"
)

const (
	// countEvery is the interval between counts of the jobs that wait for a full batch.
	countEvery = 50 * time.Millisecond
	// slotPoll is how often a trigger whose slots are taken is visited again.
	slotPoll = time.Second
)

// visitTriggered takes jobs of a queue with a trigger, for up to room activations. The results
// are those of visit.
func (w *worker) visitTriggered(ctx context.Context, running *sync.WaitGroup, q queue.FunctionQueue, room int) (took bool, after time.Duration, err error) {
	t := w.triggers.Of(triggers.Queue(q))
	if t == nil { // it was disabled or deleted
		w.unmarkReady(q)
		return false, readyPoll, nil
	}
	size := w.batchSize(q, t)
	wait, err := w.window(ctx, q, t, size)
	if err != nil || wait > 0 {
		return false, wait, err
	}
	var slot *triggers.Slot
	if t.Concurrency > 0 {
		room = 1
		slot, err = w.shared.Enter(ctx, t)
		if err != nil || slot == nil {
			return false, slotPoll, err
		}
	}
	w.unmarkReady(q) // a notice from now on enters it again
	// A take that is interrupted would leave leases that no worker renews.
	got, err := w.i.broker.Take(context.WithoutCancel(ctx), q, w.id, min(room*size, takeMost), leaseTime)
	if err != nil || len(got.Jobs) == 0 {
		w.leaveSlot(slot)
	}
	if err != nil {
		w.markReady(q)
		return false, readyPoll, err
	}
	w.noteTaken(q, &got)
	for _, jobs := range batches(got.Jobs, size) {
		b := &batch{trigger: t, slot: slot}
		for k := range jobs {
			b.jobs = append(b.jobs, w.take(ctx, q, jobs[k], k == 0))
		}
		b.lead = b.jobs[0]
		running.Go(func() { w.serveBatch(b) })
		if slot != nil && len(b.jobs) < len(got.Jobs) {
			running.Go(func() { w.putBackRest(ctx, q, got.Jobs[len(b.jobs):]) })
			break
		}
	}
	after = readyPoll
	if got.After > 0 {
		after = got.After
	}
	return got.More, after, nil
}

// putBackRest returns the jobs that did not fit into the one batch of a slot. Their attempts
// are not counted.
func (w *worker) putBackRest(ctx context.Context, q queue.FunctionQueue, jobs []api.FetchedJob) {
	for i := range jobs {
		j := w.take(ctx, q, jobs[i], false)
		w.putBack(j, 0)
		w.done(j)
	}
}

// batches splits jobs into batches of up to size jobs and api.MaxTriggerBatchBytes of payload.
func batches(jobs []api.FetchedJob, size int) (out [][]api.FetchedJob) {
	begin, bytes := 0, 0
	for i := range jobs {
		bytes += len(jobs[i].Payload)
		if i > begin && (i-begin == size || bytes > api.MaxTriggerBatchBytes) {
			out = append(out, jobs[begin:i])
			begin, bytes = i, len(jobs[i].Payload)
		}
	}
	if begin < len(jobs) {
		out = append(out, jobs[begin:])
	}
	return out
}

// batchSize returns the number of jobs that an activation of the trigger may get. It is 1 if
// the function takes one job at a time, and until that is known.
func (w *worker) batchSize(q queue.FunctionQueue, t *triggers.Found) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.state(q); s.learned && !s.batches {
		return 1
	}
	return t.BatchSize
}

// window returns how long to wait for a full batch of size jobs, 0 if it is time to take the jobs
// that are there.
//
//	0 ms    a job is noticed; window_ms is 1000, batch_size 10
//	50 ms   3 jobs: wait on
//	100 ms  11 jobs: take them, and count again
//	or
//	1 s     5 jobs: take them
func (w *worker) window(ctx context.Context, q queue.FunctionQueue, t *triggers.Found, size int) (wait time.Duration, err error) {
	if t.WindowMS == 0 || size == 1 {
		return 0, nil
	}
	now := time.Now()
	w.mu.Lock()
	s := w.state(q)
	if s.since.IsZero() {
		s.since = now
	}
	left, soon := s.since.Add(time.Duration(t.WindowMS)*time.Millisecond).Sub(now), s.countAt.Sub(now)
	if left > 0 && soon <= 0 {
		s.countAt = now.Add(countEvery)
	}
	w.mu.Unlock()
	if left > 0 && soon > 0 {
		return min(left, soon), nil
	}
	if left > 0 {
		counts, err := w.i.broker.PendingCounts(ctx, []queue.FunctionQueue{q})
		switch {
		case err != nil:
			return 0, err
		case counts[0] > 0 && counts[0] < int64(size):
			return min(left, countEvery), nil
		}
	}
	w.mu.Lock()
	w.state(q).since = time.Time{} // the window of the jobs that come next
	w.mu.Unlock()
	return 0, nil
}

// leaveSlot frees a slot, if there is one.
func (w *worker) leaveSlot(slot *triggers.Slot) {
	if slot == nil {
		return
	}
	if err := w.shared.Leave(context.WithoutCancel(w.i.life), slot); err != nil {
		w.i.logger.Warn("the slot of a queue trigger was not freed; it ends by itself", zap.Error(err))
	}
}

// triggerChanged drops the knowledge about the function of a queue, whose trigger may name
// another, and has the queue visited.
func (w *worker) triggerChanged(q triggers.Queue) {
	w.mu.Lock()
	w.state(queue.FunctionQueue(q)).learned = false
	w.mu.Unlock()
	w.markReady(queue.FunctionQueue(q))
}

// noticed handles a notice that a queue has work. Most queues have no trigger.
func (w *worker) noticed(q queue.FunctionQueue) {
	if q.OfFunction() || w.triggers.Of(triggers.Queue(q)) != nil {
		w.markReady(q)
	}
}

// triggered returns the queues with an enabled trigger.
func (w *worker) triggered() []queue.FunctionQueue {
	var out []queue.FunctionQueue
	for _, q := range w.triggers.Queues() {
		out = append(out, queue.FunctionQueue(q))
	}
	return out
}
