package jobstore

import (
	"strconv"
	"sync"

	"github.com/codesous/sous/api"
)

// The score of a pending job is rank × 2^51 + created_ms × 2^10 + n. It orders jobs by
// priority, then by age; n orders the jobs of one millisecond. Scores of sorted sets are
// floating-point numbers, exact below 2^53, which suffices until the year 2039.
const (
	rankBits = 51
	// SequenceBits is the number of bits of n.
	SequenceBits = 10
)

// BandStart returns the least score of a job with the given rank.
func BandStart(rank int) int64 { return int64(rank) << rankBits }

// ScoreText formats a score for a command.
func ScoreText(score int64) string { return strconv.FormatInt(score, 10) }

// RankOf returns the rank of the priority that a score belongs to.
func RankOf(score int64) int { return int(score >> rankBits) }

// Sequence generates the creation moments of jobs made in this process. It never returns a
// moment twice, and each is later than the one before, so that a producer's jobs of one
// priority are served in the order in which it enqueued them. It is safe for concurrent use.
type Sequence struct {
	mu   sync.Mutex
	last int64 // created_ms × 2^10 + n
}

// Next reserves n consecutive moments and returns the first.
func (s *Sequence) Next(nowMS int64, n int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := max(nowMS<<SequenceBits, s.last+1)
	s.last = first + int64(n) - 1
	return first
}

// Score returns the score of a job with the given priority and moment.
func Score(p api.Priority, moment int64) int64 { return BandStart(p.Rank()) + moment }
