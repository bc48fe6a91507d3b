package invoker

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/slots"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/triggers"
)

// The times of the worker.
//
//	0 s     a job is taken under a lease of leaseTime
//	1.5 s   a tick has renewed it, for another leaseTime from then on
//	5 s     without a renewal the lease has expired: maintenance returns the job to its queue
//
// A renewal may fail once, because of renewTimeout, and the next one still comes in time.
const (
	// leaseTime is the time after which another replica runs the jobs of a replica that
	// died. A lease is renewed when renewAfter of it has passed.
	leaseTime  = 5 * time.Second
	renewAfter = 1500 * time.Millisecond
	renewTick  = renewAfter / 3
	// readyPoll is how often the ready queues are read where no notice arrives.
	readyPoll = 5 * time.Second
	// blockedPoll is how often a queue without a free slot on this replica is looked at
	// again. That does not ask the store.
	blockedPoll = 100 * time.Millisecond
	// failedPoll is the wait after a call that the store did not answer.
	failedPoll = time.Second
	// roundTurns bounds the turns of a round. In a turn, one queue of each tenant is visited.
	roundTurns = 16
	// takeMost bounds the jobs that one call takes out of a queue.
	takeMost = 256
)

// worker runs asynchronous invocations. It takes jobs out of the fn queues, as many as find
// a slot on this replica, renews their leases while they run, and settles them.
//
// A job passes through the worker like this:
//
//	take          it is leased, and counts in jobs and in counts
//	acquire       its function is resolved; it gets a slot (slotTaken) and a sandbox
//	run           its attempt is recorded, run, and recorded again
//	releaseSlot   the run has ended: the next job may be taken
//	settle        the job is acknowledged, failed or put back
//	done          its lease is renewed no more
//
// Settling may take long if the store does not answer, so more jobs are held than run then;
// slots.Jobs has the bound, and that of one tenant.
//
// A replica shuts down in two steps, of which the second is only for jobs that do not end
// in time:
//
//	Work's ctx ends     no more jobs are taken; runs in progress continue under their leases
//	Close begins        jobs that have not begun are put back (serve); they lose no attempt
//	a run ends          its end is recorded, its job settled
//	Close's ctx ends    Invoker.aborted is closed and the remaining runs are cancelled: the
//	                    activation becomes queued at the previous attempt, the job is put
//	                    back (giveBack), and another replica begins the same attempt
//	the last job ends   the renewals stop, and Work returns
//
// A write that fails after that is not repeated: the lease of its job expires.
type worker struct {
	i       *Invoker
	id      string
	metrics *workerMetrics
	wake    chan struct{} // holds a token when a queue may have work

	mu     sync.Mutex
	ready  *slots.Ready[queue.FunctionQueue]
	queues map[queue.FunctionQueue]*queueState
	jobs   map[*leasedJob]struct{} // leased to this worker
	counts *slots.Jobs             // of these; a batch counts as one

	triggers *triggers.Index
	shared   *triggers.Slots // of triggers with a concurrency limit
}

// newWorker makes the worker of i; 0 slots stand for the default, one for each sandbox
// process. Its id names this replica in the leases and in the list of workers.
func newWorker(i *Invoker, most int) *worker {
	counts := slots.NewJobs(most, 0, 0)
	if i.pool != nil {
		places := i.pool.MaxProcesses()
		counts = slots.NewJobs(cmp.Or(most, places), i.pool.MaxOfTenant(), places)
	}
	return &worker{
		i: i, id: "invoker-" + uuid.NewString(), counts: counts, metrics: newWorkerMetrics(), wake: make(chan struct{}, 1),
		ready:  slots.NewReady(func(q queue.FunctionQueue) string { return q.Tenant }),
		queues: map[queue.FunctionQueue]*queueState{}, jobs: map[*leasedJob]struct{}{},
		triggers: triggers.NewIndex(triggers.New(i.store)), shared: triggers.NewSlots(triggers.New(i.store), i.store.NowMS),
	}
}

// Work runs asynchronous invocations until ctx ends. Then it takes no more jobs, and
// returns when those that it has are settled: Close bounds that. It is called once at most.
// It returns immediately on a replica without a broker or without sandboxes.
func (i *Invoker) Work(ctx context.Context) {
	if i.broker == nil || i.pool == nil {
		return
	}
	w := i.worker
	defer i.broker.OnReady(w.noticed)()
	following, stop := context.WithCancel(ctx)
	var follow sync.WaitGroup
	defer follow.Wait()
	defer stop()
	follow.Go(func() { w.triggers.Follow(following, w.triggerChanged, i.logger) })
	// Leases are held until the last job is settled.
	settled := make(chan struct{})
	var renewing, running sync.WaitGroup
	renewing.Go(func() { w.renew(context.WithoutCancel(ctx), settled) })
	renewing.Go(func() { w.renewSlots(context.WithoutCancel(ctx), settled) })
	w.dispatch(ctx, &running)
	running.Wait()
	close(settled)
	renewing.Wait()
}

