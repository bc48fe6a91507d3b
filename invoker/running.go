package invoker

import (
	"context"
	"sync"
)

type activationKey struct{ tenant, id string }

// running is the registry of the activations of this replica, by which Cancel and Close stop
// them. A cancel of an activation elsewhere arrives as a notice.
type running struct {
	mu    sync.Mutex
	stop  map[activationKey]*context.CancelFunc // of the latest run, where an older one has not ended yet
	ended bool                                  // every activation added from now on is stopped
}

func newRunning() *running {
	return &running{stop: make(map[activationKey]*context.CancelFunc)}
}

// add registers an activation; remove takes it out again.
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

// cancel stops an activation if it runs on this replica.
func (r *running) cancel(tenant, id string) {
	r.mu.Lock()
	stop := r.stop[activationKey{tenant, id}]
	r.mu.Unlock()
	if stop != nil {
		(*stop)()
	}
}

// cancelAll stops all activations, and each that is added later.
func (r *running) cancelAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, stop := range r.stop {
		(*stop)()
	}
}
