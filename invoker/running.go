package invoker

import (
	"context"
	"sync"
)

type activationKey struct{ tenant, id string }

// running knows the activations in hand, so that a cancel can reach them.
type running struct {
	mu    sync.Mutex
	stop  map[activationKey]*context.CancelFunc // of the latest run, where a stale one is still in hand
	ended bool                                  // whoever comes is stopped
}

func newRunning() *running {
	return &running{stop: make(map[activationKey]*context.CancelFunc)}
}

// add enters an activation; the function that it gives takes it out again.
func (r *running) add(tenant, id string, stop context.CancelFunc) (remove func()) {
	key := activationKey{tenant, id}
	r.mu.Lock()
	mine := &stop
	r.stop[key] = mine
	ended := r.ended
	r.mu.Unlock()
	if ended {
		stop()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.stop[key] == mine {
			delete(r.stop, key)
		}
	}
}

// cancel stops an activation if it is in hand here.
func (r *running) cancel(tenant, id string) {
	r.mu.Lock()
	stop := r.stop[activationKey{tenant, id}]
	r.mu.Unlock()
	if stop != nil {
		(*stop)()
	}
}

// cancelAll stops what is in hand, and what was on its way here.
func (r *running) cancelAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, stop := range r.stop {
		(*stop)()
	}
}
