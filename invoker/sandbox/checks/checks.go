// Package checks admits the checks of bundles that are to be published, by turns of the
// tenants.
package checks

import (
	"context"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// Limits of the checks of a process. Compiling and verifying take milliseconds for most
// bundles, and many seconds for those that are made to be slow.
// The places are therefore shared by what tenants have taken, so that a tenant with a quick
// bundle does not wait for the slow ones of others:
//
//   - A tenant has one check at a time. Its others wait, up to maxWaitingChecks.
//   - A check is slow if it runs for longer than slowCheck, or if the checks of its tenant
//     have exceeded slowCheck by slowTenant lately. No slow check begins while another one
//     runs. Any number of quick checks does not make a tenant slow: on a busy machine a tenant
//     that publishes often would take the place of the slow ones, and wait for them.
//   - A check that is not slow begins if fewer than checksAtOnce such checks run, and at most
//     slowChecks+checksAtOnce of both kinds.
//   - Of the checks that may begin, the one whose tenant has used the least is first.
//
// So slow bundles of any number of tenants take one place, once their tenants are known. Two
// tenants that begin to send them delay a third by slowCheck.
const (
	checksAtOnce     = 2
	slowChecks       = 1
	slowCheck        = time.Second
	slowTenant       = 10 * time.Second
	checkMemory      = time.Minute // after which a tenant's use counts half
	maxWaitingChecks = 32
	negligibleUse    = time.Microsecond // counts as none; quick checks of a tenant still add up
	forgottenUse     = 100 * time.Millisecond
	keptUses         = 256 // above which uses less than forgottenUse are dropped
)

// Queue admits the checks of a process, by turns of the tenants. It is safe for concurrent use.
type Queue struct {
	now func() time.Time

	mu      sync.Mutex
	running map[string]*check // by tenant
	waiting []*check          // in the order of their arrival
	used    map[string]checkUse
}

// check is one check that waits or runs. started is closed when it may run.
type check struct {
	tenant  string
	started chan struct{}
	began   time.Time
}

// checkUse is the time that the checks of a tenant took up to at, and the part of it by which
// they exceeded slowCheck. A part of both is forgotten.
type checkUse struct {
	took, slow time.Duration
	at         time.Time
}

// New makes a queue without checks.
func New() *Queue {
	return &Queue{now: time.Now, running: map[string]*check{}, used: map[string]checkUse{}}
}

// Enter waits until tenant may check a bundle. The caller must call release once. Errors:
// CodeCapacityLimit if maxWaitingChecks of the tenant wait already, ctx's, CodeShuttingDown
// when life ends.
func (q *Queue) Enter(ctx, life context.Context, tenant string) (release func(), err error) {
	c := &check{tenant: tenant, started: make(chan struct{})}
	q.mu.Lock()
	waiting := 0
	for _, other := range q.waiting {
		if other.tenant == tenant {
			waiting++
		}
	}
	if waiting >= maxWaitingChecks {
		q.mu.Unlock()
		full := api.Errorf(api.CodeCapacityLimit, "%d publications of the tenant wait to be compiled; publish again when some have ended", waiting)
		full.RetryAfter = time.Second
		return nil, full
	}
	q.waiting = append(q.waiting, c)
	q.grant()
	q.mu.Unlock()
	select {
	case <-c.started:
	case <-ctx.Done():
		q.leave(c)
		return nil, ctx.Err()
	case <-life.Done():
		q.leave(c)
		return nil, api.Errorf(api.CodeShuttingDown, "this server is shutting down")
	}
	// A check that has become slow makes room for one that is not.
	slow := time.AfterFunc(slowCheck, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.grant()
	})
	return func() {
		slow.Stop()
		q.leave(c)
	}, nil
}

// leave ends a check that runs or waits.
func (q *Queue) leave(c *check) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[c.tenant] == c {
		q.used[c.tenant] = q.use(c.tenant)
		delete(q.running, c.tenant)
		q.forget()
	} else {
		for i, other := range q.waiting {
			if other == c {
				q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
				break
			}
		}
	}
	q.grant()
}

// grant begins the checks that may run. The caller holds q.mu.
func (q *Queue) grant() {
	for {
		first, least := -1, time.Duration(0)
		considered := map[string]bool{} // one check a tenant, its oldest
		for i, c := range q.waiting {
			if considered[c.tenant] {
				continue
			}
			considered[c.tenant] = true
			if use := q.use(c.tenant); q.mayBegin(c.tenant, use.slow) && (first < 0 || use.took < least) {
				first, least = i, use.took
			}
		}
		if first < 0 {
			return
		}
		c := q.waiting[first]
		q.waiting = append(q.waiting[:first], q.waiting[first+1:]...)
		c.began = q.now()
		q.running[c.tenant] = c
		close(c.started)
	}
}

// mayBegin reports whether a check of tenant may begin now. tooSlow is the time by which its
// checks have exceeded slowCheck lately. The caller holds q.mu.
func (q *Queue) mayBegin(tenant string, tooSlow time.Duration) bool {
	if q.running[tenant] != nil || len(q.running) >= checksAtOnce+slowChecks {
		return false
	}
	slow := 0
	for other, c := range q.running {
		if q.now().Sub(c.began) >= slowCheck || q.use(other).slow >= slowTenant {
			slow++
		}
	}
	if tooSlow >= slowTenant {
		return slow < slowChecks
	}
	return len(q.running)-slow < checksAtOnce
}

// use returns what the checks of tenant have used lately, with the one that runs. The caller
// holds q.mu.
func (q *Queue) use(tenant string) checkUse {
	u, now := q.used[tenant], q.now()
	age := now.Sub(u.at)
	u.took, u.slow, u.at = faded(u.took, age), faded(u.slow, age), now
	if c := q.running[tenant]; c != nil {
		took := now.Sub(c.began)
		u.took += took
		u.slow += max(0, took-slowCheck)
	}
	return u
}

// faded returns the part of a use that still counts after age, linear within each half-life.
func faded(use, age time.Duration) time.Duration {
	for ; use > 0 && age > 0; age -= checkMemory {
		use -= time.Duration(float64(use) / 2 * min(1, float64(age)/float64(checkMemory)))
		if use < negligibleUse {
			return 0
		}
	}
	return use
}

// forget drops tenants whose use has faded, where the map has grown. The caller holds q.mu.
func (q *Queue) forget() {
	if len(q.used) <= keptUses {
		return
	}
	for tenant := range q.used {
		if q.use(tenant).took < forgottenUse {
			delete(q.used, tenant)
		}
	}
}

// Counts returns how many checks run and how many wait.
func (q *Queue) Counts() (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.running), len(q.waiting)
}
