package admission

import (
	"net/netip"
	"sync"

	"github.com/codesous/sous/api"
)

// DefaultWaits is the default limit of requests that wait at once.
const DefaultWaits = 1024

// Waits limits the requests that wait: fetches of jobs, followed logs and feeds. Each holds a
// connection for long. One tenant may have half of them, one key three quarters of a
// tenant's share, and one address three quarters, but at least one each, so that no key keeps its tenant from
// waiting, and no tenant or address the others. It is safe for concurrent use.
type Waits struct {
	limit int

	mu        sync.Mutex
	all       int
	tenants   map[string]int
	keys      map[keyOf]int
	addresses map[netip.Addr]int
}

// keyOf is an API key of a tenant.
type keyOf struct{ tenant, key string }

// Waiter names the caller of a request that waits.
type Waiter struct {
	Tenant  string
	Key     string // the id of the API key; "" for callers that cannot be told apart
	Address netip.Addr
}

// NewWaits returns a limit of so many requests (0: DefaultWaits).
func NewWaits(limit int) *Waits {
	if limit <= 0 {
		limit = DefaultWaits
	}
	return &Waits{limit: limit, tenants: map[string]int{}, keys: map[keyOf]int{}, addresses: map[netip.Addr]int{}}
}

// Enter admits a request that waits, until release is called. The error names the limit that
// is reached: CodeCapacityLimit. release is never nil, and must be called exactly once: a
// second call would free the place of another request. Enter itself never waits.
func (w *Waits) Enter(by Waiter) (release func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tenantShare, key := max(1, w.limit/2), keyOf{by.Tenant, by.Key}
	keyShare := max(1, tenantShare*3/4)
	var reached string
	switch {
	case w.all >= w.limit:
		reached = "this replica"
	case w.tenants[by.Tenant] >= tenantShare:
		reached = "the tenant"
	case by.Key != "" && w.keys[key] >= keyShare:
		reached = "the API key"
	case w.addresses[by.Address] >= max(1, w.limit*3/4):
		reached = "the address of the client"
	}
	if reached != "" {
		return func() {}, api.Errorf(api.CodeCapacityLimit, "too many requests of %s follow tasks, logs or changes, or wait for jobs", reached)
	}
	w.count(by, 1)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.count(by, -1)
	}, nil
}

// count changes the counts by n. The caller holds mu.
func (w *Waits) count(by Waiter, n int) {
	w.all += n
	change(w.tenants, by.Tenant, n)
	if by.Key != "" {
		change(w.keys, keyOf{by.Tenant, by.Key}, n)
	}
	change(w.addresses, by.Address, n)
}
