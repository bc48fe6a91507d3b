package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Unchanged operates on a job only while it is as its caller has read it: in the same state, queue
// and attempt. A caller that decides by other properties of the job needs it, since the job may
// change between the read and the operation. Its methods return CodeJobState for a job that has
// changed, and otherwise the errors of the Broker's methods of the same names.
type Unchanged struct {
	broker *Broker
	tenant string
	seen   *api.Job
}

// Unchanged returns the operations on a job of tenant as Get has returned it.
func (b *Broker) Unchanged(tenant string, seen *api.Job) Unchanged { return Unchanged{b, tenant, seen} }

// Retry is Broker.Retry.
func (u Unchanged) Retry(ctx context.Context) error {
	_, err := u.broker.retry(ctx, u.tenant, u.seen.ID, u.seen)
	return err
}

// Cancel is Broker.Cancel.
func (u Unchanged) Cancel(ctx context.Context) error {
	_, err := u.broker.cancel(ctx, u.tenant, u.seen.ID, u.seen)
	return err
}

// Move is Broker.Move.
func (u Unchanged) Move(ctx context.Context, queue string) error {
	_, err := u.broker.moveTo(ctx, u.tenant, u.seen.ID, queue, u.seen)
	return err
}

// Delete is Broker.Delete.
func (u Unchanged) Delete(ctx context.Context) error {
	return u.broker.delete(ctx, u.tenant, u.seen.ID, u.seen)
}

// changed reports whether a job is no longer as it was seen. A nil seen matches every job.
func changed(r *jobstore.Record, tenant string, seen *api.Job) bool {
	if seen == nil {
		return false
	}
	now := r.View(tenant)
	return now.State != seen.State || now.Queue != seen.Queue || now.Attempt != seen.Attempt || now.EndedAtMS != seen.EndedAtMS
}

// changedSince returns the error with CodeJobState for a job that is no longer as it was seen.
func changedSince(r *jobstore.Record) error {
	return api.Errorf(api.CodeJobState, "job %s has changed since it was read: it is %s in queue %s", r.ID, r.Run.State, r.Spec.Queue)
}
