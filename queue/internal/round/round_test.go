package round_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/round"
	"github.com/codesous/sous/storage"
)

// due returns n due queues of a tenant.
func due(tenant string, n int) (members []storage.DueMember) {
	for i := range n {
		q := jobstore.Queue{Tenant: tenant, Namespace: "default", Name: fmt.Sprint("q", i)}
		members = append(members, storage.DueMember{Member: q.Member()})
	}
	return members
}

// A tenant whose time is used leaves the others theirs, and its queues are left.
func TestATenantWithoutTimeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		visits := map[string]int{}
		began := time.Now()
		left := round.New(append(due("t_crowd1", 10), due("t_few001", 2)...)).Run(func(q round.Queue, limit time.Duration) bool {
			mu.Lock()
			visits[q.Tenant]++
			mu.Unlock()
			if q.Tenant == "t_crowd1" {
				time.Sleep(limit)
			}
			return true
		})
		if took := time.Since(began); !left || visits["t_crowd1"] != 2 || visits["t_few001"] != 2 || took != 2*round.VisitTime {
			t.Errorf("got visits %v in %s, queues left: %t; want 2 of each tenant in %s, and true", visits, took, left, 2*round.VisitTime)
		}
	})
}

// After a visit that stops the round no other begins. Four tenants are visited at once.
func TestRunStops(t *testing.T) {
	t.Parallel()
	var members []storage.DueMember
	for i := range 20 {
		members = append(members, due(fmt.Sprintf("t_acme%02d", i), 5)...)
	}
	var visits atomic.Int64
	left := round.New(members).Run(func(round.Queue, time.Duration) bool {
		visits.Add(1)
		return false
	})
	if n := visits.Load(); n < 1 || n > 4 || left {
		t.Errorf("got %d visits, queues left: %t; want 1 to 4, and false", n, left)
	}
	if round.New(nil).Run(nil) {
		t.Error("a round without queues has queues left, want none")
	}
}
