package feed

import (
	"container/heap"
	"slices"
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

// listedFor is how long the list of the tenants whose logs are read often is used.
const listedFor = 100 * time.Millisecond

// hot are the places and the tenants that changed a moment ago.
type hot struct {
	wake chan struct{}

	mu      sync.Mutex
	places  map[place]*visit
	queue   queue                // of places
	tenants map[string]time.Time // until when
	list    []string             // those of tenants that are not over, as of listed
	listed  time.Time
	changed time.Time // the last change
}

// visit is when a place is visited next.
type visit struct {
	place place
	due   time.Time
	every time.Duration
	at    int // in the queue
}

// queue is a heap of visits, that which is due first at its top: enqueues wait for the lock of hot, so
// nothing may walk over all places under it.
type queue []*visit

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(v any) {
	added, _ := v.(*visit)
	added.at = len(*q)
	*q = append(*q, added)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	return last
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
		v = &visit{place: p, due: now.Add(firstVisit), every: firstVisit}
		h.places[p] = v
		heap.Push(&h.queue, v)
	case v != nil && v.due.After(now.Add(2*firstVisit)):
		v.due, v.every = now.Add(firstVisit), firstVisit
		heap.Fix(&h.queue, v.at)
	}
}

// tenant has the log of a tenant read often, and reports whether it was not. The caller holds the
// lock.
func (h *hot) tenant(name string, now time.Time) bool {
	known := h.tenants[name].After(now)
	h.tenants[name] = now.Add(hotTenant)
	if !known {
		h.listed = time.Time{}
	}
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
		heap.Remove(&h.queue, v.at)
		return
	}
	v.due = now.Add(v.every)
	heap.Fix(&h.queue, v.at)
}

// due returns the place whose visit is due for the longest time, and when the next visit is due if none
// is.
func (h *hot) due(now time.Time) (p place, ok bool, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return place{}, false, time.Time{}
	}
	first := h.queue[0]
	return first.place, !first.due.After(now), first.due
}

// reading returns the tenants whose logs are read often. The caller may change the list.
func (h *hot) reading(now time.Time) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.listed) >= listedFor {
		h.list, h.listed = nil, now
		for name, until := range h.tenants {
			if until.After(now) {
				h.list = append(h.list, name)
			} else {
				delete(h.tenants, name)
			}
		}
	}
	return slices.Clone(h.list)
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
