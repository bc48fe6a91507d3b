package queue

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// lane is what this process remembers of a queue that it fetches from: from where
// to read each priority, and which candidates its own fetches are after.
type lane struct {
	mu       sync.Mutex
	cursors  [4]int64 // never above the stored ones: those only grow
	reserved map[string]struct{}
	freed    chan struct{} // closed, and another one made, when reservations end
	// from is behind the candidates that fetches are after, where all of these will
	// be claimed; since is when it was at the cursors last.
	from  [4]int64
	since time.Time
	// limited is set where the queue's limits allowed fewer jobs than a claim wanted:
	// fetches then ask for the room that is left before they read jobs.
	limited atomic.Bool
	// reading lets one fetch read at a time: two would find the same candidates.
	reading sync.Mutex
}

const (
	// lookBack is how long candidates that came in below from may go unseen.
	lookBack = 20 * time.Millisecond
	// tieRoom is how many of a score that was read before a reading makes up for.
	tieRoom = 8
)

// lane gives q's, from memory or new.
func (b *Broker) lane(q queueKey) *lane {
	l, _ := b.lanes.ComputeIfAbsent(q, func() (*lane, bool) {
		l := &lane{reserved: map[string]struct{}{}, freed: make(chan struct{})}
		for rank := range l.cursors {
			l.cursors[rank] = bandStart(rank)
		}
		return l, false
	})
	return l
}

// candidate is a pending job that may be claimed.
type candidate struct {
	id    string
	score int64
}

// candidates reads the heads of q's priorities, want of them beside those that
// other fetches here are after, and reserves them. release ends that. freed is
// not nil where other fetches are after all that was read, and may yet leave some: it
// is closed when the next of them ends.
func (b *Broker) candidates(ctx context.Context, q queueKey, l *lane, want int) (found []candidate, freed <-chan struct{}, release func(claimed int), err error) {
	sets := b.setsOf(q, api.JobPending)
	l.reading.Lock()
	defer l.reading.Unlock()
	from, window, whole := l.start(want)
	pipe := b.rdb.Pipeline()
	var heads [4]*redis.ZSliceCmd
	for rank := range heads {
		heads[rank] = pipe.ZRangeByScoreWithScores(ctx, sets[rank], &redis.ZRangeBy{
			Min: scoreText(from[rank]), Max: "(" + scoreText(bandStart(rank+1)), Count: window,
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, nil, b.failure(ctx, "read a queue", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !whole && (len(l.reserved) == 0 || l.since.IsZero()):
		freed = alreadyClosed // a fetch that was passed over has ended meanwhile, and may have left some
	case len(l.reserved) > 0:
		freed = l.freed
	}
	for rank, head := range heads {
		for _, z := range head.Val() {
			id, _ := z.Member.(string)
			if _, taken := l.reserved[id]; taken || len(found) == want {
				continue
			}
			l.reserved[id] = struct{}{}
			found = append(found, candidate{id, int64(z.Score)})
			l.from[rank] = int64(z.Score)
		}
	}
	return found, freed, func(claimed int) { l.release(found, claimed) }, nil
}

// alreadyClosed is for callers that need not wait.
var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// start returns from where to read each priority, and how many members. whole reports
// whether the reading begins at the cursors and passes nothing over.
func (l *lane) start(want int) (from [4]int64, window int64, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); len(l.reserved) == 0 || now.Sub(l.since) > lookBack {
		l.from, l.since = l.cursors, now
		return l.from, int64(want + len(l.reserved)), true
	}
	for rank := range l.from {
		l.from[rank] = max(l.from[rank], l.cursors[rank])
	}
	return l.from, int64(want + tieRoom), false
}

// release gives reservations back. Those that were not claimed are to be found
// again: the next reading begins at the cursors.
func (l *lane) release(found []candidate, claimed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range found {
		delete(l.reserved, c.id)
	}
	if claimed < len(found) {
		l.since = time.Time{}
	}
	close(l.freed)
	l.freed = make(chan struct{})
}

// advance takes over the stored cursors.
func (l *lane) advance(cursors []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rank, text := range cursors {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			l.cursors[rank] = max(l.cursors[rank], at)
		}
	}
}
