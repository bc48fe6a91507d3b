package cadenceworker

import (
	"context"
	"sync"
)

// places are those that the tasks of a binding have here. Its limit may change at
// any time: who has a place keeps it. A call for a task holds one, too, and may still
// bring a task when the limit has become lower; so a task begins only where those
// that have begun are fewer than the limit is then.
type places struct {
	mu          sync.Mutex
	limit, used int
	begun       int           // of those used: tasks that have begun; they end before their place is free
	changed     chan struct{} // closed when a place may have become free
}

func newPlaces() *places { return &places{changed: make(chan struct{})} }

// acquire takes a place, and waits for one as long as ctx lives.
func (p *places) acquire(ctx context.Context) error { return p.enter(ctx, &p.used) }

// begin lets what has a place begin, and waits while as many as the limit allows have
// begun, as long as ctx lives; end follows it. Only a limit that became lower makes
// it wait.
func (p *places) begin(ctx context.Context) error { return p.enter(ctx, &p.begun) }

// enter counts one more, once there are fewer than the limit.
func (p *places) enter(ctx context.Context, count *int) error {
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

func (p *places) release() { p.leave(&p.used) }

func (p *places) end() { p.leave(&p.begun) }

func (p *places) leave(count *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*count--
	p.tell()
}

// resize sets how many places there are.
func (p *places) resize(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
	p.tell()
}

// tell wakes who waits; mu is held.
func (p *places) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}
