package invoker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/queue"
)

// leasedJob is a job that this worker holds, from take to done. One goroutine runs it
// (serve); the renewing goroutine reads it and may end its ctx.
type leasedJob struct {
	job    api.FetchedJob
	queue  queue.FunctionQueue
	counts bool // false for the jobs of a batch but the first
	// ctx ends, with errLeaseLost, when another worker has the job or it is cancelled.
	ctx  context.Context
	lose context.CancelCauseFunc

	// updating is held while an update of the job is being sent, so that an older one
	// never arrives after a newer one.
	updating sync.Mutex

	// Under worker.mu:
	update            hostcall.JobUpdate // not sent yet
	expiresMS         int64              // of the lease
	hasSlot, released bool
	settled           bool // its lease is renewed no more
}

// errLeaseLost is the cause of the end of a run whose lease was lost.
var errLeaseLost = errors.New("the job's lease is lost")

// lost reports whether another worker may have the job: nothing must be written for it any
// more. A write that is on its way is refused by the lease epoch, of the job or of its activation.
func (j *leasedJob) lost() bool { return errors.Is(context.Cause(j.ctx), errLeaseLost) }

// renewTimeout bounds one renewal, which must end before the leases expire: a lease has at
// least leaseTime - renewAfter = 3.5 s left when its renewal begins on time.
const renewTimeout = 2 * time.Second

// renewTenants bounds the tenants whose leases are renewed at the same time.
const renewTenants = 64

// renew renews the leases of all jobs until settled is closed. The leases of one tenant
// that are due are renewed by one call. Up to renewTenants calls run at the same time, so
// that a slow one does not let the leases of other tenants expire.
func (w *worker) renew(ctx context.Context, settled <-chan struct{}) {
	tick := time.NewTicker(renewTick)
	defer tick.Stop()
	for {
		select {
		case <-settled:
			return
		case <-tick.C:
		}
		w.renewDue(ctx, w.dueLeases(), w.renewTenant)
	}
}

// renewSlots renews the slots of triggers until settled is closed.
func (w *worker) renewSlots(ctx context.Context, settled <-chan struct{}) {
	tick := time.NewTicker(slotPoll)
	defer tick.Stop()
	for {
		select {
		case <-settled:
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, renewTimeout)
		if err := w.shared.Renew(limited); err != nil {
			w.i.logger.Warn("slots of queue triggers were not renewed", zap.Error(err))
		}
		cancel()
	}
}

// renewDue calls renew for each tenant with leases that are due, and returns when all calls
// have ended.
func (w *worker) renewDue(ctx context.Context, byTenant map[string][]*leasedJob, renew func(context.Context, string, []*leasedJob) error) {
	var calls errgroup.Group
	calls.SetLimit(renewTenants)
	for tenant, due := range byTenant {
		calls.Go(func() error {
			for part := range slices.Chunk(due, api.MaxSettleJobs) {
				if err := renew(ctx, tenant, part); err != nil {
					w.i.logger.Warn("leases were not renewed", zap.String("tenant", tenant), zap.Int("jobs", len(part)), zap.Error(err))
				}
			}
			return nil
		})
	}
	_ = calls.Wait() // the calls return no error
}

// dueLeases returns, by tenant, the jobs whose lease is due or that have an update to send, the
// lease that ends first before the others.
func (w *worker) dueLeases() map[string][]*leasedJob {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := map[string][]*leasedJob{}
	upTo := w.i.store.NowMS() + (leaseTime - renewAfter + renewTick).Milliseconds()
	for j := range w.jobs {
		if (j.expiresMS <= upTo || !j.update.Empty()) && !j.settled && !j.lost() {
			due[j.queue.Tenant] = append(due[j.queue.Tenant], j)
		}
	}
	for _, jobs := range due {
		slices.SortFunc(jobs, func(a, b *leasedJob) int { return cmp.Compare(a.expiresMS, b.expiresMS) })
	}
	return due
}

// renewTenant renews leases of one tenant, and stops the jobs whose lease is lost. After an
// error, such as CodeStoreUnavailable, some of the leases may have been extended: the next
// tick renews all of them again.
func (w *worker) renewTenant(ctx context.Context, tenant string, due []*leasedJob) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	renewals, taken, room := make([]api.JobHeartbeat, len(due)), make([]hostcall.JobUpdate, len(due)), maxUpdateBytes
	for k, j := range due {
		if !j.updating.TryLock() { // its last update is being sent
			renewals[k], _ = w.takeRenewal(j, -1)
			continue
		}
		defer j.updating.Unlock()
		renewals[k], taken[k] = w.takeRenewal(j, room)
		room -= len(taken[k].Checkpoint)
	}
	answers, err := w.i.broker.Heartbeat(ctx, tenant, renewals)
	for k, j := range due {
		w.sent(j, taken[k], err == nil)
		if err == nil {
			w.answered(j, &answers[k])
		}
	}
	return err
}
