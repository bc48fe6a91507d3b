package documents

import (
	"math"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// rates bounds how many operations each tenant does a second, on this replica. What a
// tenant leaves of a second it may use in the next.
type rates struct {
	each  float64 // a second; 0: any
	clock func() time.Time

	mu      sync.Mutex
	tenants map[string]*bucket
	swept   time.Time
}

// bucket is what a tenant may do at once.
type bucket struct {
	left float64
	at   time.Time
}

// idleBucket is how long a tenant that does nothing is remembered; its bucket is full then.
const idleBucket = time.Minute

// take does one operation of tenant. CodeRateLimited, with when to try again.
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
		err := api.Errorf(api.CodeRateLimited, "the tenant does more than %g operations a second", r.each)
		err.RetryAfter = time.Duration((1 - b.left) / r.each * float64(time.Second))
		return err
	}
	b.left--
	return nil
}

// sweep forgets tenants whose buckets are full.
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
