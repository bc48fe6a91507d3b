package feed

import (
	"sync"
	"time"
)

// The kinds of places.
const (
	kindQueue    = "queue"
	kindFunction = "function"
)

// place is a queue or a function.
type place struct{ tenant, namespace, name, kind string }

const (
	// firstVisit is the time from a notice of a place to its visit, in which more may change.
	firstVisit = time.Second
	// maxVisit is the time between two visits after which a place is left to the passes. Each visit
	// that finds nothing doubles the time.
	maxVisit = 10 * time.Minute
	// maxHot bounds the places that are visited. Further ones are left to the passes.
	maxHot = 10_000
	// hotTenant is how long the log of a tenant is read often after a notice or an event.
	hotTenant = 10 * time.Second
)

// hot are the places and the tenants that changed a moment ago.
type hot struct {
	wake chan struct{}

	mu      sync.Mutex
	places  map[place]*visit
	tenants map[string]time.Time // until when
	changed time.Time            // the last change
}

// visit is when a place is visited next.
type visit struct {
	due   time.Time
	every time.Duration
}

func newHot() *hot {
	return &hot{wake: make(chan struct{}, 1), places: map[place]*visit{}, tenants: map[string]time.Time{}}
}

// notice notes that a place has changed.
func (h *hot) notice(p place, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(p, now)
	if h.tenant(p.tenant, now) {
		h.ring()
	}
}

// note has the place visited soon. The caller holds the lock.
func (h *hot) note(p place, now time.Time) {
	h.changed = now
	v := h.places[p]
	switch {
	case v == nil && len(h.places) < maxHot:
		h.places[p] = &visit{due: now.Add(firstVisit), every: firstVisit}
	case v != nil && v.due.After(now.Add(2*firstVisit)):
		v.due, v.every = now.Add(firstVisit), firstVisit
	}
}

// tenant has the log of a tenant read often, and reports whether it was not. The caller holds the
// lock.
func (h *hot) tenant(name string, now time.Time) bool {
	known := h.tenants[name].After(now)
	h.tenants[name] = now.Add(hotTenant)
	return !known
}

// events notes events of tenants, and the places that they name.
func (h *hot) events(tenants []string, places []place, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range tenants {
		h.tenant(t, now)
	}
	for _, p := range places {
		h.note(p, now)
	}
}

// visited notes the end of a visit of a place.
func (h *hot) visited(p place, found bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.places[p]
	if v == nil {
		return
	}
	if found {
		h.changed = now
		v.every = firstVisit
	}
	v.every *= 2
	if v.every > maxVisit {
		delete(h.places, p)
		return
	}
	v.due = now.Add(v.every)
}

// due returns the place whose visit is due for the longest time, and when the next visit is due if none
// is.
func (h *hot) due(now time.Time) (p place, ok bool, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, v := range h.places {
		if next.IsZero() || v.due.Before(next) {
			p, next = at, v.due
		}
	}
	return p, !next.IsZero() && !next.After(now), next
}

// reading returns the tenants whose logs are read often.
func (h *hot) reading(now time.Time) (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, until := range h.tenants {
		if until.After(now) {
			names = append(names, name)
		} else {
			delete(h.tenants, name)
		}
	}
	return names
}

// busy reports whether something changed within the last seconds.
func (h *hot) busy(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(h.changed) < hotTenant
}

// change notes a change without a place.
func (h *hot) change(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = now
}

// ring wakes the session.
func (h *hot) ring() {
	select {
	case h.wake <- struct{}{}:
	default: // it is awake
	}
}
