package controlplane

import (
	"sync"

	"github.com/codesous/sous/api"
)

// DefaultWaits is how many fetches wait at once where nothing is said.
const DefaultWaits = 1024

// waits bounds the fetches that wait: each holds a connection, polls the store, and
// is woken by every job that comes. A tenant has at most half of them.
type waits struct {
	most int

	mu       sync.Mutex
	all      int
	byTenant map[string]int
}

func newWaits(most int) *waits { return &waits{most: most, byTenant: map[string]int{}} }

// enter takes a place for a fetch of tenant, if there is one, until leave is called.
func (w *waits) enter(tenant string) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= w.most || w.byTenant[tenant] >= max(1, w.most/2) {
		return func() {}, false
	}
	w.all++
	w.byTenant[tenant]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all--
		if w.byTenant[tenant]--; w.byTenant[tenant] == 0 {
			delete(w.byTenant, tenant)
		}
	}, true
}

func tooManyWait() error {
	return api.Errorf(api.CodeCapacityLimit, "there is no job, and too many fetches wait for one already")
}
