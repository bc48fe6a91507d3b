// Package coalesce combines concurrent calls with the same key into batches.
package coalesce

import (
	"context"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// flushBytes is the maximum size of the items of one flush, unless one caller's items exceed
// it alone.
const flushBytes = api.MaxEnqueueBytes

// flushTimeout limits one flush, including retries by the store's client.
const flushTimeout = 5 * time.Second

// Coalescer combines the items of concurrent calls with the same key into flushes: the calls
// that arrive while a flush is under way are flushed together after it. It uses no timer, so
// that a lone call is flushed immediately. It is safe for concurrent use.
type Coalescer[K comparable, T any] struct {
	life  context.Context // of flushes: no caller's context may end the calls of others
	work  *sync.WaitGroup
	most  int
	weigh func(*T) int // the size of an item in bytes
	flush func(ctx context.Context, key K, items []*T)

	mu      sync.Mutex
	flights map[K]*flight[T]
}

// flight is the state of one key with flushes under way. Other keys are not in the map.
type flight[T any] struct {
	waiting []*waiting[T]
	queued  int // the number of items in waiting
	flushes int // the number of flushes under way
}

const (
	// flushesMost is the maximum number of concurrent flushes of one key. With two, one is
	// prepared or read while the store works on the other.
	flushesMost = 2
	// flushSecond is how many items must wait before a second flush starts. Fewer items
	// are cheaper in one flush after the current one.
	flushSecond = 128
)

// waiting is one call of Do.
type waiting[T any] struct {
	items []*T
	done  chan struct{} // closed when all items have their results
}

// New returns a Coalescer that passes at most most items, of one or more whole calls, to each
// call of flush; a single call may have more. flush stores the results, including errors,
// in the items. weigh returns the size of an item in bytes. Flushes run in goroutines that
// work counts, until life ends.
func New[K comparable, T any](life context.Context, work *sync.WaitGroup, most int, weigh func(*T) int, flush func(context.Context, K, []*T)) *Coalescer[K, T] {
	return &Coalescer[K, T]{life: life, work: work, most: most, weigh: weigh, flush: flush, flights: map[K]*flight[T]{}}
}

// Do flushes items together with those of concurrent calls with the same key, and returns
// when each item holds its result. If ctx ends before, Do returns ctx's error, and the items
// are flushed nevertheless. Errors: CodeShuttingDown after the end of life.
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
	f := c.flights[key]
	if f == nil {
		f = &flight[T]{}
		c.flights[key] = f
	}
	f.waiting = append(f.waiting, w)
	f.queued += len(items)
	if f.flushes == 0 || f.flushes < flushesMost && f.queued >= flushSecond {
		f.flushes++
		c.work.Add(1)
		go c.run(key, f)
	}
	c.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run flushes the calls of key until none waits.
func (c *Coalescer[K, T]) run(key K, f *flight[T]) {
	defer c.work.Done()
	for {
		group, items := c.take(key, f)
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

// take removes the next calls to be flushed together, at least one, and returns them with
// their items. If none waits it ends the flight's flush.
func (c *Coalescer[K, T]) take(key K, f *flight[T]) (group []*waiting[T], items []*T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := 0
	for len(f.waiting) > 0 {
		w := f.waiting[0]
		for _, item := range w.items {
			bytes += c.weigh(item)
		}
		if len(items) > 0 && (len(items)+len(w.items) > c.most || bytes > flushBytes) {
			break
		}
		group, items = append(group, w), append(items, w.items...)
		f.waiting = f.waiting[1:]
		f.queued -= len(w.items)
	}
	if len(group) == 0 {
		f.flushes--
		if f.flushes == 0 {
			delete(c.flights, key)
		}
	}
	return group, items
}
