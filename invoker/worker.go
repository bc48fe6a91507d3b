package invoker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/queue"
)

const (
	// leaseTime is how soon another replica runs what a dead one had in hand; a
	// lease is renewed when renewAfter of it has passed.
	leaseTime  = 5 * time.Second
	renewAfter = 1500 * time.Millisecond
	renewTick  = renewAfter / 3
	// readyPoll is how often the ready queues are read where no notice comes.
	readyPoll = 5 * time.Second
	// blockedPoll is how often a queue is thought of again whose functions have no
	// place here. It asks the store nothing.
	blockedPoll = 100 * time.Millisecond
	// failedPoll is how soon the store is asked again that did not answer.
	failedPoll = time.Second
	// takeMost bounds what one call takes out of a queue.
	takeMost = 256
)

// worker runs asynchronous invocations: it takes jobs out of the fn queues as far
// as they find a place here, holds their leases while they run, and settles them.
type worker struct {
	i       *Invoker
	id      string
	slots   int
	metrics *workerMetrics
	wake    chan struct{} // holds a token when there is something to look at

	mu    sync.Mutex
	ready map[queue.FunctionQueue]struct{} // may have work
	lanes map[queue.FunctionQueue]*lane
	hand  map[*held]struct{} // what is leased
	busy  int                // of those, how many have, or wait for, a place
}

// newWorker makes the worker of i, with slots places, 0 for the default.
func newWorker(i *Invoker, slots int) *worker {
	if slots == 0 && i.pool != nil {
		slots = i.pool.MaxProcesses()
	}
	return &worker{
		i: i, id: "invoker-" + uuid.NewString(), slots: slots, metrics: newWorkerMetrics(), wake: make(chan struct{}, 1),
		ready: map[queue.FunctionQueue]struct{}{}, lanes: map[queue.FunctionQueue]*lane{}, hand: map[*held]struct{}{},
	}
}

// Work runs asynchronous invocations until ctx ends; then it takes no more, and
// returns when what it has in hand is settled: see Close, which bounds that. It is
// called once at most.
func (i *Invoker) Work(ctx context.Context) {
	if i.broker == nil || i.pool == nil {
		return
	}
	w := i.worker
	defer i.broker.OnReady(w.noticed)()
	// Leases are held until the last job is settled.
	settled := make(chan struct{})
	var renewing, running sync.WaitGroup
	renewing.Go(func() { w.renew(context.WithoutCancel(ctx), settled) })
	w.dispatch(ctx, &running)
	running.Wait()
	close(settled)
	renewing.Wait()
}

// InHand is how many jobs of asynchronous invocations are under leases here.
func (i *Invoker) InHand() int { return i.worker.inHand() }

// dispatch takes jobs and lets them run in running, until ctx ends.
func (w *worker) dispatch(ctx context.Context, running *sync.WaitGroup) {
	nextPoll, failing := time.Now(), false
	for ctx.Err() == nil {
		began := time.Now()
		again, polled, err := w.round(ctx, running, !began.Before(nextPoll))
		if polled {
			nextPoll = time.Now().Add(readyPoll - rand.N(readyPoll/10)) // replicas ask at moments of their own
		}
		if err != nil && ctx.Err() == nil {
			again = min(again, failedPoll)
			if !failing {
				w.i.logger.Warn("asynchronous invocations wait: the queues cannot be read", zap.Error(err))
			}
		}
		failing = err != nil
		w.metrics.loop.Round(began, err)
		timer := time.NewTimer(min(again, time.Until(nextPoll)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.wake:
			if failing { // what wakes does not mend the store
				w.rest(ctx, failedPoll)
			}
		}
		timer.Stop()
	}
}

func (w *worker) rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// round takes what finds a place. again is after how long it is worth another one
// although nothing wakes it; polled says that the ready queues were read.
func (w *worker) round(ctx context.Context, running *sync.WaitGroup, poll bool) (again time.Duration, polled bool, err error) {
	again = readyPoll
	if poll {
		now := w.i.store.NowMS()
		queues, soonest, err := w.i.broker.Ready(ctx, now)
		if err != nil {
			return again, false, err
		}
		if soonest > 0 {
			again = min(again, time.Duration(max(0, soonest-now))*time.Millisecond)
		}
		w.mu.Lock()
		for _, q := range queues {
			w.ready[q] = struct{}{}
		}
		w.mu.Unlock()
	}
	for progress := true; progress && ctx.Err() == nil; {
		progress = false
		for _, q := range w.readyQueues() {
			took, after, err := w.visit(ctx, running, q)
			if err != nil {
				return again, poll, err
			}
			again, progress = min(again, after), progress || took
		}
	}
	return again, poll, nil
}

// visit takes out of one queue what finds a place. after is when to look again at
// the latest.
func (w *worker) visit(ctx context.Context, running *sync.WaitGroup, q queue.FunctionQueue) (took bool, after time.Duration, err error) {
	room := w.room(q)
	if room == 0 {
		return false, blockedPoll, nil // it stays ready
	}
	w.mu.Lock()
	delete(w.ready, q) // a notice from now on enters it again
	w.mu.Unlock()
	// A take that is cut short would leave leases that nobody holds.
	got, err := w.i.broker.Take(context.WithoutCancel(ctx), q, w.id, room, leaseTime)
	if err != nil {
		w.noticed(q)
		return false, readyPoll, err
	}
	w.hold(q, &got)
	for k := range got.Jobs {
		h := w.take(ctx, q, got.Jobs[k])
		running.Go(func() { w.serve(h) })
	}
	after = readyPoll
	if got.After > 0 {
		after = got.After
	}
	return got.More, after, nil
}

// noticed enters a queue among those that may have work.
func (w *worker) noticed(q queue.FunctionQueue) {
	w.mu.Lock()
	w.ready[q] = struct{}{}
	w.mu.Unlock()
	w.poke()
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // a token is there already
	}
}

