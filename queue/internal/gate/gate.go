// Package gate limits how many fetches take jobs of one queue at the same time.
package gate

import (
	"errors"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// DefaultLimit is the default limit of the fetches that take jobs of one queue at once.
const DefaultLimit = 64

// The bounds of the time after which a fetch that was refused by the gate should be tried again. It
// is random, so that workers that were refused together do not come back together.
const (
	leastGateRetry = 2 * time.Millisecond
	mostGateRetry  = 8 * time.Millisecond
)

// Gate limits how many fetches of clients take jobs of one queue at the same time. More would not
// get more jobs: they would compete for the same ones. A fetch that waits for jobs does not count.
// It is safe for concurrent use.
type Gate struct {
	limit int

	mu   sync.Mutex
	busy map[jobstore.Queue]int
}

// New returns a Gate.
func New(limit int) *Gate { return &Gate{limit: limit, busy: map[jobstore.Queue]int{}} }

// Enter reports whether a fetch may take jobs of q. Leave must follow if so.
func (g *Gate) Enter(q jobstore.Queue) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy[q] >= g.limit {
		return false
	}
	g.busy[q]++
	return true
}

// Leave ends what Enter has begun.
func (g *Gate) Leave(q jobstore.Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy[q]--
	if g.busy[q] == 0 {
		delete(g.busy, q)
	}
}

// ErrFull is the cause of the error of a fetch that the gate refused.
var ErrFull = errors.New("the gate is full")

// Refusal returns the CodeOverloaded of a fetch that may be tried again in 2 to 8 ms. random is
// from [0, 1).
func Refusal(random float64) *api.Error {
	err := api.Wrap(api.CodeOverloaded, ErrFull, "too many fetches take jobs of this queue at the moment")
	err.RetryAfter = leastGateRetry + time.Duration(random*float64(mostGateRetry-leastGateRetry))
	return err
}
