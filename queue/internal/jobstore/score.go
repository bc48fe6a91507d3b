package jobstore

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
	SequenceBits = 10
)

// BandStart is the least score of a priority's jobs.
func BandStart(rank int) int64 { return int64(rank) << rankBits }

func ScoreText(score int64) string { return strconv.FormatInt(score, 10) }

// RankOf is the rank of the priority that a score belongs to.
func RankOf(score int64) int { return int(score >> rankBits) }

// Sequence gives the moments of jobs made in this process: never the same one
// twice, and each later than the one before, so that a producer's jobs of one
// priority are served in the order in which it made them.
type Sequence struct {
	mu   sync.Mutex
	last int64 // created_ms × 2^10 + n
}

// Next reserves n moments in a row and gives the first.
func (s *Sequence) Next(nowMS int64, n int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := max(nowMS<<SequenceBits, s.last+1)
	s.last = first + int64(n) - 1
	return first
}

// Score is the score of a job of the given priority and moment.
func Score(p api.Priority, moment int64) int64 { return BandStart(p.Rank()) + moment }
