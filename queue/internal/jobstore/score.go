package jobstore

import (
	"strconv"
	"sync"

	"github.com/codesous/sous/api"
)

// The score of a pending job is rank × 2^51 + created_ms × 2^10 + n. It orders jobs by
// priority, then by age; n orders the jobs of one millisecond.
//
//	bits 51–52  rank        0 critical, 1 high, 2 normal, 3 low
//	bits 10–50  created_ms  Unix milliseconds
//	bits 0–9    n           0 to 1023
//
// The score is computed once, stored in the spec, and used again whenever the job becomes
// pending: a retried job is served before younger ones. Scores of sorted sets are
// floating-point numbers, exact below 2^53. Together with the rank, created_ms has 41 bits,
// which suffice until the year 2039.
const (
	rankBits = 51
	// SequenceBits is the number of bits of n.
	SequenceBits = 10
)

// BandStart returns the least score of a job with the given rank, from 0 to 4. The band of
// rank r is [BandStart(r), BandStart(r+1)).
func BandStart(rank int) int64 { return int64(rank) << rankBits }

// ScoreText formats a score for a command.
func ScoreText(score int64) string { return strconv.FormatInt(score, 10) }

// RankOf returns the rank of the priority that a score belongs to.
func RankOf(score int64) int { return int(score >> rankBits) }

// Sequence generates the creation moments of jobs made in this process. It never returns a
// moment twice, and each is later than the one before, so that a producer's jobs of one
// priority are served in the order in which it enqueued them. Two processes may return the
// same moment; jobs of one score are served in the order of their ids. A process that makes
// more than 1024 jobs in a millisecond, or whose clock goes back, continues after its last
// moment, ahead of the clock. It is safe for concurrent use; the zero value is ready.
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

// Score returns the score of a job with the given priority, which must be valid, and moment.
func Score(p api.Priority, moment int64) int64 { return BandStart(p.Rank()) + moment }
