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

// queueState is the state of a queue that this process fetches from: the scores from which
// to read each priority, and the candidates that its own fetches have reserved.
//
// A read of a sorted set from its start walks over every entry that was deleted there, on
// KVRocks until a compaction. Each queue therefore has a stored cursor for each priority, the
// score below which no pending job is, and reads begin there. Only the claim script raises it;
// scripts that add a job raise the job's score to the cursor. For one priority:
//
//	step                            pending                 cursor
//	five jobs are enqueued          101 102 103 104 105     0
//	a claim takes 101 and 102       103 104 105             103
//	101 fails and is promoted       103 104 105, 101 → 103  103
//
// The third line is the score 101 raised to 103. The job is served next, among those of score
// 103 in the order of ids.
//
// from runs ahead of the cursor: with 101 and 102 reserved by one fetch, another one reads
// from 102 on and need not read the reserved ones again.
type queueState struct {
	mu       sync.Mutex
	cursors  [4]int64 // never above the stored cursors, which only increase
	reserved map[string]struct{}
	freed    chan struct{} // closed and replaced when a reservation ends
	// from is the score up to which candidates are reserved, by rank. since is when from
	// was last set to the cursors; zero after a reservation that was not fully claimed.
	from  [4]int64
	since time.Time
	// limited is set if the queue's limits allowed fewer jobs than a claim wanted.
	// Fetches then ask for the remaining room before they read candidates.
	limited atomic.Bool
	// meanBytes is the mean size of the payloads of the last claim.
	meanBytes atomic.Int64
	// reading serializes reads, since concurrent ones would find the same candidates.
	reading sync.Mutex
}

const (
	// lookBack is how long jobs that are added below from may be passed over.
	lookBack = 20 * time.Millisecond
	// tieRoom is how many members more are read because some at from are reserved.
	tieRoom = 8
)

// stateOf returns the state of q, which is created if it is not cached.
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

// reserve is the first step of a claim. It reads the heads of q's priorities and reserves up
// to want jobs that no other fetch of this process has reserved. release ends the
// reservation, with the number of jobs that were claimed. freed is not nil if jobs may
// exist that other fetches have reserved and may not claim: it is closed when the next of
// those reservations ends.
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
		freed = alreadyClosed // a reservation that the read passed over ended during it, perhaps without claiming all
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

// start returns the scores from which to read each priority, and how many members to read.
// whole reports whether the read begins at the cursors and so passes no job over.
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

// release ends the reservation of found. If some were not claimed, the next read begins at
// the cursors, so that it finds them again.
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

// advance raises the cursors to the stored ones.
func (s *queueState) advance(cursors []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rank, text := range cursors {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			s.cursors[rank] = max(s.cursors[rank], at)
		}
	}
}
