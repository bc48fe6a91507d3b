package search

import (
	"context"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
)

const (
	// maxSearches is how many searches read at a time, and maxPerTenant how many of one tenant.
	maxSearches  = mirror.MaxReaders
	maxPerTenant = 3
	// maxTurnWait is how long a search waits for its turn.
	maxTurnWait = time.Second
)

// turns bounds the searches that read at a time, and those of each tenant: a tenant with many slow
// searches leaves connections to the others.
type turns struct {
	all chan struct{}

	mu      sync.Mutex
	tenants map[string]*share
}

// share has the turns of a tenant that has any.
type share struct {
	slots chan struct{}
	users int // that have a slot or wait for one
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxSearches), tenants: map[string]*share{}}
}

// take waits for a turn of a tenant, which the caller ends with done. Errors: CodeCapacityLimit, those
// of ctx.
func (t *turns) take(ctx context.Context, tenant string) (done func(), err error) {
	timer := time.NewTimer(maxTurnWait)
	defer timer.Stop()
	own := t.join(tenant)
	if err := wait(ctx, own.slots, timer.C, "this tenant has %d searches in progress on this replica, which is its limit; try again when one has ended", maxPerTenant); err != nil {
		t.leave(tenant, own)
		return nil, err
	}
	if err := wait(ctx, t.all, timer.C, "%d searches are in progress on this replica, which is its limit; try again soon", maxSearches); err != nil {
		<-own.slots
		t.leave(tenant, own)
		return nil, err
	}
	return func() {
		<-t.all
		<-own.slots
		t.leave(tenant, own)
	}, nil
}

// wait takes a slot.
func wait(ctx context.Context, slots chan<- struct{}, late <-chan time.Time, refusal string, limit int) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		return api.Errorf(api.CodeCapacityLimit, refusal, limit)
	}
}

func (t *turns) join(tenant string) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tenants[tenant]
	if own == nil {
		own = &share{slots: make(chan struct{}, maxPerTenant)}
		t.tenants[tenant] = own
	}
	own.users++
	return own
}

func (t *turns) leave(tenant string, own *share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.users--
	if own.users == 0 {
		delete(t.tenants, tenant)
	}
}
