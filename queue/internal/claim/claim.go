// Package claim hands out pending jobs to workers under leases. Concurrent fetches of a queue share a
// claim, which has three steps: reserve picks candidates at the head of the queue that no other
// claim of this process is after, lease asks the store for them, and deliver turns those that the
// store granted into fetched jobs. Only the second step changes the store, by one script.
//
// share.go joins the fetches; reserve.go, lease.go and deliver.go have one step each. Reservations exist in this process
// only; they save conflicts between its own fetches. Between processes the script decides: it
// leases a candidate only if its run is the one that was read. lease.go explains leases by an
// example, reserve.go the cursors.
package claim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/coalesce"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// Claimer claims pending jobs. It is safe for concurrent use.
type Claimer struct {
	jobs   *jobstore.Store
	store  *storage.Store
	rdb    redis.UniversalClient
	states *otter.Cache[jobstore.Queue, *queueState]
	claims *coalesce.Coalescer[shareKey, *share]
	hooks  Hooks
}

// Hooks are the functions by which a Claimer calls its owner.
type Hooks struct {
	// Claimed is called with the outcome of each claim: the script's status, and the
	// jobs that were handed out at now, a Unix time in milliseconds.
	Claimed func(q jobstore.Queue, status string, jobs []api.FetchedJob, now int64)
	// Expire ends a job that was leased after its expiry. Take returns its error.
	Expire func(ctx context.Context, tenant, id string) error
}

// maxStates is the maximum number of queues whose state a process caches.
const maxStates = 20_000

// New returns a Claimer of the jobs in store, which jobs reads and writes. Once life has ended, no
// claim begins; Wait waits for the last one.
func New(life context.Context, store *storage.Store, jobs *jobstore.Store, hooks Hooks) (*Claimer, error) {
	states, err := otter.New(&otter.Options[jobstore.Queue, *queueState]{MaximumSize: maxStates})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	c := &Claimer{jobs: jobs, store: store, rdb: store.Client(), states: states, hooks: hooks}
	c.claims = coalesce.New(life, coalesce.Config[*share]{Weigh: (*share).weigh, Count: claimJobs, Bytes: claimBytes, SecondFlushAt: secondClaim}, c.claim)
	return c, nil
}

// Wait waits until no claim is under way.
func (c *Claimer) Wait() { c.claims.Wait() }

// Request holds the worker that claims jobs, its host as jobstore.HostOf returns it, and the length
// of its leases.
type Request struct {
	WorkerID, Host string
	Lease          time.Duration
}

// Cursors returns the scores from which the pending jobs of q are read, by rank. All jobs
// with a lower score have been claimed or removed.
func (c *Claimer) Cursors(q jobstore.Queue) [4]int64 {
	s := c.stateOf(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursors
}

// LongPause is the pause before the next read of a queue if no nearer moment is known. A
// notice of new work ends it early.
const LongPause = time.Hour

// maxTries is how often a fetch tries again because other fetches claimed its candidates.
const maxTries = 8

// maxSpare is the maximum number of candidates that a fetch reads beyond those that it
// wants.
const maxSpare = 128

// Take claims up to want of q's pending jobs, together with concurrent calls. again is how long to
// wait before the queue may have more: 0 if other claims took all candidates, and LongPause if no
// nearer moment is known. Jobs returned together with an error are leased nevertheless. Errors:
// CodeStoreUnavailable, CodeShuttingDown, those of Hooks.Expire, ctx's.
func (c *Claimer) Take(ctx context.Context, q jobstore.Queue, r Request, want int) (jobs []api.FetchedJob, again time.Duration, err error) {
	key := shareKey{q, r.Lease.Milliseconds()}
	for try := 0; try < maxTries; {
		s := &share{Request: r, state: c.stateOf(q), want: want - len(jobs), try: try}
		// A claim that has begun is not interrupted: its jobs would be leased, and unknown.
		if err := c.claims.Do(context.WithoutCancel(ctx), key, s); err != nil {
			return jobs, LongPause, err
		}
		jobs = append(jobs, s.jobs...)
		switch {
		case s.freed != nil:
			select {
			case <-s.freed:
				continue
			case <-ctx.Done():
				return jobs, LongPause, ctx.Err()
			}
		case s.err != nil || s.ended || len(jobs) == want:
			return jobs, cmp.Or(max(s.after, 0), LongPause), s.err
		}
		try++
	}
	return jobs, 0, nil // there was work, but other fetches took it: try again immediately
}
