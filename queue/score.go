package queue

import (
	"strconv"
	"sync"

	"github.com/codesous/sous/api"
)

// A pending job's score is rank × 2^51 + created_ms × 2^10 + n: priorities one
// after the other, oldest first, n for those of one millisecond. It is exact in
// the floating point of sorted sets, below 2^53, until the year 2039.
const (
	rankBits     = 51
	sequenceBits = 10
)

// bandStart is the least score of a priority's jobs.
func bandStart(rank int) int64 { return int64(rank) << rankBits }

func scoreText(score int64) string { return strconv.FormatInt(score, 10) }

// rankOf is the rank of the priority that a score belongs to.
func rankOf(score int64) int { return int(score >> rankBits) }

// setsOf are the keys that hold q's jobs of one state, in the order in which their
// turn comes: one, and for pending jobs one for each rank.
func (b *Broker) setsOf(q queueKey, state api.JobState) []string { return b.keys(q).Sets(state) }

// setOf is the key among setsOf that holds a job with a score, of which only the rank
// counts.
func (b *Broker) setOf(q queueKey, state api.JobState, score int64) string {
	sets := b.setsOf(q, state)
	if state != api.JobPending {
		return sets[0]
	}
	return sets[min(max(rankOf(score), 0), len(sets)-1)]
}

// sequence gives the moments of jobs made in this process: never the same one
// twice, and each later than the one before, so that a producer's jobs of one
// priority are served in the order in which it made them.
type sequence struct {
	mu   sync.Mutex
	last int64 // created_ms × 2^10 + n
}

// next reserves n moments in a row and gives the first.
func (s *sequence) next(nowMS int64, n int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := max(nowMS<<sequenceBits, s.last+1)
	s.last = first + int64(n) - 1
	return first
}

// score is the score of a job of the given priority and moment.
func score(p api.Priority, moment int64) int64 { return bandStart(p.Rank()) + moment }
