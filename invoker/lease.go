package invoker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/queue"
)

// held is a job in hand.
type held struct {
	job   api.FetchedJob
	queue queue.FunctionQueue
	// ctx ends, with errLeaseLost, when the job is somebody else's or cancelled.
	ctx  context.Context
	lose context.CancelCauseFunc

	// telling is held while what the job tells is on its way.
	telling sync.Mutex

	// Under worker.mu:
	update       hostcall.JobUpdate // not sent yet
	expiresMS    int64              // of the lease
	placed, left bool
}

// errLeaseLost stops a run whose job is not held any more.
var errLeaseLost = errors.New("the job's lease is lost")

func (h *held) lost() bool { return errors.Is(context.Cause(h.ctx), errLeaseLost) }

// renewTimeout bounds one renewal, which has to be over before the leases are.
const renewTimeout = 2 * time.Second

// renew holds the leases of what is in hand until settled is closed: all that have
// to be, of a tenant, in one call.
func (w *worker) renew(ctx context.Context, settled <-chan struct{}) {
	tick := time.NewTicker(renewTick)
	defer tick.Stop()
	for {
		select {
		case <-settled:
			return
		case <-tick.C:
		}
		for tenant, due := range w.dueLeases() {
			if err := w.beat(ctx, tenant, due); err != nil {
				w.i.logger.Warn("leases were not renewed", zap.String("tenant", tenant), zap.Int("jobs", len(due)), zap.Error(err))
			}
		}
	}
}

// dueLeases are those of which renewAfter has passed, and those that have something
// to tell, by tenant.
func (w *worker) dueLeases() map[string][]*held {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := map[string][]*held{}
	upTo := w.i.store.NowMS() + (leaseTime - renewAfter + renewTick).Milliseconds()
	for h := range w.hand {
		if (h.expiresMS <= upTo || !h.update.Empty()) && len(due[h.queue.Tenant]) < api.MaxSettleJobs {
			due[h.queue.Tenant] = append(due[h.queue.Tenant], h)
		}
	}
	return due
}

// beat renews leases of one tenant, and stops what is not held any more.
func (w *worker) beat(ctx context.Context, tenant string, due []*held) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	beats, taken, room := make([]api.JobHeartbeat, len(due)), make([]hostcall.JobUpdate, len(due)), maxToldBytes
	for k, h := range due {
		if !h.telling.TryLock() { // its end is being told
			beats[k], _ = w.beatOf(h, -1)
			continue
		}
		defer h.telling.Unlock()
		beats[k], taken[k] = w.beatOf(h, room)
		room -= len(taken[k].Checkpoint)
	}
	answers, err := w.i.broker.Heartbeat(ctx, tenant, beats)
	for k, h := range due {
		w.sent(h, taken[k], err == nil)
		if err == nil {
			w.answered(h, &answers[k])
		}
	}
	return err
}
