package invoker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/triggers"
)

const (
	// countEvery is the least interval between counts of the jobs that wait for a full batch, and
	// countShare the share of the window that it is otherwise.
	countEvery = 50 * time.Millisecond
	countShare = 20
	// leasedMost bounds the jobs that a replica holds: their leases are renewed in time.
	leasedMost = 4096
	// polledMost bounds the triggered queues of a tenant that one poll asks for work. Notices are
	// what leads to the others; the next polls ask for them.
	polledMost = 100
	// slotPoll is how often a trigger whose slots are taken is visited again.
	slotPoll = time.Second
)

// visitTriggered takes jobs of a queue with a trigger, for up to room activations. The results
// are those of visit.
func (w *worker) visitTriggered(ctx context.Context, running *sync.WaitGroup, q queue.FunctionQueue, room int) (more bool, after time.Duration, err error) {
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
			w.block(q, time.Now().Add(slotPoll))
			return false, slotPoll, err
		}
	}
	w.unmarkReady(q) // a notice from now on enters it again
	// A take that is interrupted would leave leases that no worker renews.
	got, err := w.i.broker.Take(context.WithoutCancel(ctx), q, w.id, w.takeable(room*size), leaseTime)
	if err == nil && len(got.Jobs) > 0 {
		got.Jobs, err = w.i.broker.Screen(context.WithoutCancel(ctx), q, t.Function, got.Jobs)
		if len(got.Jobs) > 0 {
			err = nil // the others are taken again when their leases end
		}
	}
	if err != nil || len(got.Jobs) == 0 {
		w.leaveSlot(slot)
	}
	if err != nil {
		w.markReady(q)
		return false, readyPoll, err
	}
	w.endWindow(q)
	w.noteTaken(q, &got)
	var rest []*leasedJob
	for k, jobs := range trigger.Batches(got.Jobs, size) {
		if k >= room { // payloads were too large for fewer batches
			for i := range jobs {
				rest = append(rest, w.take(ctx, q, jobs[i], false))
			}
			continue
		}
		b := &batch{trigger: t, slot: slot}
		for i := range jobs {
			b.jobs = append(b.jobs, w.take(ctx, q, jobs[i], i == 0))
		}
		b.lead = b.jobs[0]
		running.Go(func() { w.serveBatch(b) })
	}
	if len(rest) > 0 {
		running.Go(func() { w.putBackAll(&batch{trigger: t, jobs: rest, lead: rest[0]}) })
	}
	after = readyPoll
	if got.After > 0 {
		after = got.After
	}
	return got.More, after, nil
}

// putBackAll returns the jobs of a batch to their queue. Their attempts are not counted.
func (w *worker) putBackAll(b *batch) {
	w.settleBatch(b, func(int) verdict { return verdict{putBack: true} })
	for _, j := range b.jobs {
		w.done(j)
	}
}

// takeable returns how many jobs to take at most, of wanted.
func (w *worker) takeable(wanted int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(wanted, takeMost, max(1, leasedMost-len(w.jobs)))
}

// batchSize returns the number of jobs that an activation of the trigger may get. It is 1 if
// the function is known to take one job at a time.
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
	now, length := time.Now(), time.Duration(t.WindowMS)*time.Millisecond
	interval := max(countEvery, length/countShare)
	w.mu.Lock()
	s := w.state(q)
	if s.since.IsZero() {
		s.since = now
	}
	left, soon := s.since.Add(length).Sub(now), s.countAt.Sub(now)
	if left > 0 && soon <= 0 {
		s.countAt = now.Add(interval)
	}
	w.mu.Unlock()
	if left <= 0 {
		return 0, nil
	}
	if soon > 0 {
		return min(left, soon), nil
	}
	counts, err := w.i.broker.PendingCounts(ctx, []queue.FunctionQueue{q})
	if err != nil {
		return 0, err
	}
	if counts[0] > 0 && counts[0] < int64(size) {
		return min(left, interval), nil
	}
	return 0, nil
}

// endWindow lets the next jobs of a queue wait for a window of their own.
func (w *worker) endWindow(q queue.FunctionQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state(q).since = time.Time{}
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

// triggered returns queues with an enabled trigger, a bounded number of each tenant.
func (w *worker) triggered() []queue.FunctionQueue {
	var out []queue.FunctionQueue
	for _, q := range w.triggers.Some(polledMost) {
		out = append(out, queue.FunctionQueue(q))
	}
	return out
}
