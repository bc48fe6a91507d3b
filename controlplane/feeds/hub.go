// Package feeds lets the followers of one thing, such as the log of an activation, share its
// reads. However many clients follow it, it is read as often as for one of them.
//
// A Hub has a Topic for each thing that is followed. A follower is at a position, and asks for
// what lies behind it. Followers at the end of the topic wait together for its next read.
// Followers that are behind are served from the latest items, which the topic keeps, or read
// the store by themselves until they have caught up: a slow client holds nothing but its own
// position.
package feeds

import (
	"context"
	"sync"
	"time"

	"github.com/codesous/sous/api/sleep"
)

// The bounds of a topic.
const (
	// keptItems and keptBytes bound the latest items that a topic keeps.
	keptItems = 256
	keptBytes = 64 << 10
	// readsPerSecond bounds the reads of all topics of a tenant in one hub: with more topics,
	// each is read less often.
	readsPerSecond = 250
)

// Batch is the result of a read behind a position.
type Batch[P comparable, E, S any] struct {
	Items []E  // in order, at most a page
	Next  P    // the position behind them
	State S    // of the thing, read before the items
	More  bool // there may be more items behind Next now
	Gap   bool // some items before Items are not kept any more
}

// Reader reads what lies behind a position of a thing.
type Reader[P comparable, E, S any] func(ctx context.Context, from P) (Batch[P, E, S], error)

// Config describes the items of a Hub. All fields are required.
type Config[P comparable, E any] struct {
	// Interval is the least time between two reads of a topic.
	Interval time.Duration
	// Position returns the position behind an item.
	Position func(item *E) P
	// Size returns the bytes that an item takes in memory, about.
	Size func(item *E) int
}

// Hub has the topics of one kind. It is safe for concurrent use.
type Hub[P comparable, E, S any] struct {
	cfg Config[P, E]

	mu      sync.Mutex
	topics  map[topicKey]*Topic[P, E, S]
	tenants map[string]int // topics, by tenant
}

type topicKey struct{ tenant, thing string }

// New returns a hub without topics.
func New[P comparable, E, S any](cfg Config[P, E]) *Hub[P, E, S] {
	return &Hub[P, E, S]{cfg: cfg, topics: map[topicKey]*Topic[P, E, S]{}, tenants: map[string]int{}}
}

// Topics returns the number of things that are followed.
func (h *Hub[P, E, S]) Topics() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics)
}

// Follow returns the topic of a thing of tenant. read must read the same for every follower of
// it. The caller must Leave the topic. ctx is not retained, except for its values.
func (h *Hub[P, E, S]) Follow(ctx context.Context, tenant, thing string, read Reader[P, E, S]) *Topic[P, E, S] {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := topicKey{tenant, thing}
	t := h.topics[key]
	if t == nil {
		t = &Topic[P, E, S]{hub: h, key: key, read: read}
		t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
		h.topics[key] = t
		h.tenants[tenant]++
	}
	t.followers++
	return t
}

// interval returns the least time between two reads of a topic of tenant.
func (h *Hub[P, E, S]) interval(tenant string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.cfg.Interval, time.Duration(h.tenants[tenant])*time.Second/readsPerSecond)
}

// Topic is a thing that is followed.
//
// Invariants under mu, once begun: items are those between start and end, without a gap, and
// end is the position behind the last one.
type Topic[P comparable, E, S any] struct {
	hub       *Hub[P, E, S]
	key       topicKey
	read      Reader[P, E, S]
	followers int // guarded by hub.mu
	ctx       context.Context
	cancel    context.CancelFunc

	mu         sync.Mutex
	begun      bool
	start, end P
	items      []E
	bytes      int
	state      S
	more       bool      // the last read at end returned a full page
	readAt     time.Time // begin of the last read at end
	pending    *flight[P, E, S]
}

// flight is a read at the end of a topic, for the followers that wait for it.
type flight[P comparable, E, S any] struct {
	from  P
	done  chan struct{}
	batch Batch[P, E, S]
	err   error
}

// Leave ends a follower's use of t. The topic ends with its last follower.
func (t *Topic[P, E, S]) Leave() {
	h := t.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	t.followers--
	if t.followers > 0 {
		return
	}
	t.cancel()
	delete(h.topics, t.key)
	h.tenants[t.key.tenant]--
	if h.tenants[t.key.tenant] == 0 {
		delete(h.tenants, t.key.tenant)
	}
}