// LeasedJobs returns the number of jobs of asynchronous invocations that this replica
// holds, running or being settled.
func (i *Invoker) LeasedJobs() int { return i.worker.leasedJobs() }

// dispatch takes jobs and runs each in a goroutine of running, until ctx ends. A round
// follows a notice, the time that the previous round returned, or the next poll of the
// ready sets, which finds work whose notice was lost. A failing store is asked once a
// second, and logged once until it answers.
func (w *worker) dispatch(ctx context.Context, running *sync.WaitGroup) {
	nextPoll, nextPass, failing := time.Now(), time.Now(), false
	for ctx.Err() == nil {
		began := time.Now()
		if w.beginPass(!began.Before(nextPass)) {
			nextPass = began.Add(blockedPoll)
		}
		again, polled, err := w.round(ctx, running, !began.Before(nextPoll))
		if polled {
			nextPoll = time.Now().Add(readyPoll - rand.N(readyPoll/10)) // so that replicas do not ask at the same time
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
			if failing { // a notice does not repair the store
				_ = sleep.For(ctx, failedPoll) // ctx is looked at by the loop
			}
		}
		timer.Stop()
	}
}

// beginPass has the ready queues that were visited wait for another visit, and reports whether it
// did. It does so when all have been visited, and when it is due.
func (w *worker) beginPass(due bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !due && w.ready.Waiting() > 0 {
		return false
	}
	w.ready.Again()
	return true
}

// round takes the jobs that find a slot. It visits the ready queues by turns of their tenants, so
// that queues with much work share the slots, and a tenant with many queues does not delay those
// of others. again is the longest time until the next round, 0 if queues still wait for their
// visit; polled reports whether the ready queues were read.
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
		pending, err := w.i.broker.Pending(ctx, w.triggered())
		if err != nil {
			return again, false, err
		}
		w.mu.Lock()
		for _, q := range slices.Concat(queues, pending) {
			w.ready.Add(q)
		}
		w.mu.Unlock()
	}
	for n := 0; n < roundTurns && ctx.Err() == nil; n++ {
		turn := w.nextTurn()
		if len(turn) == 0 {
			return again, poll, nil
		}
		for _, q := range turn {
			more, after, err := w.visit(ctx, running, q)
			if err != nil {
				return again, poll, err
			}
			again = min(again, after)
			if more {
				w.visitAgain(q)
			}
		}
	}
	return 0, poll, nil
}

// nextTurn returns a queue of each tenant that has one waiting for a visit.
func (w *worker) nextTurn() []queue.FunctionQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready.Turn()
}

// visitAgain has a queue visited again in its tenant's turn.
func (w *worker) visitAgain(q queue.FunctionQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready.Add(q)
}

// visit takes out of one queue the jobs that find a slot. more reports whether the queue
// may have more; after is the longest time until the next visit.
func (w *worker) visit(ctx context.Context, running *sync.WaitGroup, q queue.FunctionQueue) (more bool, after time.Duration, err error) {
	if wait := w.blocked(q); wait > 0 {
		return false, wait, nil // it stays ready
	}
	room := w.room(q)
	if room == 0 {
		return false, blockedPoll, nil // it stays ready
	}
	if !q.OfFunction() {
		return w.visitTriggered(ctx, running, q, room)
	}
	w.unmarkReady(q) // a notice from now on enters it again
	// A take that is interrupted would leave leases that no worker renews.
	got, err := w.i.broker.Take(context.WithoutCancel(ctx), q, w.id, room, leaseTime)
	if err != nil {
		w.markReady(q)
		return false, readyPoll, err
	}
	w.noteTaken(q, &got)
	for k := range got.Jobs {
		j := w.take(ctx, q, got.Jobs[k], true)
		running.Go(func() { w.serve(j) })
	}
	after = readyPoll
	if got.After > 0 {
		after = got.After
	}
	return got.More, after, nil
}

// markReady adds a queue to those that may have work. The broker calls it for each notice,
// so it must not block.
func (w *worker) markReady(q queue.FunctionQueue) {
	w.visitAgain(q)
	w.poke()
}

// unmarkReady removes a queue from those that may have work.
func (w *worker) unmarkReady(q queue.FunctionQueue) {
	w.mu.Lock()
	w.ready.Remove(q)
	w.mu.Unlock()
}

// poke begins the next round of dispatch, if it waits. The channel holds one token, which
// stands for any number of calls.
func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // a token is there already
	}
}

// queueState is the worker's view of a queue. worker.mu guards it.
type queueState struct {
	// learned reports that key, memoryMB and atOnce are set, to those of the version that
	// the queue's last job ran.
	learned  bool
	key      string // of the version's sandbox.Program
	memoryMB int    // the version's memory limit
	atOnce   int    // the version's concurrency limit
	batches  bool   // the version's handler takes batches
	active   int    // jobs that have a slot or wait for one
	withSlot int    // of these, the jobs that have one
	more     bool   // jobs wait until one of those has ended

	// Of a queue with a trigger: since when jobs wait for a full batch, zero if none do, and
	// when they may be counted again.
	since, countAt time.Time
	notBefore      time.Time // of the next visit: a rate limit or taken slots allow none
}

