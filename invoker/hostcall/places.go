package hostcall

import (
	"context"
	"sync"
)

// Bounds of the exchanges and sockets that are open at once. One activation has at most
// network.MaxOpenConnections of them beside its calls in flight. The last fifth of the places
// is a reserve: only a tenant with less than reserveEach takes one of them, so that two tenants
// with many waiting exchanges leave room for others.
const (
	maxPlaces       = 1024
	maxTenantPlaces = 256
	reservedPlaces  = maxPlaces / 5
	reserveEach     = 8
)

// places counts the exchanges that are under way. It is safe for concurrent use. While several
// tenants wait, they take the places that become free in turns.
type places struct {
	mu      sync.Mutex
	taken   int
	tenants map[string]*tenantPlaces // those that hold or await places
	waiting []*tenantPlaces          // those that await places, in the order of their turns
}

// tenantPlaces are the places of a tenant.
type tenantPlaces struct {
	taken int
	queue []chan struct{} // closed when a place is taken for it
}

func newPlaces() *places { return &places{tenants: map[string]*tenantPlaces{}} }

// open reports whether the tenant may take a place. The caller holds mu.
func (p *places) open(of *tenantPlaces) bool {
	switch {
	case p.taken >= maxPlaces, of.taken >= maxTenantPlaces:
		return false
	case p.taken >= maxPlaces-reservedPlaces:
		return of.taken < reserveEach
	}
	return true
}

// take waits for a place. Errors: ctx's.
func (p *places) take(ctx context.Context, tenant string) error {
	p.mu.Lock()
	of := p.tenants[tenant]
	if of == nil {
		of = &tenantPlaces{}
		p.tenants[tenant] = of
	}
	if len(of.queue) == 0 && p.open(of) {
		p.taken++
		of.taken++
		p.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	of.queue = append(of.queue, granted)
	if len(of.queue) == 1 {
		p.waiting = append(p.waiting, of)
	}
	p.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, other := range of.queue {
		if other == granted {
			of.queue = append(of.queue[:n], of.queue[n+1:]...)
			p.tidy(tenant, of)
			return ctx.Err()
		}
	}
	p.free(tenant, of) // the place was taken at the same moment
	return ctx.Err()
}

// leave frees a place that take has taken.
func (p *places) leave(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(tenant, p.tenants[tenant])
}

// free frees a place of the tenant and passes it on: each tenant that waits and may take one is
// asked in turn. The caller holds mu.
func (p *places) free(tenant string, of *tenantPlaces) {
	p.taken--
	of.taken--
	for n := 0; n < len(p.waiting); {
		next := p.waiting[n]
		if !p.open(next) {
			n++
			continue
		}
		p.taken++
		next.taken++
		close(next.queue[0])
		next.queue = next.queue[1:]
		p.waiting = append(p.waiting[:n], p.waiting[n+1:]...)
		if len(next.queue) > 0 {
			p.waiting = append(p.waiting, next)
		}
	}
	p.tidy(tenant, of)
}

// tidy forgets a tenant without places and exchanges that wait. The caller holds mu.
func (p *places) tidy(tenant string, of *tenantPlaces) {
	if len(of.queue) > 0 {
		return
	}
	for n, other := range p.waiting {
		if other == of {
			p.waiting = append(p.waiting[:n], p.waiting[n+1:]...)
			break
		}
	}
	if of.taken == 0 {
		delete(p.tenants, tenant)
	}
}
