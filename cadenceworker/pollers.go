package cadenceworker

import (
	"fmt"

	"github.com/codesous/sous/api"
)

// maxTenantPollers is the number of polls that a replica keeps open for all bindings of a tenant
// together; each poll costs four goroutines. A tenant with more bindings than that has one poll for
// each. Workers that drain are not counted: their polls end within pollGrace.
const maxTenantPollers = 256

// share is the number of pollers that each binding of a tenant may have at most.
type share struct {
	pollers int
	setMS   int64 // when it became this number
}

// pollerShare returns the largest share with which bindings that ask for the wanted numbers have at
// most maxTenantPollers together, but at least 1. The order of the bindings does not matter:
//
//	64 64 64 64     share 64, together 256
//	64 64 64 64 8   share 62, together 256
//	64 64 64 64 64  share 51, together 255
func pollerShare(wanted []int) int {
	for most := api.MaxActivityPollers; most > 1; most-- {
		sum := 0
		for _, n := range wanted {
			sum += min(n, most)
		}
		if sum <= maxTenantPollers {
			return most
		}
	}
	return 1
}

// apply applies the latest records of the bindings of some tenants, with the shares of pollers that
// follow from them. A lower share applies immediately, a higher one only readEvery after the last
// change of the share: a binding that comes and goes repeatedly must not replace the workers of all
// others each time.
func (s *Supervisor) apply(tenants map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := map[string][]*binding{}
	wanted := map[string][]int{}
	for path, b := range s.bound {
		if !tenants[path.Tenant] {
			continue
		}
		of[path.Tenant] = append(of[path.Tenant], b)
		if stored := b.latest.Load(); stored.Enabled {
			wanted[path.Tenant] = append(wanted[path.Tenant], stored.Pollers.Activity)
		}
	}
	now := s.store.NowMS()
	for tenant := range tenants {
		if len(of[tenant]) == 0 {
			delete(s.shares, tenant)
			continue
		}
		due, held := pollerShare(wanted[tenant]), s.shares[tenant]
		if held.pollers == 0 || due < held.pollers || due > held.pollers && now-held.setMS >= readEvery.Milliseconds() {
			s.shares[tenant] = share{due, now}
		}
		for _, b := range of[tenant] {
			b.apply(s.shares[tenant].pollers)
		}
	}
}

// fewerPollers describes a worker with fewer pollers than its binding asks for. It returns "" for
// any other.
func (w *activityWorker) fewerPollers() string {
	if w.pollers >= w.stored.Pollers.Activity {
		return ""
	}
	return fmt.Sprintf("polls with %d of %d pollers: the bindings of a tenant share %d pollers on each replica",
		w.pollers, w.stored.Pollers.Activity, maxTenantPollers)
}
