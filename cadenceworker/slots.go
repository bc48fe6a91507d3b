package cadenceworker

import (
	"context"
	"sync"
)

// slots bounds the tasks of a binding on this replica. The limit may change at any
// time; a slot that is taken stays taken. A poll takes a slot too and may still return a
// task after the limit was lowered. So a task also has to begin, which it can only while
// fewer tasks than the limit have begun. With a limit of 2 that is lowered to 1:
//
//	event                       limit  used  begun
//	two polls are open          2      2     0
//	the limit is lowered        1      2     0
//	both polls return a task    1      2     1      the second task waits, with heartbeats
//	the first task ends         1      1     1      the second begins
//	a poller wants a slot       1      1     1      it waits
//
// The zero limit admits none. Waiting calls are woken together and try again; which of them
// succeeds is not defined.
type slots struct {
	mu          sync.Mutex
	limit, used int
	begun       int           // tasks that have begun; each ends before it releases its slot
	changed     chan struct{} // closed when a slot may have become free
}

func newSlots() *slots { return &slots{changed: make(chan struct{})} }

// acquire waits for a slot and takes it. It returns the error of ctx if that ends first.
func (p *slots) acquire(ctx context.Context) error { return p.increment(ctx, &p.used) }

// begin lets a task that has a slot begin; end must follow. It waits only after the limit
// was lowered, and returns the error of ctx if that ends first.
func (p *slots) begin(ctx context.Context) error { return p.increment(ctx, &p.begun) }

// increment waits until count is below the limit and increments it.
func (p *slots) increment(ctx context.Context, count *int) error {
	for {
		p.mu.Lock()
		if *count < p.limit {
			*count++
			p.mu.Unlock()
			return nil
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// release ends what acquire began.
func (p *slots) release() { p.decrement(&p.used) }

// end ends what begin began. It comes before the task's release.
func (p *slots) end() { p.decrement(&p.begun) }

func (p *slots) decrement(count *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*count--
	p.notify()
}

// resize sets the limit.
func (p *slots) resize(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
	p.notify()
}

// notify wakes all waiting calls of increment; mu must be held.
func (p *slots) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}
