package calls

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
	"github.com/codesous/sous/storage"
)

const (
	window      = 2 * time.Second // between two writes
	writeWithin = 5 * time.Second
	closeWithin = time.Second // a part of the time in which a server ends
	maxOpen     = 8192        // functions whose calls are held; the next one writes them sooner
	pipelined   = 512         // functions of one pipeline
	countsTTL   = 49 * time.Hour
	failureTTL  = api.ActivationTTLMS * time.Millisecond
	hourMS      = int64(time.Hour / time.Millisecond)
	hoursOfDay  = 24
	// buckets is the number of buckets of durations. Bucket b has those below 2^b ms, so the
	// last one those over 17 minutes: no call may take longer.
	buckets = 21
)

// Counter counts the calls that end on this replica. It is safe for concurrent use.
type Counter struct {
	s      *storage.Store
	logger *zap.Logger
	life   context.Context

	mu      sync.Mutex
	open    map[place]*tally
	timer   *time.Timer   // while there is something to write
	writing chan struct{} // holds an element while counts are written
}

// place names the counts of a function in one hour.
type place struct {
	tenant, namespace, function string
	hour                        int64 // since 1970
}

// tally are calls that are not written yet.
type tally struct {
	durations [buckets]int64
	failures  int64
	last      *traffic.FunctionFailure
	used      used
}

// NewCounter returns a counter that writes to s until life ends.
func NewCounter(life context.Context, s *storage.Store, logger *zap.Logger) *Counter {
	return &Counter{s: s, logger: logger, life: life, open: map[place]*tally{}, writing: make(chan struct{}, 1)}
}

// Ended counts a call that ended, of a version with the given memory limit. It does not wait for
// the store.
func (c *Counter) Ended(a *api.Activation, memoryMB int) {
	key := place{a.Tenant, a.Namespace, a.Function, a.EndMS / hourMS}
	failure := failureOf(a)
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.open[key]
	if t == nil {
		t = &tally{}
		c.open[key] = t
		switch {
		case c.timer == nil:
			c.timer = time.AfterFunc(window, func() { c.Flush(c.life) })
		case len(c.open) == maxOpen:
			c.timer.Reset(0)
		}
	}
	t.durations[bucket(a.DurationMS)]++
	t.used.add(a, memoryMB)
	if failure != nil {
		t.failures++
		t.last = failure
	}
}

// failureOf returns a failure, nil for a call that succeeded or was cancelled.
func failureOf(a *api.Activation) *traffic.FunctionFailure {
	if a.Status != api.StatusError && a.Status != api.StatusTimeout {
		return nil
	}
	f := &traffic.FunctionFailure{AtMS: a.EndMS, ActivationID: a.ActivationID, Status: a.Status}
	if a.Error != nil {
		f.Type, f.Message = a.Error.Type, api.TruncateText(a.Error.Message, traffic.MaxMessageBytes)
	}
	return f
}

// bucket returns the bucket of a duration: the least b so that it is below 2^b ms.
func bucket(ms int64) int { return min(bits.Len64(uint64(max(ms, 0))), buckets-1) }

// Flush writes the calls that were counted, unless ctx ends before an earlier Flush has.
func (c *Counter) Flush(ctx context.Context) { c.flush(ctx, c.takeAll) }

// FlushOf writes the calls that were counted of a namespace, for a read that follows. The calls
// are written even if ctx ends.
func (c *Counter) FlushOf(ctx context.Context, tenant, namespace string) {
	c.flush(context.WithoutCancel(ctx), func() map[place]*tally { return c.takeOf(tenant, namespace) })
}

// takeAll returns the calls that are not written yet, and ends the timer.
func (c *Counter) takeAll() map[place]*tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.open
	c.open = map[place]*tally{}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return taken
}

// takeOf is takeAll for a namespace. The timer goes on, for the others.
func (c *Counter) takeOf(tenant, namespace string) map[place]*tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := map[place]*tally{}
	for key, t := range c.open {
		if key.tenant == tenant && key.namespace == namespace {
			taken[key] = t
			delete(c.open, key)
		}
	}
	return taken
}

// flush writes the calls that take returns, after those of an earlier flush.
func (c *Counter) flush(ctx context.Context, take func() map[place]*tally) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return
	}
	pipe := c.s.Client().Pipeline()
	held, lost := 0, 0
	var failed error
	write := func() {
		if _, err := pipe.Exec(ctx); err != nil { // the functions of the other pipelines are not concerned
			failed = err
			lost += held
		}
		held = 0
	}
	for key, t := range take() {
		c.add(ctx, pipe, key, t)
		held++
		if held == pipelined {
			write()
		}
	}
	if held > 0 {
		write()
	}
	if lost > 0 {
		c.logger.Warn("calls of functions were not counted", zap.Int("functions", lost), zap.Error(failed))
	}
}

// add writes the calls of a place by pipe. The client must not repeat a pipeline whose reply was
// lost: the store may have counted its calls.
func (c *Counter) add(ctx context.Context, pipe redis.Pipeliner, key place, t *tally) {
	keys := c.s.Keys()
	counts := keys.FunctionCalls(key.tenant, key.namespace, key.function, key.hour/hoursOfDay)
	for b, n := range t.durations {
		if n > 0 {
			increment(ctx, pipe, counts, fmt.Sprintf("%02d:%d", key.hour%hoursOfDay, b), n)
		}
	}
	if t.failures > 0 {
		increment(ctx, pipe, counts, fmt.Sprintf("%02d:%s", key.hour%hoursOfDay, failures), t.failures)
	}
	pipe.PExpire(ctx, counts, countsTTL)
	t.write(ctx, pipe, keys.UsageDay(key.tenant, key.hour/hoursOfDay), key)
	if t.last != nil {
		if raw, err := storage.Encode(t.last); err == nil { // it has no value that cannot be encoded
			pipe.Set(ctx, keys.FunctionFailure(key.tenant, key.namespace, key.function), raw, failureTTL)
		}
	}
}

// increment adds n to a field of a hash, at most once.
func increment(ctx context.Context, pipe redis.Pipeliner, key, field string, n int64) {
	_ = pipe.Process(ctx, storage.Once(ctx, "hincrby", key, field, n)) // Exec returns its error
}

// Close writes the remaining calls within a second, also if an earlier Flush still waits for the
// store. Ended must not be called any more.
func (c *Counter) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	c.Flush(ctx)
}
