package webhooks

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/webhooks"
)

const (
	// pollBusy and pollIdle are the times between two reads of the log of a tenant: pollBusy for
	// busyTime after the last event.
	pollBusy = 250 * time.Millisecond
	pollIdle = time.Second
	busyTime = 5 * time.Second
	// loadInterval is how often webhooks and deliveries are read again, without a notice.
	loadInterval = 5 * time.Second
	// trouble is the pause after a failure of the store or of the key file.
	trouble = 2 * time.Second
)

// run serves one tenant. Its fields belong to the goroutine of serve, except for those of hook that
// say otherwise.
type run struct {
	d      *Dispatcher
	tenant string
	leased time.Time     // when the lease was last extended
	noted  chan struct{} // a notice has come
	ended  chan outcome  // has room for all attempts in progress
	hooks  []*hook
	loaded time.Time
	events time.Time // when the last event was read
	flying int       // attempts in progress
}

// hook is an enabled webhook.
type hook struct {
	webhooks.Record
	filter   event.Filter
	keys     []string // that sign
	position events.Position
	waiting  []waiting // by the order of their events

	mu           sync.Mutex // of the rest, which attempts change
	failingSince int64
	disabled     bool // or is being disabled
}

// waiting is a delivery that has not ended.
type waiting struct {
	webhooks.Waiting
	flying bool
}

// outcome is the end of an attempt.
type outcome struct {
	hookID string
	member webhooks.Member
	atMS   int64 // of the next attempt, 0 if the delivery ended
}

func newRun(d *Dispatcher, tenant string, leased time.Time) *run {
	return &run{d: d, tenant: tenant, leased: leased, noted: make(chan struct{}, 1), ended: make(chan outcome, tenantSlots), events: time.Now()}
}

// notify has the run read the webhooks and the deliveries again.
func (r *run) notify() {
	select {
	case r.noted <- struct{}{}:
	default: // it does so already
	}
}

// serve delivers until ctx ends, another replica has the lease, or no webhook is enabled. It returns
// when no attempt is in progress.
func (r *run) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for r.flying > 0 {
			<-r.ended
			r.flying--
		}
		released, done := context.WithTimeout(context.WithoutCancel(ctx), trouble)
		defer done()
		_ = r.d.hooks.Release(released, r.tenant, r.d.token) // or it expires
	}()
	for ctx.Err() == nil {
		mine, err := r.extend(ctx)
		if err == nil && !mine {
			r.d.cfg.Logger.Warn("another replica delivers the webhooks of the tenant now", zap.String("tenant", r.tenant))
			return
		}
		if err == nil {
			err = r.load(ctx)
		}
		if err == nil && len(r.hooks) == 0 {
			return
		}
		more := false
		if err == nil {
			more, err = r.follow(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.d.cfg.Logger.Warn("webhooks cannot be delivered now; they are delivered later", zap.String("tenant", r.tenant), zap.Error(err))
			if time.Since(r.leased) > r.d.cfg.Lease {
				return
			}
			r.pause(ctx, trouble)
			continue
		}
		next := r.launch(ctx)
		if more {
			next = time.Millisecond
		}
		r.pause(ctx, next)
	}
}

// extend extends the lease if a third of it has passed. mine is false if another replica has it.
func (r *run) extend(ctx context.Context) (mine bool, err error) {
	now := time.Now()
	if now.Sub(r.leased) < r.d.cfg.Lease/3 {
		return true, nil
	}
	mine, err = r.d.hooks.Lease(ctx, r.tenant, r.d.token, r.d.cfg.Lease)
	if err == nil && mine {
		r.leased = now
	}
	return mine, err
}

// pause waits for d, a notice, or the end of an attempt.
func (r *run) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.noted:
		r.loaded = time.Time{}
	case o := <-r.ended:
		r.settle(o)
	}
	for { // those that ended in the meantime
		select {
		case o := <-r.ended:
			r.settle(o)
		default:
			return
		}
	}
}

// settle notes the end of an attempt.
func (r *run) settle(o outcome) {
	r.flying--
	for _, h := range r.hooks {
		if h.ID != o.hookID {
			continue
		}
		at := slices.IndexFunc(h.waiting, func(w waiting) bool { return w.Member == o.member })
		switch {
		case at < 0: // it was dropped
		case o.atMS == 0:
			h.waiting = slices.Delete(h.waiting, at, at+1)
		default:
			h.waiting[at].AtMS, h.waiting[at].flying = o.atMS, false
		}
	}
}

// launch starts the attempts that are due and have a slot. It returns how long to wait before the next
// look.
func (r *run) launch(ctx context.Context) time.Duration {
	now := r.d.store.NowMS()
	next := pollIdle
	if time.Since(r.events) < busyTime {
		next = pollBusy
	}
	for _, h := range r.hooks {
		seen := map[string]struct{}{}
		for i := range h.waiting {
			w := &h.waiting[i]
			if h.Ordered {
				subject, _ := w.Member.Parts()
				if _, behind := seen[subject]; behind {
					continue // an earlier event of the subject has not ended
				}
				seen[subject] = struct{}{}
			}
			if w.flying {
				continue
			}
			if w.AtMS > now {
				next = min(next, time.Duration(w.AtMS-now)*time.Millisecond)
				continue
			}
			if len(h.keys) == 0 || !r.start(ctx, h, w) {
				break
			}
		}
	}
	return max(next, time.Millisecond)
}

// start starts an attempt, and reports whether there was a slot for it.
func (r *run) start(ctx context.Context, h *hook, w *waiting) bool {
	h.mu.Lock()
	failing := h.failingSince > 0
	h.mu.Unlock()
	if !r.d.slots.take(r.tenant, h.ID, failing) {
		return false
	}
	w.flying = true
	r.flying++
	member := w.Member
	keys := h.keys // load may replace them
	go func() {
		next := r.attempt(ctx, h, keys, member)
		r.d.slots.leave(r.tenant, h.ID, failing)
		r.ended <- outcome{h.ID, member, next}
	}()
	return true
}
