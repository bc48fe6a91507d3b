package claim

import (
	"context"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// The bounds of one claim. A fetch that wants more has a claim of its own.
const (
	claimJobs = 256
	// claimBytes bounds the payloads of a claim, as far as those of the last claim foretell it.
	claimBytes = 4 << 20
	// secondClaim is how many jobs must be waited for before a second claim of a queue begins
	// beside the first: one reads candidates while the other leases its own.
	secondClaim = 128
)

// shareKey names the claims that fetches may share: a claim has one queue, and its leases end at one
// moment.
type shareKey struct {
	q       jobstore.Queue
	leaseMS int64
}

// share is the part of one fetch in a claim. Candidates are assigned to shares in their order, so
// that the fetch that came first gets the jobs that are due first:
//
//	shares                 candidates      assigned        granted         jobs
//	w1 wants 2, w2 wants 2  101 102 103 104  w1 w1 w2 w2     101 103 104     w1: 101; w2: 103 104
//
// w1's fetch joins the next claim for what it lacks.
type share struct {
	Request
	state *queueState
	want  int
	try   int // how many claims of the fetch came before
	left  int // how many more candidates may be assigned

	jobs  []api.FetchedJob
	after time.Duration   // as lease returns it
	ended bool            // the queue has nothing more at the moment
	freed <-chan struct{} // as reserve returns it, if there was no candidate
	err   error
}

// weigh returns how many jobs s wants and how large they may be.
func (s *share) weigh() (count, bytes int) {
	return s.want, s.want * int(s.state.meanBytes.Load())
}

// claim makes one claim for the shares of the fetches that have met.
func (c *Claimer) claim(ctx context.Context, key shareKey, shares []*share) {
	ctx = context.WithoutCancel(ctx) // a claim that has begun is not interrupted
	state, wanted, spare := shares[0].state, 0, 0
	for _, s := range shares {
		wanted += s.want
	}
	settle := func(set func(*share)) {
		for _, s := range shares {
			set(s)
		}
	}
	if state.limited.Load() {
		room, after, err := c.room(ctx, key.q, state, wanted)
		if err != nil || after >= 0 {
			settle(func(s *share) { s.after, s.ended, s.err = after, true, err })
			return
		}
		wanted = room
	}
	if len(shares) == 1 { // those of several must not get more than they want
		// Each conflict widens the selection, because other processes read the same head.
		spare = min(maxSpare, wanted*shares[0].try)
	}
	found, freed, release, err := c.reserve(ctx, key.q, state, wanted+spare)
	if err != nil || len(found) == 0 {
		settle(func(s *share) { s.freed, s.ended, s.err = freed, true, err })
		return
	}
	got, after, err := c.lease(ctx, key, state, shares, found, wanted)
	release(got)
	settle(func(s *share) { s.after, s.ended, s.err = after, after >= 0, err })
}

// assign returns the share that gets the next candidate. The last one gets the spare ones.
func assign(shares []*share) *share {
	for _, s := range shares {
		if s.left > 0 {
			s.left--
			return s
		}
	}
	return shares[len(shares)-1]
}

// reassign lets shares be assigned the candidates that they lack.
func reassign(shares []*share) {
	for _, s := range shares {
		s.left = s.want - len(s.jobs)
	}
}

// note remembers the mean size of jobs that were claimed.
func (s *queueState) note(jobs []api.FetchedJob) {
	if len(jobs) == 0 {
		return
	}
	bytes := 0
	for i := range jobs {
		bytes += len(jobs[i].Payload)
	}
	s.meanBytes.Store(int64(bytes / len(jobs)))
}
