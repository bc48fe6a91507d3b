package claim

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// queueState is what this process remembers of a queue that it fetches from: from where
// to read each priority, and which candidates its own fetches are after.
type queueState struct {
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

// stateOf returns what this process remembers of q, which may be nothing yet.
func (c *Claimer) stateOf(q jobstore.Queue) *queueState {
	s, _ := c.states.ComputeIfAbsent(q, func() (*queueState, bool) {
		s := &queueState{reserved: map[string]struct{}{}, freed: make(chan struct{})}
		for rank := range s.cursors {
			s.cursors[rank] = jobstore.BandStart(rank)
		}
		return s, false
	})
	return s
}

// candidate is a pending job that may be claimed.
type candidate struct {
	id    string
	score int64
}

// reserve is the first step of a claim. It reads the heads of q's priorities, want of them beside those that
// other fetches here are after, and reserves them. release ends that. freed is
// not nil where other fetches are after all that was read, and may yet leave some: it
// is closed when the next of them ends.
func (c *Claimer) reserve(ctx context.Context, q jobstore.Queue, s *queueState, want int) (found []candidate, freed <-chan struct{}, release func(claimed int), err error) {
	sets := c.jobs.Sets(q, api.JobPending)
	s.reading.Lock()
	defer s.reading.Unlock()
	from, window, whole := s.start(want)
	pipe := c.rdb.Pipeline()
	var heads [4]*redis.ZSliceCmd
	for rank := range heads {
		heads[rank] = pipe.ZRangeByScoreWithScores(ctx, sets[rank], &redis.ZRangeBy{
			Min: jobstore.ScoreText(from[rank]), Max: "(" + jobstore.ScoreText(jobstore.BandStart(rank+1)), Count: window,
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, nil, jobstore.Failure(ctx, "read a queue", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !whole && (len(s.reserved) == 0 || s.since.IsZero()):
		freed = alreadyClosed // a fetch that was passed over has ended meanwhile, and may have left some
	case len(s.reserved) > 0:
		freed = s.freed
	}
	for rank, head := range heads {
		for _, z := range head.Val() {
			id, _ := z.Member.(string)
			if _, taken := s.reserved[id]; taken || len(found) == want {
				continue
			}
			s.reserved[id] = struct{}{}
			found = append(found, candidate{id, int64(z.Score)})
			s.from[rank] = int64(z.Score)
		}
	}
	return found, freed, func(claimed int) { s.release(found, claimed) }, nil
}

// alreadyClosed is for callers that need not wait.
var alreadyClosed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// start returns from where to read each priority, and how many members. whole reports
// whether the reading begins at the cursors and passes nothing over.
func (s *queueState) start(want int) (from [4]int64, window int64, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); len(s.reserved) == 0 || now.Sub(s.since) > lookBack {
		s.from, s.since = s.cursors, now
		return s.from, int64(want + len(s.reserved)), true
	}
	for rank := range s.from {
		s.from[rank] = max(s.from[rank], s.cursors[rank])
	}
	return s.from, int64(want + tieRoom), false
}

// release gives reservations back. Those that were not claimed are to be found
// again: the next reading begins at the cursors.
func (s *queueState) release(found []candidate, claimed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range found {
		delete(s.reserved, job.id)
	}
	if claimed < len(found) {
		s.since = time.Time{}
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// advance takes over the stored cursors.
func (s *queueState) advance(cursors []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rank, text := range cursors {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			s.cursors[rank] = max(s.cursors[rank], at)
		}
	}
}