// Next returns what lies behind from. At the end of the topic it waits for a read that begins
// after the call, at most an interval after the one before, which all followers there share. A
// follower that is behind gets its items immediately, with More set: only at the end is a batch up to
// date. Errors: those of the Reader, and of ctx.
func (t *Topic[P, E, S]) Next(ctx context.Context, from P) (Batch[P, E, S], error) {
	t.mu.Lock()
	if !t.begun {
		t.begun, t.start, t.end = true, from, from
	}
	if from != t.end {
		batch, ok := t.behind(from)
		end := t.end
		t.mu.Unlock()
		if ok {
			batch.More = true
			return batch, nil
		}
		return t.catchUp(ctx, from, end)
	}
	f := t.pending
	if f == nil {
		f = &flight[P, E, S]{from: from, done: make(chan struct{})}
		t.pending = f
		go t.fly(f)
	}
	t.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return Batch[P, E, S]{}, ctx.Err()
	}
	if f.err != nil || f.from == from {
		return f.batch, f.err
	}
	// The end has moved after the flight was made and before this follower joined it: the
	// batch of the flight begins before from.
	t.mu.Lock()
	batch, ok := t.behind(from)
	t.mu.Unlock()
	if !ok {
		return t.read(ctx, from)
	}
	return batch, nil
}

// catchUp reads behind a position that the topic, whose end is end, does not know.
func (t *Topic[P, E, S]) catchUp(ctx context.Context, from, end P) (Batch[P, E, S], error) {
	batch, err := t.read(ctx, from)
	if err != nil {
		return batch, err
	}
	ahead := len(batch.Items) == 0 && !batch.More && !batch.Gap
	t.mu.Lock()
	if ahead && t.pending == nil && t.end == end {
		// The followers at the end have left. Without this, no read would move the topic any
		// more, and each of the others would read by itself.
		t.items, t.bytes, t.start, t.end, t.state, t.more = nil, 0, from, from, batch.State, false
	}
	t.merge(from, &batch)
	ahead = ahead && from != t.end
	t.mu.Unlock()
	if ahead {
		// The topic reaches it with its next read.
		return batch, sleep.For(ctx, t.hub.interval(t.key.tenant))
	}
	return batch, nil
}

// fly performs a flight, an interval after the last one.
func (t *Topic[P, E, S]) fly(f *flight[P, E, S]) {
	defer close(f.done)
	t.mu.Lock()
	wait := time.Until(t.readAt.Add(t.hub.interval(t.key.tenant)))
	if t.more {
		wait = 0
	}
	t.mu.Unlock()
	f.err = sleep.For(t.ctx, wait)
	if f.err != nil {
		return
	}
	t.mu.Lock()
	t.pending, t.readAt = nil, time.Now() // who comes now waits for the next flight
	end := t.end
	t.mu.Unlock()
	batch, err := t.read(t.ctx, end)
	if err != nil {
		f.err = err
		return
	}
	t.mu.Lock()
	t.merge(end, &batch)
	known := true
	if f.from != end { // another flight has moved the end meanwhile
		batch, known = t.behind(f.from)
	}
	t.mu.Unlock()
	if !known {
		batch, f.err = t.read(t.ctx, f.from)
	}
	f.batch = batch
}

// merge adds a batch that was read behind from. It ignores one that does not reach the end of
// the topic, or lies behind it. The caller holds mu.
func (t *Topic[P, E, S]) merge(from P, batch *Batch[P, E, S]) {
	fresh := batch.Items
	if from != t.end {
		i := t.index(fresh, t.end)
		if i < 0 || batch.Gap {
			return
		}
		fresh = fresh[i+1:]
	}
	if batch.Gap { // what was kept does not lead to the new items
		t.items, t.bytes, t.start = nil, 0, batch.Next
		fresh = nil
	}
	t.items = append(t.items, fresh...)
	for i := range fresh {
		t.bytes += t.hub.cfg.Size(&fresh[i])
	}
	drop := 0
	for ; drop < len(t.items) && (len(t.items)-drop > keptItems || t.bytes > keptBytes); drop++ {
		t.bytes -= t.hub.cfg.Size(&t.items[drop])
		t.start = t.hub.cfg.Position(&t.items[drop])
	}
	t.items = append([]E(nil), t.items[drop:]...) // a follower may still read the old ones
	t.end, t.state, t.more = batch.Next, batch.State, batch.More
}

// behind returns the kept items behind from, and false if from is unknown. The caller holds mu.
func (t *Topic[P, E, S]) behind(from P) (Batch[P, E, S], bool) {
	batch := Batch[P, E, S]{Next: t.end, State: t.state, More: t.more}
	switch i := t.index(t.items, from); {
	case from == t.end:
		return batch, true
	case from == t.start:
		batch.Items = t.items
	case i >= 0:
		batch.Items = t.items[i+1:]
	default:
		return batch, false
	}
	return batch, true
}

// index returns the index of the item before position, -1 if it is not among items.
func (t *Topic[P, E, S]) index(items []E, position P) int {
	for i := len(items) - 1; i >= 0; i-- {
		if t.hub.cfg.Position(&items[i]) == position {
			return i
		}
	}
	return -1
}
