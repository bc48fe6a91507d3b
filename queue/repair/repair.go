// Package repair finds records and index entries that a crash left inconsistent, and that
// neither a call nor maintenance would find, and corrects them. It has three scans, which
// package sweeper repeats:
//
//	Jobs         reads the records of all jobs and batches (scan.go), and from each its index
//	             entries. It finds a job in no index, and a batch that was not finished: jobs.go,
//	             batches.go
//	Queues       reads the indexes of a tenant's queues, and from each entry its record. It finds
//	             an entry where the job does not belong (a stray), as of a job in two sets, and
//	             a queue that is not marked as due or ready: strays.go, queues.go
//	Activations  checks activations that the caller found not to have ended. It finds one whose
//	             job has ended or does not exist: activations.go
//
// Calls are in progress while a scan reads the store, so a state may seem wrong that is merely
// between two steps. Three rules keep repairs safe:
//
//   - A state is repaired only if it has lasted for repairGraceMS: by the time in the record, or
//     by what this process remembers of an earlier scan (Suspects).
//   - A correction has an effect only if the state still is as it was read: NX and XX options,
//     compare-and-set on the score, or a script that compares the job's run.
//   - An entry is added where it belongs before one is removed elsewhere.
//
// Of several processes that repair the same state, the one whose write had an effect reports it.
package repair

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// repairGraceMS is how long a call may be under way, in milliseconds. A state that a crash or
// an unfinished call can explain is repaired only after it has lasted this long. It is much
// longer than any call takes, because the clocks of replicas differ.
const repairGraceMS = 60_000

// The kinds of repairs, which are also the labels of their metric.
const (
	KindDue        = "due"        // a queue had due work, but was not in the due set, or with a later moment
	KindReady      = "ready"      // an fn queue had jobs that may start, but was not in the ready set
	KindStray      = "stray"      // an index held a job that is in another state or queue, or does not exist
	KindExpiry     = "expiry"     // a job that had ended was in the index of jobs that expire
	KindOrphan     = "orphan"     // a job was in no index
	KindUnlisted   = "unlisted"   // a queue with jobs was not in its tenant's list
	KindWaiting    = "waiting"    // a job waited for jobs that have all ended
	KindBatch      = "batch"      // a batch was complete, but its callback was not made, or open and unchanged for too long
	KindJobless    = "jobless"    // an activation's job did not exist
	KindUnfinished = "unfinished" // an activation's job had ended, but the activation had not
)

// Repair is one correction that was made.
type Repair struct {
	Kind                     string
	Tenant, Namespace, Queue string
	ID                       string // of the job, activation or batch; "" for a queue
	Reason                   string
}

// Findings is the result of one call of a scan. It is valid together with an error: it then
// covers the part that was read before.
type Findings struct {
	// Reads is the approximate number of commands that the call took, writes included. The
	// sweeper uses it to stay within its budget.
	Reads int
	// Busy reports whether jobs are active in the part, or a suspicious state in it has to
	// be checked again soon.
	Busy bool
	// End reports whether the pass over the part is complete.
	End bool
	// Repairs holds the corrections that this call made.
	Repairs []Repair
	// Unreadable holds the keys or ids of records that cannot be decoded.
	Unreadable []string
}

// addRepair adds a repair to f.
func (f *Findings) addRepair(kind string, q jobstore.Queue, id, reason string) {
	f.Repairs = append(f.Repairs, Repair{kind, q.Tenant, q.Namespace, q.Name, id, reason})
}

// Repairer corrects leftovers of crashes in the store of a Broker. It is not safe for concurrent
// use, but any number of Repairers may work on one store. It keeps its positions and suspects in
// memory: a new process begins its passes at the start, and waits for the grace once more.
type Repairer struct {
	jobs        *jobstore.Store
	store       *storage.Store
	rdb         redis.UniversalClient
	activations *activations.Repository
	owner       Owner
	queues      Suspects[queueSuspect]
	batches     Suspects[jobstore.Key]
	list        queueList
	far         map[string]jobstore.Position // by set with more than strayPage members, the position that was reached
	scan        scan
}

// Owner handles the effects of a repair outside the records of jobs. queue.Broker provides it;
// an interface avoids a cycle of imports. All methods may be repeated.
type Owner interface {
	// EndActivation ends an activation as its job r ended, unless it has ended. ended
	// reports whether this call ended it.
	EndActivation(ctx context.Context, tenant, id string, r *jobstore.Record) (ended bool, a *activations.Record, err error)
	// SendOutcome ends the activation of the job r, which has ended, and sends its
	// outcome to the destination that its version names.
	SendOutcome(ctx context.Context, tenant string, r *jobstore.Record) error
	// FinishBatch makes the callback of a complete batch, unless it was made.
	FinishBatch(ctx context.Context, tenant, id string) error
	// DueAt reports the Unix time in milliseconds at which a queue is due.
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

// added reports whether cmd, which adds one entry to a set, added it.
func added(ctx context.Context, cmd *redis.IntCmd) (bool, error) {
	return cmd.Val() == 1, jobstore.Failure(ctx, "repair", cmd.Err())
}
