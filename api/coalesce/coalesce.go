// Package coalesce combines the items of concurrent calls into flushes.
package coalesce

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Coalescer combines the items of concurrent calls with the same key into flushes: the items
// that arrive while a flush is under way are flushed together after it. It uses no timer: a
// lone item is flushed immediately, and a busy key needs fewer flushes. It is safe for
// concurrent use.
type Coalescer[K comparable, T any] struct {
	life  context.Context // of flushes: no caller's context may end the items of others
	cfg   Config[T]
	flush func(ctx context.Context, key K, items []T)

	mu     sync.Mutex
	queues map[K]*queue[T]
	idle   *sync.Cond // notified when queues becomes empty
}

// Config configures a Coalescer. Zero values mean the documented defaults. An item that
// exceeds a limit alone is flushed alone.
type Config[T any] struct {
	// Weigh returns the count and the size of an item (default: 1 and 0).
	Weigh func(item T) (count, bytes int)
	// Count is the maximum sum of the counts in one flush (default 1).
	Count int
	// Bytes is the maximum sum of the sizes in one flush (default: no limit).
	Bytes int
	// SecondFlushAt is the sum of waiting counts at which a second flush of a key starts beside
	// the first (default: never). With two, one is prepared or read while the other is
	// executed. Fewer items are cheaper in one flush after the current one.
	SecondFlushAt int
	// Yield lets other goroutines run before each flush (default: no). On a busy process
	// some of them add items to it, and on an idle one nothing is delayed. It pays if items
	// are small and flushes are costly.
	Yield bool
}

// queue is the state of one key with flushes under way. Other keys have none.
type queue[T any] struct {
	waiting []*entry[T] // in no flush yet, in the order of their arrival
	count   int         // the sum over waiting
	flushes int         // the number of flushes under way
}

// entry is the item of one call.
type entry[T any] struct {
	item         T
	count, bytes int
	since        time.Time
	done         chan bool // receives true after the item's flush, false if there is none
}

// New returns a Coalescer that passes items to flush. flush stores the results, including
// errors, in the items. It runs in goroutines of the Coalescer, with the context life. The
// flushes of one key follow each other, and their items have the order of the calls, unless
// cfg.SecondFlushAt allows a second flush. flush may call Add, but neither Wait nor Do with its
// own key. Once life has ended, no flush begins.
func New[K comparable, T any](life context.Context, cfg Config[T], flush func(ctx context.Context, key K, items []T)) *Coalescer[K, T] {
	c := &Coalescer[K, T]{life: life, cfg: cfg, flush: flush, queues: map[K]*queue[T]{}}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// Do flushes item together with those of concurrent calls with the same key, and returns
// after that flush. If ctx ends before, Do returns ctx's error, and the item is flushed
// nevertheless. If life ends before the flush begins, Do returns context.Cause(life), and
// the item is not flushed.
func (c *Coalescer[K, T]) Do(ctx context.Context, key K, item T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := context.Cause(c.life); err != nil {
		return err
	}
	select {
	case flushed := <-c.add(key, item):
		if !flushed {
			return context.Cause(c.life)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Add flushes item like Do, but does not wait for the flush.
func (c *Coalescer[K, T]) Add(key K, item T) { c.add(key, item) }

// Wait waits until no item waits and no flush is under way. After the end of life that is
// soon, and flush is not called again.
func (c *Coalescer[K, T]) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queues) > 0 {
		c.idle.Wait()
	}
}

// Waiting returns the count of all items that are in no flush yet, and how long the oldest
// of them has waited at now.
func (c *Coalescer[K, T]) Waiting(now time.Time) (count int, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		count += q.count
		if len(q.waiting) > 0 {
			oldest = max(oldest, now.Sub(q.waiting[0].since))
		}
	}
	return count, oldest
}

// add queues item, and starts a flush of its key if none is under way or a second is due.
func (c *Coalescer[K, T]) add(key K, item T) (done <-chan bool) {
	e := &entry[T]{item: item, count: 1, since: time.Now(), done: make(chan bool, 1)}
	if c.cfg.Weigh != nil {
		e.count, e.bytes = c.cfg.Weigh(item)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[key]
	if q == nil {
		q = &queue[T]{}
		c.queues[key] = q
	}
	q.waiting, q.count = append(q.waiting, e), q.count+e.count
	if q.flushes == 0 || q.flushes == 1 && c.cfg.SecondFlushAt > 0 && q.count >= c.cfg.SecondFlushAt {
		q.flushes++
		go c.run(key, q)
	}
	return e.done
}

// run flushes the items of key until none waits.
func (c *Coalescer[K, T]) run(key K, q *queue[T]) {
	for {
		if c.cfg.Yield {
			runtime.Gosched()
		}
		entries := c.take(key, q)
		if len(entries) == 0 {
			return
		}
		alive := c.life.Err() == nil
		if alive {
			items := make([]T, len(entries))
			for i, e := range entries {
				items[i] = e.item
			}
			c.flush(c.life, key, items)
		}
		for _, e := range entries {
			e.done <- alive
		}
	}
}

// take removes the next entries to be flushed together, at least one, and returns them. If
// none waits it ends the flush.
func (c *Coalescer[K, T]) take(key K, q *queue[T]) []*entry[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, count, bytes := 0, 0, 0
	for _, e := range q.waiting {
		if n > 0 && (count+e.count > c.cfg.Count || c.cfg.Bytes > 0 && bytes+e.bytes > c.cfg.Bytes) {
			break
		}
		n, count, bytes = n+1, count+e.count, bytes+e.bytes
	}
	taken := q.waiting[:n:n]
	q.waiting, q.count = q.waiting[n:], q.count-count
	if n == 0 {
		q.flushes--
		if q.flushes == 0 {
			delete(c.queues, key)
		}
		if len(c.queues) == 0 {
			c.idle.Broadcast()
		}
	}
	return taken
}
