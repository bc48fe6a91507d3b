// Package admission bounds what one caller may hold of a replica at the same time: bytes of
// requests and answers (Budget), requests that wait (Waits), and requests in progress
// (Limiter). Addresses (address.go) finds the client of a request behind proxies.
//
// Each bound has a share that one tenant or one address may take. The rest is for callers that
// hold little, so that no caller can use all of a replica by itself. The package knows nothing
// of routes: controlplane/rest asks it.
package admission

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
)

// The parts of a Budget.
const (
	// reserveParts: a fourth of the budget is reserved for callers that hold little.
	reserveParts = 4
	// littleParts: a caller that holds at most a sixteenth of the budget holds little.
	littleParts = 16
	// addressParts: one address may hold half of the budget. It is less than a tenant's share,
	// so that an anonymous caller of a public function leaves room for the tenant's others.
	addressParts = 2
)

// MinBudget is the smallest budget: a draft of 24 MiB must fit into the share of an address.
const MinBudget = 64 << 20

// fullRetry is the Retry-After of a caller for whom the budget has no room. Bytes are held
// while bodies arrive and answers are read, which takes seconds.
const fullRetry = 2 * time.Second

// Budget bounds the bytes of request bodies and answers in the memory of the process. A tenant
// may hold three quarters of them, an address half. The last quarter is only for tenants and
// addresses that hold at most a sixteenth. The budget counts buffers: decoded forms of a
// body can take several times as much. It is safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64 // written under mu; Room reads it alone

	mu        sync.Mutex
	tenants   map[string]int64
	addresses map[netip.Addr]int64
}

// NewBudget returns a budget of limit bytes, which must be positive.
func NewBudget(limit int64) *Budget {
	return &Budget{limit: limit, tenants: map[string]int64{}, addresses: map[netip.Addr]int64{}}
}

// Limit returns the bytes of the budget.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns the bytes that are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Hold is the part of a Budget that one request holds. The zero value, of no budget, may grow
// without bound. One goroutine uses it.
type Hold struct {
	// Budget is that of the process, nil for none.
	Budget *Budget
	// Remote is the address of the client, as in http.Request.RemoteAddr.
	Remote string
	// Tenant is the tenant that the request is for, "" if it is not known. Set it with For.
	Tenant string

	address netip.Addr // of Remote, once it is needed
	bytes   int64
}

// For makes tenant answerable for what h takes from now on. h must hold nothing.
func (h *Hold) For(tenant string) { h.Tenant = tenant }

// Room returns an error if the caller could not take a further byte: CodeCapacityLimit if its
// own share is used up; CodeOverloaded if the budget is used up, or if only the reserve is left
// and the caller holds more than a sixteenth.
func (h *Hold) Room() error {
	b := h.Budget
	if b == nil || b.used.Load() < b.limit/addressParts {
		return nil // no share can be used up
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.refusal(1)
}

// Grow takes n more bytes. Errors: those of Room; nothing is taken then.
func (h *Hold) Grow(n int64) error {
	if h.Budget == nil || n <= 0 {
		return nil
	}
	h.Budget.mu.Lock()
	defer h.Budget.mu.Unlock()
	if err := h.refusal(n); err != nil {
		return err
	}
	h.add(n)
	return nil
}

// Force takes n more bytes even if there is no room: they are in memory already.
func (h *Hold) Force(n int64) {
	if h.Budget == nil {
		return
	}
	h.Budget.mu.Lock()
	defer h.Budget.mu.Unlock()
	h.add(n)
}

// Shrink returns n bytes, or all that h holds if that is less.
func (h *Hold) Shrink(n int64) {
	n = min(n, h.bytes)
	if n <= 0 {
		return
	}
	h.Budget.mu.Lock()
	defer h.Budget.mu.Unlock()
	h.add(-n)
}

// Release returns all bytes. It may be called repeatedly.
func (h *Hold) Release() { h.Shrink(h.bytes) }

// client returns the address that is answerable.
func (h *Hold) client() netip.Addr {
	if !h.address.IsValid() {
		h.address = AddressOf(h.Remote)
	}
	return h.address
}

// refusal returns the error with which n more bytes are refused. The caller holds the budget's
// mutex.
func (h *Hold) refusal(n int64) error {
	b := h.Budget
	used, tenant, address := b.used.Load()+n, b.tenants[h.Tenant]+n, b.addresses[h.client()]+n
	if h.Tenant == "" {
		tenant = 0
	}
	reserve := b.limit / reserveParts
	switch {
	case used > b.limit:
		return full()
	case tenant > b.limit-reserve:
		return shareUsed("the tenant")
	case address > b.limit/addressParts:
		return shareUsed("the address of the client")
	case used > b.limit-reserve && max(tenant, address) > b.limit/littleParts:
		return full()
	}
	return nil
}

func full() error {
	err := api.Errorf(api.CodeOverloaded, "the memory of this replica for requests and answers is used up")
	err.RetryAfter = fullRetry
	return err
}

func shareUsed(owner string) error {
	err := api.Errorf(api.CodeCapacityLimit, "%s has used up its share of the memory of this replica for requests and answers", owner)
	err.RetryAfter = fullRetry
	return err
}

// add changes the counts by n. The caller holds the budget's mutex.
func (h *Hold) add(n int64) {
	b := h.Budget
	h.bytes += n
	b.used.Add(n)
	if h.Tenant != "" {
		change(b.tenants, h.Tenant, n)
	}
	change(b.addresses, h.client(), n)
}

// change adds n to the count of key, and forgets the key at 0.
func change[K comparable, N int | int64](counts map[K]N, key K, n N) {
	now := counts[key] + n
	if now == 0 {
		delete(counts, key)
		return
	}
	counts[key] = now
}
