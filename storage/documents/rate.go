package documents

import (
	"math"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// rates limits the operations of each tenant a second, on this replica: with three replicas a
// tenant gets up to three times the rate. It is a token bucket for each tenant that holds
// one second of operations, at least one.
type rates struct {
	each  float64 // operations a second; 0 is no limit
	clock func() time.Time

	mu      sync.Mutex
	tenants map[string]*bucket
	swept   time.Time
}

// bucket is the number of operations that a tenant may make without waiting.
type bucket struct {
	left float64
	at   time.Time
}

// idleBucket is how long the bucket of an idle tenant is kept; it is full by then.
const idleBucket = time.Minute

// take counts one operation of tenant. CodeRateLimited, with the time after which to try
// again.
func (r *rates) take(tenant string) error {
	if r.each <= 0 {
		return nil
	}
	now := r.clock()
	most := math.Max(1, r.each)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	b := r.tenants[tenant]
	if b == nil {
		b = &bucket{left: most, at: now}
		r.tenants[tenant] = b
	}
	b.left = math.Min(most, b.left+r.each*math.Max(0, now.Sub(b.at).Seconds()))
	b.at = now
	if b.left < 1 {
		err := api.Errorf(api.CodeRateLimited, "limit of %g operations a second reached by the tenant", r.each)
		err.RetryAfter = time.Duration((1 - b.left) / r.each * float64(time.Second))
		return err
	}
	b.left--
	return nil
}

// sweep removes the buckets that are full.
func (r *rates) sweep(now time.Time) {
	idle := max(idleBucket, time.Duration(2*float64(time.Second)/r.each))
	if now.Sub(r.swept) < idle {
		return
	}
	r.swept = now
	for tenant, b := range r.tenants {
		if now.Sub(b.at) >= idle {
			delete(r.tenants, tenant)
		}
	}
}
