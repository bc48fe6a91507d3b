// Package approvals serves the approvals of held jobs: votes, and the list of those that wait for one.
// Package queue holds the jobs, and queue/internal/consent decides what votes do.
//
//	approvals.go  New, Vote, Get
//	list.go       List
package approvals

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/internal/consent"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// Ballot is a vote on the approval of a job.
type Ballot = consent.Ballot

// Standing is a key in whose name a vote may be cast.
type Standing = consent.Standing

// Record is a job as it was read.
type Record = jobstore.Record

// Approvals serves the approvals of all tenants. It is safe for concurrent use.
type Approvals struct {
	broker *queue.Broker
	jobs   *jobstore.Store
	store  *storage.Store
}

// New returns the Approvals of broker, which works on store.
func New(store *storage.Store, broker *queue.Broker) *Approvals {
	return &Approvals{broker: broker, jobs: broker.Jobs(), store: store}
}

// Vote counts a vote, and returns the approval after it. A repeat of the same vote succeeds. Errors:
// CodeApprovalNotFound, CodeApprovalDenied, CodeJobState if the approval was decided or the key has cast
// another vote, CodeInvalid, CodeStoreConflict, CodeStoreUnavailable.
func (a *Approvals) Vote(ctx context.Context, tenant, id string, b Ballot) (approval.Item, error) {
	if err := api.ValidateJobID(id); err != nil {
		return approval.Item{}, err
	}
	if len(b.Comment) > approval.MaxCommentBytes {
		return approval.Item{}, api.InvalidField("comment", "must have at most 1024 bytes")
	}
	if b.Key != "" {
		ctx = event.WithActor(ctx, b.Key)
	}
	r, err := a.broker.Change(ctx, tenant, id, func(r *jobstore.Record) (*jobstore.Move, error) { return b.Move(r, a.store.NowMS()) })
	if err != nil {
		return approval.Item{}, notFound(id, err)
	}
	item, ok := view(r)
	if !ok {
		return item, missing(id)
	}
	return item, nil
}

// Get returns the approval of a job, with its payload. Errors: CodeApprovalNotFound, CodeStoreUnavailable.
func (a *Approvals) Get(ctx context.Context, tenant, id string) (approval.Item, error) {
	if err := api.ValidateJobID(id); err != nil {
		return approval.Item{}, err
	}
	r, err := a.jobs.FindWith(ctx, tenant, id, jobstore.FieldHoldReason)
	if err != nil {
		return approval.Item{}, err
	}
	if r == nil {
		return approval.Item{}, missing(id)
	}
	item, ok := view(r)
	if !ok {
		return item, missing(id)
	}
	item.Payload = r.Spec.Payload
	return item, nil
}

// missing returns the error with CodeApprovalNotFound.
func missing(id string) error {
	return api.Errorf(api.CodeApprovalNotFound, "approval %s does not exist", id)
}

// notFound returns missing for the error of a job that does not exist, else err.
func notFound(id string, err error) error {
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return missing(id)
	}
	return err
}

// view returns the approval of r without its payload, and whether it has one.
func view(r *jobstore.Record) (approval.Item, bool) {
	held := r.Run.State == api.JobHeld
	item, ok := approval.View(r.Spec.Approval, approval.Holding{Held: held, SinceMS: r.Run.At, Reason: r.Details[jobstore.FieldHoldReason]})
	item.ID, item.Namespace, item.Queue, item.Tags = r.ID, r.Spec.Namespace, r.Spec.Queue, r.Spec.Tags
	item.Function = event.FunctionOf(r.Spec.Queue)
	if r.Spec.Target != nil {
		item.Function = r.Spec.Target.Function
	}
	return item, ok
}
