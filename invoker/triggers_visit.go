package invoker

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/triggers"
)

const (
	// countEvery is the interval between counts of the jobs that wait for a full batch.
	countEvery = 50 * time.Millisecond
	// placePoll is how often a trigger whose places are taken is visited again.
	placePoll = time.Second
)

// visitTriggered takes jobs of a queue with a trigger, for up to room activations. The results
// are those of visit.
func (w *worker) visitTriggered(ctx context.Context, running *sync.WaitGroup, q queue.FunctionQueue, room int) (took bool, after time.Duration, err error) {
	t := w.triggers.of(q)
	if t == nil { // it was disabled or deleted
		w.unmarkReady(q)
		return false, readyPoll, nil
	}
	size := w.batchSize(q, t)
	wait, err := w.window(ctx, q, t, size)
	if err != nil || wait > 0 {
		return false, wait, err
	}
	var p *place
	if t.Concurrency > 0 {
		room = 1
		p, err = w.enterPlace(ctx, t)
		if err != nil || p == nil {
			return false, placePoll, err
		}
	}
	w.unmarkReady(q) // a notice from now on enters it again
	// A take that is interrupted would leave leases that no worker renews.
	got, err := w.i.broker.Take(context.WithoutCancel(ctx), q, w.id, min(room*size, takeMost), leaseTime)
	if err != nil || len(got.Jobs) == 0 {
		w.leavePlace(p)
	}
	if err != nil {
		w.markReady(q)
		return false, readyPoll, err
	}
	w.noteTaken(q, &got)
	for _, jobs := range batches(got.Jobs, size) {
		b := &batch{trigger: t, place: p}
		for k := range jobs {
			b.jobs = append(b.jobs, w.take(ctx, q, jobs[k], k == 0))
		}
		b.lead = b.jobs[0]
		running.Go(func() { w.serveBatch(b) })
		if p != nil && len(b.jobs) < len(got.Jobs) {
			w.putBackRest(ctx, q, got.Jobs[len(b.jobs):])
			break
		}
	}
	after = readyPoll
	if got.After > 0 {
		after = got.After
	}
	return got.More, after, nil
}

// putBackRest returns the jobs that did not fit into the one batch of a place. Their attempts
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

// window returns how long to wait for a full batch of size jobs, 0 if it is time to take what is
// there.
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

// place is a slot of a trigger with a concurrency limit, over all replicas.
type place struct {
	slot   triggers.Slot
	count  int
	endsMS int64 // under worker.mu
}

// enterPlace takes a slot of the trigger for its next activation, nil if all are taken.
func (w *worker) enterPlace(ctx context.Context, t *triggers.Found) (*place, error) {
	p := &place{slot: triggers.Slot{Tenant: t.Tenant, Namespace: t.Namespace, Queue: t.Queue, Name: uuid.NewString()}, count: t.Concurrency}
	now := w.i.store.NowMS()
	mine, err := w.triggers.repository.Hold(ctx, p.slot, p.count, now)
	if err != nil || !mine {
		return nil, err
	}
	p.endsMS = now + triggers.SlotTime.Milliseconds()
	w.mu.Lock()
	w.places[p] = struct{}{}
	w.mu.Unlock()
	return p, nil
}

// leavePlace frees a slot, if p is not nil. If the store does not answer, the slot ends by
// itself.
func (w *worker) leavePlace(p *place) {
	if p == nil {
		return
	}
	w.mu.Lock()
	delete(w.places, p)
	w.mu.Unlock()
	if err := w.triggers.repository.Leave(context.WithoutCancel(w.i.life), p.slot); err != nil {
		w.i.logger.Warn("the slot of a queue trigger was not freed; it ends by itself", zap.String("tenant", p.slot.Tenant), zap.String("queue", p.slot.Queue), zap.Error(err))
	}
}

// renewPlaces renews the slots that end within half of their time. A slot that was lost, because
// the store did not answer, is taken again if there is room; the activation in it goes on.
func (w *worker) renewPlaces(ctx context.Context) {
	now := w.i.store.NowMS()
	var due []*place
	w.mu.Lock()
	for p := range w.places {
		if p.endsMS < now+triggers.SlotTime.Milliseconds()/2 {
			due = append(due, p)
		}
	}
	w.mu.Unlock()
	for _, p := range due {
		if _, err := w.triggers.repository.Hold(ctx, p.slot, p.count, now); err != nil {
			return // the next tick tries again
		}
		w.mu.Lock()
		p.endsMS = now + triggers.SlotTime.Milliseconds()
		w.mu.Unlock()
	}
}
