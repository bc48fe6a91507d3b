// Package coalesce combines the items of concurrent calls into flushes.
package coalesce

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
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
	awaited      bool // a Do waits for it
	done         chan outcome
}

// outcome is how the flush of an item ended.
type outcome struct {
	flushed  bool // false after the end of life
	panicked any  // the value of a panic of the flush, with its stack
}

// New returns a Coalescer that passes items to flush. flush stores the results, including
// errors, in the items. It runs in goroutines of the Coalescer, or in that of a caller of Do whose
// context cannot end, with the context life. The flushes of one key follow each other, and their items have the order of the calls, unless
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
// the item is not flushed. A panic of the flush is repeated in each Do that waits for it.
func (c *Coalescer[K, T]) Do(ctx context.Context, key K, item T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := context.Cause(c.life); err != nil {
		return err
	}
	done, begun := c.add(key, item, true)
	switch {
	case begun == nil:
	case ctx.Done() == nil:
		// The caller waits for the flush in any case, so it flushes by itself: two changes of
		// goroutine would cost a lone item more than the rest.
		c.flushNext(key, begun)
		if !c.end(key, begun) {
			go c.run(key, begun)
		}
	default:
		go c.run(key, begun)
	}
	select {
	case end := <-done:
		if end.panicked != nil {
			panic(end.panicked)
		}
		if !end.flushed {
			return context.Cause(c.life)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Add flushes item like Do, but does not wait for the flush. If no call waits for a flush that
// panics, the panic ends the process.
func (c *Coalescer[K, T]) Add(key K, item T) {
	_, begun := c.add(key, item, false)
	if begun != nil {
		go c.run(key, begun)
	}
}

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

// add queues item. begun is the queue of its key if the caller has to run a flush of it: none is
// under way, or a second is due.
func (c *Coalescer[K, T]) add(key K, item T, awaited bool) (done <-chan outcome, begun *queue[T]) {
	e := &entry[T]{item: item, count: 1, since: time.Now(), awaited: awaited, done: make(chan outcome, 1)}
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
		begun = q
	}
	return e.done, begun
}

// run flushes the items of key until none waits.
func (c *Coalescer[K, T]) run(key K, q *queue[T]) {
	for !c.end(key, q) {
		c.flushNext(key, q)
	}
}

// flushNext performs the next flush of key, if an item waits.
func (c *Coalescer[K, T]) flushNext(key K, q *queue[T]) {
	if c.cfg.Yield {
		runtime.Gosched()
	}
	entries := c.take(q)
	if len(entries) == 0 {
		return // another flush took them
	}
	end := outcome{flushed: c.life.Err() == nil}
	if end.flushed {
		items := make([]T, len(entries))
		for i, e := range entries {
			items[i] = e.item
		}
		end.panicked = c.call(key, items)
	}
	if end.panicked != nil && !slices.ContainsFunc(entries, func(e *entry[T]) bool { return e.awaited }) {
		panic(end.panicked)
	}
	for _, e := range entries {
		e.done <- end
	}
}

// end ends one of the flushes of key, and returns true, if no item waits.
func (c *Coalescer[K, T]) end(key K, q *queue[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(q.waiting) > 0 {
		return false
	}
	q.flushes--
	if q.flushes == 0 {
		delete(c.queues, key)
	}
	if len(c.queues) == 0 {
		c.idle.Broadcast()
	}
	return true
}

// call calls flush, and returns the value of its panic with the stack. The flushes of the other
// callers go on after it.
func (c *Coalescer[K, T]) call(key K, items []T) (panicked any) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprintf("flush of %v: %v\n%s", key, p, debug.Stack())
		}
	}()
	c.flush(c.life, key, items)
	return nil
}

// take removes the next entries to be flushed together, and returns them: at least one if any
// waits.
func (c *Coalescer[K, T]) take(q *queue[T]) []*entry[T] {
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
	return taken
}