// maxQueueStates bounds the states of queues without a running job. Beyond it they are
// removed, and their limits are learned again from their next job.
const maxQueueStates = 10_000

// state returns the state of q. The caller holds w.mu.
func (w *worker) state(q queue.FunctionQueue) *queueState {
	s := w.queues[q]
	if s == nil {
		if len(w.queues) >= maxQueueStates {
			for other, known := range w.queues {
				if known.active == 0 {
					delete(w.queues, other)
				}
			}
		}
		s = &queueState{}
		w.queues[q] = s
	}
	return s
}

// room returns how many jobs of q would find a slot now. It is at most 1 until the first
// job has shown the limits of its version.
//
// A version with max_concurrency 10, of which 4 slots are used, and 2 jobs that were taken
// and have no slot yet, leaves room for 10 - 4 - 2 = 4 jobs, unless the worker's own slots
// or the pool leave less. The result is an estimate: synchronous calls use the same slots.
// A job that finds none after all is put back for snoozeTime.
func (w *worker) room(q queue.FunctionQueue) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state(q)
	free := min(w.counts.Free(q.Tenant), takeMost)
	if !s.learned {
		if s.active > 0 {
			return 0
		}
		return max(0, min(1, free, w.i.pool.Room(q.Tenant, "", api.DefaultMemoryMB)))
	}
	coming := s.active - s.withSlot
	return max(0, min(free,
		s.atOnce-w.i.limits.Used(s.key)-coming,
		w.i.pool.Room(q.Tenant, s.key, s.memoryMB)-coming))
}

// learn keeps the limits of the version that a queue's job runs. The first time, it begins
// a round, which may then take more than one job.
func (w *worker) learn(q queue.FunctionQueue, program *sandbox.Program, version *api.Version) {
	w.mu.Lock()
	s := w.state(q)
	fresh := !s.learned
	s.learned, s.key, s.memoryMB, s.atOnce = true, program.Key, program.MemoryMB, version.Config.MaxConcurrency
	s.batches = slices.Contains(version.Handlers, api.HandlerQueue)
	w.mu.Unlock()
	if fresh {
		w.poke()
	}
}

// blocked returns how long a queue is not to be visited, 0 if it may be.
func (w *worker) blocked(q queue.FunctionQueue) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, time.Until(w.state(q).notBefore))
}

// block sets when a queue may be visited again; the zero time is now.
func (w *worker) block(q queue.FunctionQueue, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state(q).notBefore = until
}

// noteTaken keeps what a take reported of its queue: more jobs keep it ready, and held ones
// are looked for when a job of the queue ends.
func (w *worker) noteTaken(q queue.FunctionQueue, got *queue.Taken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state(q)
	if got.More || got.After > 0 {
		w.ready.Keep(q)
	}
	if got.After > 0 {
		s.notBefore = time.Now().Add(got.After)
	}
	s.more = got.Held
}

// take adds a job to those of the worker, before its goroutine begins: from here on its
// lease is renewed. Of a batch, only the first job counts as one that needs a slot.
func (w *worker) take(ctx context.Context, q queue.FunctionQueue, job api.FetchedJob, counts bool) *leasedJob {
	j := &leasedJob{job: job, queue: q, expiresMS: job.LeaseExpiresMS, counts: counts, released: !counts}
	// The run outlives ctx, and ends when its lease is lost.
	j.ctx, j.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[j] = struct{}{}
	if counts {
		w.counts.Take(q.Tenant)
		w.state(q).active++
	}
	return j
}

// slotTaken notes that a job has its slot: limits.Used counts it from now on, so room must
// not count it twice.
func (w *worker) slotTaken(j *leasedJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.hasSlot { // of an earlier job of its batch
		return
	}
	j.hasSlot = true
	w.state(j.queue).withSlot++
}

// releaseSlot notes that a job needs its slot no more, so that the next may be taken. It
// may be called more than once.
func (w *worker) releaseSlot(j *leasedJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.released {
		return
	}
	j.released = true
	w.counts.Release(j.queue.Tenant)
	s := w.state(j.queue)
	s.active--
	if j.hasSlot {
		s.withSlot--
	}
	if s.more {
		w.ready.Add(j.queue)
	}
	if !w.ready.Empty() {
		w.poke()
	}
}

// done removes a job from those of the worker, and ends its ctx.
func (w *worker) done(j *leasedJob) {
	w.releaseSlot(j)
	j.lose(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, j)
	if j.counts {
		w.counts.Done(j.queue.Tenant)
	}
}

// leasedJobs returns the number of leased jobs.
func (w *worker) leasedJobs() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}
