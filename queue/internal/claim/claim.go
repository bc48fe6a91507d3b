package claim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// Claimer hands out pending jobs under leases. It is safe for concurrent use.
type Claimer struct {
	jobs   *jobstore.Store
	store  *storage.Store
	rdb    redis.UniversalClient
	states *otter.Cache[jobstore.Queue, *queueState]
	hooks  Hooks
}

// Hooks are what a Claimer reports and leaves to its owner.
type Hooks struct {
	// Claimed is called with the outcome of each claim: the script's status, and the
	// jobs that were handed out at now, in milliseconds.
	Claimed func(q jobstore.Queue, status string, jobs []api.FetchedJob, now int64)
	// Expire ends a job that was leased after its expiry.
	Expire func(ctx context.Context, tenant, id string) error
}

// maxStates bounds the queues of which a process remembers the state.
const maxStates = 20_000

// New returns a Claimer of the jobs in store.
func New(store *storage.Store, jobs *jobstore.Store, hooks Hooks) (*Claimer, error) {
	states, err := otter.New(&otter.Options[jobstore.Queue, *queueState]{MaximumSize: maxStates})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Claimer{jobs: jobs, store: store, rdb: store.Client(), states: states, hooks: hooks}, nil
}

// Request says for whom jobs are claimed.
type Request struct {
	WorkerID string
	Lease    time.Duration
}

// Cursors returns the scores from which the pending jobs of q are read, by priority.
func (c *Claimer) Cursors(q jobstore.Queue) [4]int64 {
	s := c.stateOf(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursors
}

// LongPause is when to ask again where nothing says a nearer moment.
const LongPause = time.Hour

// maxTries bounds how often a fetch looks again when others took what it found.
const maxTries = 8

// maxSpare bounds the jobs that a fetch reads beside those that it asks for.
const maxSpare = 128

// Take hands out up to want of q's pending jobs under leases. again is how long to wait
// before the queue may have more: 0 where other claims took what this one found, and
// LongPause where no nearer moment is known. Jobs that come with an error are leased all
// the same.
func (c *Claimer) Take(ctx context.Context, q jobstore.Queue, r Request, want int) (jobs []api.FetchedJob, again time.Duration, err error) {
	s := c.stateOf(q)
	for try := 0; try < maxTries; {
		wanted := want - len(jobs)
		if s.limited.Load() {
			room, after, err := c.room(ctx, q, s, wanted)
			if err != nil || after >= 0 {
				return jobs, cmp.Or(max(after, 0), LongPause), err
			}
			wanted = room
		}
		// Wider with each conflict: the head of the queue is where others look too.
		found, freed, release, err := c.reserve(ctx, q, s, wanted+min(maxSpare, wanted*try))
		switch {
		case err != nil:
			return jobs, LongPause, err
		case len(found) == 0 && freed != nil:
			select {
			case <-freed:
				continue
			case <-ctx.Done():
				return jobs, LongPause, ctx.Err()
			}
		case len(found) == 0:
			return jobs, LongPause, nil
		}
		try++
		got, after, err := c.lease(ctx, r, q, s, found, wanted)
		release(len(got))
		jobs = append(jobs, got...)
		if err != nil || after >= 0 || len(jobs) == want {
			if after <= 0 {
				after = LongPause
			}
			return jobs, after, err
		}
	}
	return jobs, 0, nil // there was work, and others took it: at once again
}
