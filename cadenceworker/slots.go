package cadenceworker

import (
	"context"
	"sync"
)

// slots limits the tasks of a binding that run at the same time on this replica. A poll takes
// a slot for the task that it may return. The limit may be lowered while polls are open, and
// they may then return more tasks than the new limit. A task therefore also has to begin,
// which waits until fewer tasks than the limit have begun. With a limit of 2 that is lowered
// to 1:
//
//	event                       limit  used  begun
//	two polls are open          2      2     0
//	the limit is lowered        1      2     0
//	both polls return a task    1      2     1      the second task waits, with heartbeats
//	the first task ends         1      1     1      the second begins
//	a poller wants a slot       1      1     1      it waits
//
// The initial limit is 0, and all calls wait. A change wakes all waiting calls; the order in
// which they succeed is not defined.
type slots struct {
	mu          sync.Mutex
	limit, used int
	begun       int           // tasks that have begun; each ends before it releases its slot
	changed     chan struct{} // closed when a slot may have become free
}

func newSlots() *slots { return &slots{changed: make(chan struct{})} }

// acquire waits for a slot and takes it. It returns the error of ctx if that ends first.
func (s *slots) acquire(ctx context.Context) error { return s.increment(ctx, &s.used) }

// begin lets a task that has a slot begin; end must follow. It waits only after the limit
// was lowered, and returns the error of ctx if that ends first.
func (s *slots) begin(ctx context.Context) error { return s.increment(ctx, &s.begun) }

// increment waits until count is below the limit and increments it.
func (s *slots) increment(ctx context.Context, count *int) error {
	for {
		s.mu.Lock()
		if *count < s.limit {
			*count++
			s.mu.Unlock()
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// release ends what acquire began.
func (s *slots) release() { s.decrement(&s.used) }

// end ends what begin began. It comes before the task's release.
func (s *slots) end() { s.decrement(&s.begun) }

func (s *slots) decrement(count *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count--
	s.notify()
}

// resize sets the limit.
func (s *slots) resize(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.notify()
}

// notify wakes all waiting calls of increment; mu must be held.
func (s *slots) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
