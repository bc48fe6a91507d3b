package queue

import (
	"cmp"
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/consent"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/targets"
)

// The operations of this file change one job on behalf of a client. The states in which each
// is allowed; in the others it fails with CodeJobState:
//
//	Cancel   waiting, scheduled, held, pending, active, retrying   → cancelled
//	Retry    dead, cancelled                                       → pending
//	Hold     waiting, scheduled, pending, retrying                 → held
//	Approve  held                                                  → pending or scheduled
//	Reject   held                                                  → dead, or pending for a run
//	Move     all but active and the ended ones                     → the same, in another queue
//	Delete   all but active                                        → none

// Cancel ends a job that has not ended and returns it. The worker of an active job is
// informed by the outcome of its next heartbeat. A repeat succeeds. Errors: CodeInvalid,
// CodeJobNotFound, CodeJobState, CodeStoreConflict, CodeStoreUnavailable.
func (b *Broker) Cancel(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.cancel(ctx, tenant, id, nil)
}

func (b *Broker) cancel(ctx context.Context, tenant, id string, seen *api.Job) (*api.Job, error) {
	return b.transition(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		switch {
		case changed(r, tenant, seen):
			return nil, changedSince(r)
		case r.Run.State == api.JobCancelled:
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		case r.Run.State.Terminal():
			return nil, stateConflict(r, "cancelled")
		}
		m := jobstore.Move{Record: r, To: r.Run.To(api.JobCancelled, b.store.NowMS())}.End()
		return &m, nil
	})
}

// Retry makes a dead or cancelled job pending for one more attempt and returns it. The job
// keeps its id, errors and count of attempts; its maximum is raised if no attempt is left. It loses its expiry, does not take its unique key again, and runs a
// new activation if it runs a function. What followed its first end stays: its chain, its batch
// and its dependents have gone on. Errors: as of Cancel.
func (b *Broker) Retry(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.retry(ctx, tenant, id, nil)
}

func (b *Broker) retry(ctx context.Context, tenant, id string, seen *api.Job) (*api.Job, error) {
	if err := api.ValidateJobID(id); err != nil {
		return nil, err
	}
	r, err := b.Change(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		if changed(r, tenant, seen) {
			return nil, changedSince(r)
		}
		if r.Run.State != api.JobDead && r.Run.State != api.JobCancelled {
			return nil, stateConflict(r, "retried")
		}
		if err := b.follower.SendOutcome(ctx, tenant, r); err != nil { // the outcome of the end that Retry undoes
			return nil, err
		}
		return b.revive(r)
	})
	if err != nil {
		return nil, err
	}
	b.recordRetry(ctx, tenant, id, r.Spec)
	return b.show(ctx, tenant, r)
}

// revive returns the move that makes an ended job pending for one more attempt. The job does
// not expire any more. Attempts go on counting, so that each number in the job's errors stands
// for one attempt. Its epoch is not reset, so calls of earlier workers remain refused.
func (b *Broker) revive(r *jobstore.Record) (m *jobstore.Move, err error) {
	now := b.store.NowMS()
	m = &jobstore.Move{Record: r, To: r.Run.To(api.JobPending, now)}
	if spec, changed := targets.Retried(r, now); changed {
		m.Spec, err = jobstore.EncodeSpec(spec)
		if err != nil {
			return nil, err
		}
	}
	return consent.Revived(m, now)
}

// Hold keeps a job that is not active from running until Approve, and returns it. reason has
// at most 1,024 bytes, and is cut to 256 beyond the quota of bytes. A repeat succeeds. Errors: as
// of Cancel.
func (b *Broker) Hold(ctx context.Context, tenant, id, reason string) (*api.Job, error) {
	if len(reason) > maxHoldReason {
		return nil, api.InvalidField("reason", "must have at most "+strconv.Itoa(maxHoldReason)+" bytes")
	}
	most, err := b.admission.Texts(ctx, tenant, len(reason))
	if err != nil {
		return nil, err
	}
	return b.transition(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) {
		switch r.Run.State {
		case api.JobHeld:
			return nil, nil //nolint:nilnil // documented by Change: there is nothing to write
		case api.JobPending, api.JobScheduled, api.JobRetrying, api.JobWaiting:
			return &jobstore.Move{Record: r, To: r.Run.To(api.JobHeld, b.store.NowMS()), Field: jobstore.FieldHoldReason, Value: jobstore.Shorten(reason, most)}, nil
		}
		return nil, stateConflict(r, "held")
	})
}

// Approve releases a held job and returns it. The job is pending, or scheduled if its time
// has not come. Errors: as of Cancel.
func (b *Broker) Approve(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.Decide(ctx, tenant, id, true, "")
}

// Reject ends a held job as dead and returns it. Errors: as of Cancel.
func (b *Broker) Reject(ctx context.Context, tenant, id string) (*api.Job, error) {
	return b.Decide(ctx, tenant, id, false, "")
}

