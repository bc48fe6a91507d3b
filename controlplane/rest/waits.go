package rest

import "sync"

// DefaultWaits is the default limit of requests that wait at once.
const DefaultWaits = 1024

// Waits limits the requests that wait: fetches of jobs, followed logs and feeds. Each holds a
// connection, polls the store, and wakes at every notice. One tenant may have at most
// half of them (at least one), so that it cannot keep the others from waiting. It is safe
// for concurrent use.
type Waits struct {
	limit int

	mu       sync.Mutex
	all      int
	byTenant map[string]int
}

// NewWaits returns a limit of so many requests (0: DefaultWaits).
func NewWaits(limit int) *Waits {
	if limit <= 0 {
		limit = DefaultWaits
	}
	return &Waits{limit: limit, byTenant: map[string]int{}}
}

// Enter admits a request of tenant that waits, until release is called; ok is false
// where the limit is reached. release is never nil, and must be called exactly once: a
// second call would free the place of another request. Enter itself never waits.
func (w *Waits) Enter(tenant string) (release func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= w.limit || w.byTenant[tenant] >= max(1, w.limit/2) {
		return func() {}, false
	}
	w.all++
	w.byTenant[tenant]++
	return func() { w.release(tenant) }, true
}

func (w *Waits) release(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	w.byTenant[tenant]--
	if w.byTenant[tenant] == 0 {
		delete(w.byTenant, tenant)
	}
}
