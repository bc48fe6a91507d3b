// Package scheduler keeps schedules and fires their ticks, and runs the loop that does the
// due work of queues and schedules. It has no leader: any number of replicas may run it over
// one store. Package sweeper repairs the records that crashes leave behind.
//
// # The path of a tick
//
//	Schedules.Create  schedules.go: stores the schedule with its first tick (timing.go), marks
//	                  the tenant in the due sets, and wakes the loop
//	Loop.Run          loop.go: reads the due sets when something is due
//	Ticker.Tend       ticker.go: claims the tenants that are due, reads their due schedules
//	Ticker.decide     tick_move.go: what to do with each, by catchup.go and the overlap policy
//	Broker.Tick       package queue: schedule_tick.lua writes the job and the new state
//	Claims.Settle     package duework: the tenant's next moment
//
// # Records
//
// For schedule nightly of namespace shop of tenant t_acme01:
//
//	cs:schedule:t_acme01:shop:nightly:meta      the schedule as its author stored it
//	cs:schedule:t_acme01:shop:nightly:state     hash: turn, next tick, counts, last job
//	cs:schedule:t_acme01:shop:nightly:inflight  its jobs that have not ended, by their tick
//	cs:schedule:t_acme01:due                    all schedules of the tenant, by their next tick
//	cs:due:N                                    the tenant, by the next tick of any of them
//
// # Invariants
//
// Each write of a state increments its turn and requires the turn that was read, so that of two
// replicas that decide on the same tick one succeeds. The id of a tick's job is derived from the
// schedule, its time of creation, and the tick: an interrupted write that is repeated makes the
// same job. Ticks are moments of the timing, not of the process: a late tick does not shift
// those behind it.
package scheduler

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// Loop maintains queues, fires schedules and resets budgets as they fall due: one reading of the due
// sets finds all of them. Any number of replicas may run one over the same store.
type Loop struct {
	store  *storage.Store
	due    *duework.Reader
	alarm  *duework.Alarm
	logger *zap.Logger

	queues, schedules, budgets *dueWork
	finished                   chan outcome // has room for one of each kind, so that no worker waits to report
	working                    sync.WaitGroup
}

// dueWork is one kind of due work. At most one call of tend is under way at a time. busy and
// again belong to the goroutine of Run or RunOnce.
type dueWork struct {
	tend  func(ctx context.Context, due []storage.DueMember, now int64) (Counts, int64, error)
	count func(began time.Time, err error) // counts a round in the kind's metrics
	busy  bool
	again bool // more was due while it was busy
}

// outcome is how one call of tend ended.
type outcome struct {
	of     *dueWork
	counts Counts
	next   int64 // the moment of the next work, 0 if none is known
	err    error
}

// Counts is the work of one round.
type Counts struct {
	queue.Counts     // maintenance of queues
	Tenants      int // in which schedules were due
	// NextMS is the moment at which something is due next, 0 if none is known.
	NextMS int64
}

// NewLoop returns a Loop over store that maintains the queues of broker and fires schedules
// by ticker.
func NewLoop(store *storage.Store, broker *queue.Broker, ticker *Ticker, logger *zap.Logger) *Loop {
	return &Loop{
		store: store, due: duework.NewReader(store), alarm: broker.Alarm(), logger: logger,
		queues: &dueWork{count: broker.CountRound, tend: func(ctx context.Context, due []storage.DueMember, now int64) (Counts, int64, error) {
			done, next, err := broker.MaintainDue(ctx, due, now)
			return Counts{Counts: done}, next, err
		}},
		schedules: &dueWork{count: ticker.CountRound, tend: func(ctx context.Context, due []storage.DueMember, now int64) (Counts, int64, error) {
			next, err := ticker.Tend(ctx, due, now)
			return Counts{Tenants: len(due)}, next, err
		}},
		budgets: &dueWork{count: broker.CountBudgets, tend: func(ctx context.Context, due []storage.DueMember, now int64) (Counts, int64, error) {
			next, err := broker.TendBudgets(ctx, due, now)
			return Counts{}, next, err
		}},
		finished: make(chan outcome, 3),
	}
}