// Decide is Approve or Reject. A run of a function that awaits the decision resumes in both cases,
// with the comment, and with the actor of ctx.
func (b *Broker) Decide(ctx context.Context, tenant, id string, approved bool, comment string) (*api.Job, error) {
	ballot := consent.Ballot{Approved: approved, Comment: comment, Key: event.ActorOf(ctx), Steers: true}
	return b.transition(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) { return ballot.Move(r, b.store.NowMS()) })
}

// transition makes the move that decide returns, and returns the job as the API shows it. decide may
// be called several times, see Change.
func (b *Broker) transition(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (*api.Job, error) {
	if err := api.ValidateJobID(id); err != nil {
		return nil, err
	}
	r, err := b.Change(ctx, tenant, id, decide)
	if err != nil {
		return nil, err
	}
	return b.show(ctx, tenant, r)
}

// Get returns a job with its attempts and their errors. Errors: CodeInvalid, CodeJobNotFound,
// CodeStoreUnavailable.
func (b *Broker) Get(ctx context.Context, tenant, id string) (*api.Job, error) {
	if err := api.ValidateJobID(id); err != nil {
		return nil, err
	}
	r, err := b.jobs.Find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return b.show(ctx, tenant, r)
}

// show returns r as the API shows it, with its attempts and their errors, and what it has spent.
func (b *Broker) show(ctx context.Context, tenant string, r *jobstore.Record) (*api.Job, error) {
	errs, spent, err := b.jobs.History(ctx, tenant, r.ID)
	if err != nil {
		return nil, err
	}
	j := r.View(tenant)
	r.Ledger = spent
	account.Describe(r, j)
	return j, r.AddAttempts(j, errs)
}

// Move moves a job that is neither active nor ended to another queue of its namespace, and
// returns it. It keeps its priority and age. A job with a unique key cannot be moved, because
// the key belongs to the queue. Errors: as of Cancel, and CodeQueueReserved for fn queues.
func (b *Broker) Move(ctx context.Context, tenant, id, queue string) (*api.Job, error) {
	return b.moveTo(ctx, tenant, id, queue, nil)
}

func (b *Broker) moveTo(ctx context.Context, tenant, id, queue string, seen *api.Job) (*api.Job, error) {
	if err := cmp.Or(api.ValidateJobID(id), api.ValidateQueue(queue)); err != nil {
		return nil, err
	}
	for range changeTries {
		r, err := b.jobs.Find(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		switch {
		case changed(r, tenant, seen):
			return nil, changedSince(r)
		case jobstore.IsFunctionQueue(queue) || jobstore.IsFunctionQueue(r.Spec.Queue):
			return nil, api.Errorf(api.CodeQueueReserved, "queues fn.… are reserved for the platform: jobs cannot be moved to or from them")
		case r.Spec.UniqueKey != "":
			return nil, api.Errorf(api.CodeJobState, "job %s has a unique key in its queue: it cannot be moved", id)
		case r.Run.State.Terminal() || r.Run.State == api.JobActive || r.Run.AwaitsApproval():
			return nil, stateConflict(r, "moved")
		case r.Spec.Queue == queue:
			return b.show(ctx, tenant, r)
		}
		from := r.Queue(tenant)
		to := jobstore.Queue{Tenant: tenant, Namespace: from.Namespace, Name: queue}
		asked, err := b.consent.Moved(ctx, r, to)
		if err != nil {
			return nil, err
		}
		done, err := b.jobs.Requeue(ctx, r, from, to, asked)
		if err != nil {
			return nil, err
		}
		if !done {
			continue
		}
		b.jobs.ForgetSummary(tenant, id)
		return b.Get(ctx, tenant, id)
	}
	return nil, api.Errorf(api.CodeStoreConflict, "job %s keeps changing: try again", id)
}

// Delete deletes a job with its record. A job that has not ended is cancelled first, so that
// the consequences of its end are handled. They are handled before the record is deleted: it
// holds the chain and the batch. Errors: as of Cancel, where CodeJobState means that the job
// is active.
func (b *Broker) Delete(ctx context.Context, tenant, id string) error {
	return b.delete(ctx, tenant, id, nil)
}

func (b *Broker) delete(ctx context.Context, tenant, id string, seen *api.Job) error {
	if err := api.ValidateJobID(id); err != nil {
		return err
	}
	for range changeTries {
		r, err := b.jobs.Find(ctx, tenant, id)
		if err != nil {
			return err
		}
		if changed(r, tenant, seen) {
			return changedSince(r)
		}
		if r.Run.State == api.JobActive {
			return stateConflict(r, "deleted; cancel it first")
		}
		if !r.Run.State.Terminal() {
			if _, err := b.cancel(ctx, tenant, id, seen); err != nil {
				return err
			}
			seen = nil // it is as this call made it
			continue
		}
		if err := b.follower.Marked(ctx, r.Queue(tenant), r.ID); err != nil {
			return err
		}
		deleted, err := b.jobs.Purge(ctx, r.Queue(tenant), r.Run.State, []*jobstore.Record{r})
		if err != nil || deleted == 1 {
			return err
		}
	}
	return api.Errorf(api.CodeStoreConflict, "job %s keeps changing: try again", id)
}
