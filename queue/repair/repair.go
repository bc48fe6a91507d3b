package repair

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// repairGraceMS is how long a call may be under way: what looks as if a crash had cut
// it is left alone until it has looked so for this long.
const repairGraceMS = 60_000

// The kinds of repairs, as metrics name them.
const (
	KindDue        = "due"        // a queue in which something is due was in no due set, or too late
	KindReady      = "ready"      // an fn queue with jobs to begin was in no ready set
	KindStray      = "stray"      // an index held a job that is elsewhere, or is not
	KindExpiry     = "expiry"     // an ended job was still to expire
	KindOrphan     = "orphan"     // a job was in no index
	KindUnlisted   = "unlisted"   // a queue with jobs was not in its tenant's list
	KindWaiting    = "waiting"    // a job waited for jobs that have all ended
	KindBatch      = "batch"      // a batch was done, and its callback not made
	KindJobless    = "jobless"    // an activation's job was gone
	KindUnfinished = "unfinished" // an activation's job had ended, and it had not
)

// Repair is a leftover of a crash that was mended.
type Repair struct {
	Kind                     string
	Tenant, Namespace, Queue string
	ID                       string // of the job, activation or batch; "" for a queue
	Reason                   string
}

// Look is what a look at part of the store cost and found.
type Look struct {
	// Reads are the commands that it took.
	Reads int
	// Busy: jobs run there, or something is to be looked at once more soon.
	Busy bool
	// End: there is no more of it.
	End bool
	// Repairs were made, each by this call alone.
	Repairs []Repair
	// Unreadable are keys or ids of records that cannot be read.
	Unreadable []string
}

func (l *Look) mended(kind string, q jobstore.Queue, id, reason string) {
	l.Repairs = append(l.Repairs, Repair{kind, q.Tenant, q.Namespace, q.Name, id, reason})
}

// Repairer finds what crashes left in a broker's store, where no call and no
// maintenance would come upon it, and mends it. Any number may work at once; one is
// not safe for concurrent use. It takes what it looks at as if calls were under way:
// every repair is made only if it still applies, by the store's own word.
type Repairer struct {
	jobs        *jobstore.Store
	store       *storage.Store
	rdb         redis.UniversalClient
	activations *activations.Repository
	owner       Owner
	queues      Suspects[queueSuspect]
	batches     Suspects[jobstore.Key]
	list        queueList
	far         map[string]jobstore.Position // how far sets of more than strayPage have been looked through
	scan        scan
}

// Owner does what a repair leads to beyond the records of jobs.
type Owner interface {
	// EndActivation ends an activation as its job r ended, unless it has ended. ended
	// reports whether this call did.
	EndActivation(ctx context.Context, tenant, id string, r *jobstore.Record) (ended bool, a *activations.Record, err error)
	// SendOutcome ends the activation of the job r, which has ended, and sends its
	// outcome where its version wants it.
	SendOutcome(ctx context.Context, tenant string, r *jobstore.Record) error
	// FinishBatch makes the callback of a batch that is done, unless it was made.
	FinishBatch(ctx context.Context, tenant, id string) error
	// DueAt reports the moment, in milliseconds, at which a queue is due.
	DueAt(ms int64)
	// Wake reports that a queue has pending jobs.
	Wake(q jobstore.Queue)
}

// New returns a Repairer of the jobs in store.
func New(store *storage.Store, jobs *jobstore.Store, owner Owner) *Repairer {
	return &Repairer{
		jobs: jobs, store: store, rdb: store.Client(), activations: activations.New(store), owner: owner, far: map[string]jobstore.Position{},
	}
}

// added says whether one entry of a set was made by this command.
func added(ctx context.Context, cmd *redis.IntCmd) (bool, error) {
	return cmd.Val() == 1, jobstore.Failure(ctx, "repair", cmd.Err())
}
