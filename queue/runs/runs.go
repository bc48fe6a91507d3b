// Package runs keeps the runs of functions with durable steps. A run is a job: its steps are a hash
// of the job, and its waits are states of the job. A run that sleeps or waits for an event is
// scheduled, one that waits for an approval is held.
//
//	runs.go     New; the records of steps, which a lease writes
//	park.go     an activation leaves its run asleep
//	arrivals.go what ends a wait: events and decisions
//	send.go     an event is sent to a run, or to the runs that wait for it
//	view.go     a run as the API shows it
//
// Each write compares: the record of a step with the epoch of the lease, by job_step.lua, and every
// change of the job with the stored run, by job_move.lua. An event reaches a run in the script that
// wakes it, and changes the stored run of a job that is active: an activation that decided to leave
// its run asleep before the event came is refused, and decides again.
package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// Runs keeps the runs of all tenants. It is safe for concurrent use.
type Runs struct {
	broker *queue.Broker
	jobs   *jobstore.Store
	store  *storage.Store
	rdb    redis.UniversalClient
}

// New returns the Runs of broker, which works on store.
func New(store *storage.Store, broker *queue.Broker) *Runs {
	return &Runs{broker: broker, jobs: broker.Jobs(), store: store, rdb: store.Client()}
}

// fieldSums is the field of a job's steps with their number and bytes.
const fieldSums = "sums"

// stored is a step as the store has it.
type stored struct {
	step.Step
	Taken string `json:"taken,omitempty"`
}

// Load returns the steps of the job that l leases, in the order in which they ended, the others
// last. It deletes arrivals that have ended a wait, which an interrupted Record left. Errors:
// CodeStoreUnavailable.
func (r *Runs) Load(ctx context.Context, l step.Lease) ([]step.Step, error) {
	steps, err := r.steps(ctx, l.Tenant, l.ID)
	if err != nil {
		return nil, err
	}
	var taken []string
	for i := range steps {
		if id := steps[i].Taken; id != "" {
			taken = append(taken, id)
		}
	}
	return steps, r.drop(ctx, l, taken)
}

// steps reads the steps of a job.
func (r *Runs) steps(ctx context.Context, tenant, id string) ([]step.Step, error) {
	fields, err := r.rdb.HGetAll(ctx, r.store.JobKeys(tenant).Steps(id)).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read the steps of a job", err)
	}
	out := make([]step.Step, 0, len(fields))
	for field, text := range fields {
		if field == fieldSums || text == "" {
			continue
		}
		var s stored
		if err := json.Unmarshal([]byte(text[1:]), &s); err != nil {
			return nil, api.Wrap(api.CodeInternal, err, "decode a step")
		}
		s.Step.Taken = s.Taken
		out = append(out, s.Step)
	}
	slices.SortFunc(out, func(a, b step.Step) int {
		return cmp.Or(cmp.Compare(unended(a.Seq), unended(b.Seq)), cmp.Compare(a.StartedAtMS, b.StartedAtMS), cmp.Compare(a.Key(), b.Key()))
	})
	return out, nil
}

// unended sorts steps that have not ended behind the others.
func unended(seq int) uint { return uint(seq) - 1 }

// Record writes a step of the job that l leases. A step with a final record is never written again:
// the same record once more succeeds, any other is CodeStoreConflict. Errors: CodeHostStepLimit,
// CodeJobLeaseLost, CodeJobNotFound, CodeTenantRate, CodeStoreUnavailable.
func (r *Runs) Record(ctx context.Context, l step.Lease, s *step.Step) error {
	raw, err := api.EncodeJSON(stored{Step: *s, Taken: s.Taken})
	if err != nil {
		return api.Wrap(api.CodeInternal, err, "encode a step")
	}
	if err := r.broker.TakeBytes(ctx, l.Tenant, len(raw)); err != nil {
		return err
	}
	mark := "0"
	if s.Status.Final() {
		mark = "1"
	}
	keys := r.store.JobKeys(l.Tenant)
	reply, err := r.store.Script(ctx, storage.ScriptJobStep, []string{keys.Run(l.ID), keys.Steps(l.ID)},
		l.Epoch, s.Key(), mark+string(raw), step.MaxSteps, step.MaxRunBytes)
	if err != nil {
		return err
	}
	switch reply {
	case "ok":
	case "gone":
		return jobstore.NotFound(l.ID)
	case "final":
		return api.Errorf(api.CodeStoreConflict, "the step %q is recorded already", s.Label())
	case "steps":
		return api.Errorf(api.CodeHostStepLimit, "the run has more than %d steps", step.MaxSteps)
	case "bytes":
		return api.Errorf(api.CodeHostStepLimit, "the steps of the run have more than %s", api.SizeText(step.MaxRunBytes))
	default:
		return api.Errorf(api.CodeJobLeaseLost, "the lease of the run is no longer held")
	}
	if s.Kind == step.KindEvent && s.Status.Final() {
		// An entry that stays is dropped by the next event of that name.
		if err := r.rdb.ZRem(ctx, keys.Waiters(l.Namespace, s.Name), l.ID).Err(); err != nil {
			return jobstore.Failure(ctx, "end a wait", err)
		}
	}
	if s.Taken == "" {
		return nil
	}
	return r.drop(ctx, l, []string{s.Taken})
}

// drop deletes arrivals of a job.
func (r *Runs) drop(ctx context.Context, l step.Lease, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	err := r.rdb.HDel(ctx, r.store.JobKeys(l.Tenant).Meta(l.ID), fields...).Err()
	return jobstore.Failure(ctx, "delete arrivals of a job", err)
}
