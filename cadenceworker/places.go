package cadenceworker

import (
	"context"
	"sync"
)

// places are those that the tasks of a binding have here. Its limit may change at
// any time: who has a place keeps it.
type places struct {
	mu          sync.Mutex
	limit, used int
	changed     chan struct{} // closed when a place may have become free
}

func newPlaces() *places { return &places{changed: make(chan struct{})} }

// acquire takes a place, and waits for one as long as ctx lives.
func (p *places) acquire(ctx context.Context) error {
	for {
		p.mu.Lock()
		if p.used < p.limit {
			p.used++
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

func (p *places) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
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