// Run works until ctx ends. Unlike RunOnce it does not wait for one kind of work before it
// looks for the other: a slow queue delays no schedule. It returns when the work in progress
// has ended. Call it once at a time.
//
// A round reads all shards of the due sets in one round trip. An idle replica makes one every
// duework.IdleMS, which bounds how late it finds work whose mark was made by a process that died
// before it could notify.
func (l *Loop) Run(ctx context.Context) {
	rung, stop := l.alarm.Listen()
	defer stop()
	defer l.working.Wait()
	for ctx.Err() == nil {
		now := l.store.NowMS()
		next, err := l.start(ctx, now)
		if err != nil && ctx.Err() == nil {
			l.logger.Warn("the due sets cannot be read; the next round tries again", zap.Error(err))
		}
		if next == 0 {
			next = now + duework.IdleMS
		}
		l.wait(ctx, min(next, now+duework.IdleMS), rung)
	}
}

// RunOnce does all work that is due at now, and waits for it. It is not for use beside Run.
func (l *Loop) RunOnce(ctx context.Context, now int64) (total Counts, err error) {
	next, err := l.start(ctx, now)
	errs := []error{err}
	for l.queues.busy || l.schedules.busy || l.budgets.busy {
		o := <-l.finished
		o.of.busy = false
		total.Add(o.counts.Counts)
		total.Tenants += o.counts.Tenants
		next, errs = duework.Sooner(next, o.next), append(errs, o.err)
	}
	total.NextMS = next
	return total, errors.Join(errs...)
}

// start reads the due sets and starts each kind of work that has something to do at now and is
// not busy. It returns the moment at which the next member is due, 0 if none is known.
func (l *Loop) start(ctx context.Context, now int64) (next int64, err error) {
	began := time.Now()
	due, err := l.due.Read(ctx, now, !l.queues.busy) // busy, it could not use more queues
	if err != nil {
		l.queues.count(began, err)
		l.schedules.count(began, err)
		l.budgets.count(began, err)
		return 0, err
	}
	l.startKind(ctx, l.queues, due.Queues, now)
	l.startKind(ctx, l.schedules, due.Schedules, now)
	l.startKind(ctx, l.budgets, due.Budgets, now)
	return due.NextMS, nil
}

// startKind starts one kind of work, or remembers that more was due while it is busy. A round
// without due work is counted, too, so that the metric of the loop shows that it is alive.
func (l *Loop) startKind(ctx context.Context, k *dueWork, due []storage.DueMember, now int64) {
	switch {
	case k.busy:
		k.again = k.again || len(due) > 0
	case len(due) == 0:
		k.count(time.Now(), nil)
	default:
		k.busy, k.again = true, false
		l.working.Go(func() {
			began := time.Now()
			counts, next, err := k.tend(ctx, due, now)
			k.count(began, err)
			l.finished <- outcome{k, counts, next, err}
		})
	}
}

// wait returns at the moment next, or sooner where the alarm rings or work that ended knows of
// a nearer moment; but not before duework.RestMS have passed, so that a burst of alarms costs
// one reading.
func (l *Loop) wait(ctx context.Context, next int64, rung <-chan struct{}) {
	jitter := rand.N(duework.RestMS * time.Millisecond) // keeps replicas from reading at the same moments
	earliest := time.Now().Add(duework.RestMS*time.Millisecond + jitter)
	timeOf := func(moment int64) time.Time {
		at := time.Now().Add(time.Duration(moment-l.store.NowMS())*time.Millisecond + jitter)
		if at.Before(earliest) {
			return earliest
		}
		return at
	}
	until := timeOf(next)
	bringForward := func(at time.Time) {
		if at.Before(until) {
			until = at
		}
	}
	for {
		timer := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			return
		case <-rung:
			bringForward(earliest)
		case o := <-l.finished:
			if o.err != nil && ctx.Err() == nil {
				l.logger.Warn("some due work failed; it is tried again when its claim expires", zap.Error(o.err))
			}
			o.of.busy = false
			if o.of.again {
				bringForward(earliest)
			} else if o.next > 0 {
				bringForward(timeOf(o.next))
			}
		}
		timer.Stop()
	}
}
