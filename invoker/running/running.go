// Package running has the registry of the activations that run on a replica.
package running

import (
	"context"
	"sync"
)

// activationKey names an activation; ids are unique within a tenant only.
type activationKey struct{ tenant, id string }

// Registry is the registry of the activations of this replica, by which they are stopped when
// they are cancelled and when the replica closes. A cancel of an activation elsewhere arrives as a notice
// (storage.ChangeCancel).
//
// An id is registered twice when an invocation that waited for a slot begins to run, and
// when an attempt of a job begins while the run of an expired lease still ends. The later
// one replaces the earlier one, and the removal of the earlier one leaves the later one in
// place: that is why the values are pointers, which can be compared.
type Registry struct {
	mu    sync.Mutex
	stop  map[activationKey]*context.CancelFunc // of the latest run, where an older one has not ended yet
	ended bool                                  // every activation added from now on is stopped
}

// New returns an empty registry.
func New() *Registry {
	return &Registry{stop: make(map[activationKey]*context.CancelFunc)}
}

// Add registers an activation under the function that stops it; remove takes it out again.
// After CancelAll, stop is called before add returns.
func (r *Registry) Add(tenant, id string, stop context.CancelFunc) (remove func()) {
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

// Cancel stops an activation if it runs on this replica.
func (r *Registry) Cancel(tenant, id string) {
	r.mu.Lock()
	stop := r.stop[activationKey{tenant, id}]
	r.mu.Unlock()
	if stop != nil {
		(*stop)()
	}
}

// CancelAll stops all activations, and each that is added later. stop functions must not
// call the registry: they run under its mutex.
func (r *Registry) CancelAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, stop := range r.stop {
		(*stop)()
	}
}
