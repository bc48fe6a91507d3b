package webhooks

import "sync"

// The bounds of attempts in progress. A webhook whose last attempt failed has one slot, and all such
// webhooks have half of those of the tenant and of the replica, so that receivers that hang leave room
// for others.
const (
	hookSlots    = 4
	tenantSlots  = 16
	replicaSlots = 512
)

// slots counts the attempts in progress. It is safe for concurrent use.
type slots struct {
	mu             sync.Mutex
	hooks          map[string]int // by id
	tenants        map[string]*tenantUse
	total, failing int
}

// tenantUse counts the requests of a tenant in progress.
type tenantUse struct{ total, failing int }

func newSlots() *slots { return &slots{hooks: map[string]int{}, tenants: map[string]*tenantUse{}} }

// take takes a slot for an attempt of a webhook, and reports whether there was one. The caller
// returns it by leave, with the same arguments.
func (s *slots) take(tenant, hook string, failing bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := s.tenants[tenant]
	if use == nil {
		use = &tenantUse{}
	}
	most := hookSlots
	if failing {
		most = 1
	}
	if s.hooks[hook] >= most || use.total >= tenantSlots || s.total >= replicaSlots ||
		failing && (use.failing >= tenantSlots/2 || s.failing >= replicaSlots/2) {
		return false
	}
	s.tenants[tenant] = use
	s.hooks[hook]++
	use.total++
	s.total++
	if failing {
		use.failing++
		s.failing++
	}
	return true
}

// leave returns a slot.
func (s *slots) leave(tenant, hook string, failing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := s.tenants[tenant]
	s.hooks[hook]--
	use.total--
	s.total--
	if failing {
		use.failing--
		s.failing--
	}
	if s.hooks[hook] == 0 {
		delete(s.hooks, hook)
	}
	if use.total == 0 {
		delete(s.tenants, tenant)
	}
}
