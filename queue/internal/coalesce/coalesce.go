package coalesce

import (
	"context"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// flushBytes bounds what one flush carries.
const flushBytes = api.MaxEnqueueBytes

// flushTimeout bounds one flush, retries of the store's client included.
const flushTimeout = 5 * time.Second

// Coalescer makes one call of the store out of the single calls that arrive
// while the one before is under way, lane by lane. No timer: a lone call leaves
// at once.
type Coalescer[K comparable, T any] struct {
	life  context.Context // what a flush runs under: no caller's context ends the others'
	work  *sync.WaitGroup
	most  int
	weigh func(*T) int // bytes that an item carries
	flush func(ctx context.Context, key K, items []*T)

	mu      sync.Mutex
	flights map[K]*flight[T]
}

// flight is a lane that is flushing; a lane without one is not in the map.
type flight[T any] struct {
	waiting []*waiting[T]
	queued  int // items that wait
	flushes int // under way
}

const (
	// flushesMost is how many flushes of a lane are under way at once: while the
	// store works on one, the next is made ready and the one before is read.
	flushesMost = 2
	// flushSecond is how many items must wait for another flush to begin beside one
	// that is under way: fewer go together sooner if they wait.
	flushSecond = 128
)

type waiting[T any] struct {
	items []*T
	done  chan struct{} // closed when all items have their answers
}

func New[K comparable, T any](life context.Context, work *sync.WaitGroup, most int, weigh func(*T) int, flush func(context.Context, K, []*T)) *Coalescer[K, T] {
	return &Coalescer[K, T]{life: life, work: work, most: most, weigh: weigh, flush: flush, flights: map[K]*flight[T]{}}
}

// Do flushes items with whatever else waits in their lane; each item then holds
// its answer. A caller that stops waiting gets its context's error, and its
// items go on.
func (c *Coalescer[K, T]) Do(ctx context.Context, key K, items []*T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiting[T]{items: items, done: make(chan struct{})}
	c.mu.Lock()
	if c.life.Err() != nil {
		c.mu.Unlock()
		return api.Errorf(api.CodeShuttingDown, "the queue is closed")
	}
	lane := c.flights[key]
	if lane == nil {
		lane = &flight[T]{}
		c.flights[key] = lane
	}
	lane.waiting = append(lane.waiting, w)
	lane.queued += len(items)
	if lane.flushes == 0 || lane.flushes < flushesMost && lane.queued >= flushSecond {
		lane.flushes++
		c.work.Add(1)
		go c.run(key, lane)
	}
	c.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run flushes a lane until nothing waits in it.
func (c *Coalescer[K, T]) run(key K, lane *flight[T]) {
	defer c.work.Done()
	for {
		group, items := c.take(key, lane)
		if len(group) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(c.life, flushTimeout)
		c.flush(ctx, key, items)
		cancel()
		for _, w := range group {
			close(w.done)
		}
	}
}

// take gives the callers whose items go together, at least one, and ends the
// lane where there is none.
func (c *Coalescer[K, T]) take(key K, lane *flight[T]) (group []*waiting[T], items []*T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := 0
	for len(lane.waiting) > 0 {
		w := lane.waiting[0]
		for _, item := range w.items {
			bytes += c.weigh(item)
		}
		if len(items) > 0 && (len(items)+len(w.items) > c.most || bytes > flushBytes) {
			break
		}
		group, items = append(group, w), append(items, w.items...)
		lane.waiting = lane.waiting[1:]
		lane.queued -= len(w.items)
	}
	if len(group) == 0 {
		lane.flushes--
		if lane.flushes == 0 {
			delete(c.flights, key)
		}
	}
	return group, items
}
