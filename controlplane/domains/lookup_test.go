package domains

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/codesous/sous/api"
)

// silent is a DNS that answers when release is closed.
type silent struct{ release chan struct{} }

func (s silent) LookupTXT(context.Context, string) ([]string, error) {
	<-s.release
	return []string{"value"}, nil
}

// TestLookupsAreBounded for a tenant and for the replica: names whose servers do not answer keep the
// places, and further lookups are refused at once. Places come back.
func TestLookupsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dns := silent{make(chan struct{})}
		l := newLookups(dns)
		var waiting sync.WaitGroup
		refused := func(tenant string) bool {
			_, err := l.of(tenant)(t.Context(), "_sous.example.com")
			return api.ErrorCode(err) == api.CodeCapacityLimit
		}
		hold := func(tenant string, n int) {
			for range n {
				waiting.Go(func() {
					if refused(tenant) {
						t.Errorf("a lookup of %s was refused, want it within the bounds", tenant)
					}
				})
			}
			synctest.Wait()
		}
		hold("t_a", maxLookupsOfTenant)
		if !refused("t_a") {
			t.Errorf("lookup %d of a tenant was not refused, want it to be", maxLookupsOfTenant+1)
		}
		for i := 1; i < maxLookups/maxLookupsOfTenant; i++ {
			hold(fmt.Sprint("t_b", i), maxLookupsOfTenant)
		}
		if !refused("t_c") {
			t.Errorf("lookup %d of a replica was not refused, want it to be", maxLookups+1)
		}
		close(dns.release)
		waiting.Wait()
		if refused("t_a") || l.all != 0 || len(l.by) != 0 {
			t.Errorf("after the lookups: %d in progress, %v, want none, and a further one answered", l.all, l.by)
		}
	})
}