// readyQueues are those that may have work, in no order: none is always the last.
func (w *worker) readyQueues() []queue.FunctionQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]queue.FunctionQueue, 0, len(w.ready))
	for q := range w.ready {
		out = append(out, q)
	}
	return out
}

// lane is what the worker knows of a queue.
type lane struct {
	// learned: the version that the queue's last job ran, and its limits.
	learned          bool
	key              string
	memoryMB, atOnce int
	inHand, placed   int  // jobs that have or wait for a place; of these, that have one
	more             bool // jobs wait until one of those has ended
}

// laneEntries bounds the queues that are known although nothing of them is in hand.
const laneEntries = 10_000

// lane gives q's; w.mu is held.
func (w *worker) lane(q queue.FunctionQueue) *lane {
	l := w.lanes[q]
	if l == nil {
		if len(w.lanes) >= laneEntries {
			for other, known := range w.lanes {
				if known.inHand == 0 {
					delete(w.lanes, other)
				}
			}
		}
		l = &lane{}
		w.lanes[q] = l
	}
	return l
}

// room is how many jobs of q would find a place now. Of a queue whose function is
// not known yet one tells.
func (w *worker) room(q queue.FunctionQueue) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lane(q)
	free := min(w.slots-w.busy, 2*w.slots-len(w.hand), takeMost)
	if !l.learned {
		if l.inHand > 0 {
			return 0
		}
		return max(0, min(1, free, w.i.pool.Room("", api.DefaultMemoryMB)))
	}
	coming := l.inHand - l.placed
	return max(0, min(free,
		l.atOnce-w.i.limits.used(l.key)-coming,
		w.i.pool.Room(l.key, l.memoryMB)-coming))
}

// learn keeps what the version of a queue's job allows.
func (w *worker) learn(q queue.FunctionQueue, program *sandbox.Program, atOnce int) {
	w.mu.Lock()
	l := w.lane(q)
	fresh := !l.learned
	l.learned, l.key, l.memoryMB, l.atOnce = true, program.Key, program.MemoryMB, atOnce
	w.mu.Unlock()
	if fresh {
		w.poke()
	}
}

// hold keeps what a take said of its queue.
func (w *worker) hold(q queue.FunctionQueue, got *queue.Taken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if got.More {
		w.ready[q] = struct{}{}
	}
	w.lane(q).more = got.Held
}

// take enters a job among those in hand.
func (w *worker) take(ctx context.Context, q queue.FunctionQueue, job api.FetchedJob) *held {
	h := &held{job: job, queue: q, expiresMS: job.LeaseExpiresMS}
	// Its run outlives the worker's end; what ends it is the loss of its lease.
	h.ctx, h.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	w.mu.Lock()
	w.hand[h] = struct{}{}
	w.busy++
	w.lane(q).inHand++
	w.mu.Unlock()
	return h
}

// placed notes that a job has its place.
func (w *worker) placed(h *held) {
	w.mu.Lock()
	h.placed = true
	w.lane(h.queue).placed++
	w.mu.Unlock()
}

// leave notes that a job needs its place no more: the next may be taken.
func (w *worker) leave(h *held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.left {
		return
	}
	h.left = true
	w.busy--
	l := w.lane(h.queue)
	l.inHand--
	if h.placed {
		l.placed--
	}
	if l.more || len(w.ready) > 0 {
		if l.more {
			w.ready[h.queue] = struct{}{}
		}
		w.poke()
	}
}

// done takes a job out of hand.
func (w *worker) done(h *held) {
	w.leave(h)
	h.lose(nil)
	w.mu.Lock()
	delete(w.hand, h)
	w.mu.Unlock()
}

// inHand is how many jobs are leased.
func (w *worker) inHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.hand)
}
