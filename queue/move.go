package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// moveAll makes moves of jobs of q, each if the job is still as it was read, and sets their
// outcomes. It then handles the consequences of the moves and notifies waiting fetches. A failure
// to handle consequences is logged, not returned: maintenance tries again.
func (b *Broker) moveAll(ctx context.Context, q jobstore.Queue, moves []*jobstore.Move) error {
	if len(moves) == 0 {
		return nil
	}
	follow, err := b.jobs.Apply(ctx, q, moves)
	if err != nil {
		return err
	}
	wake := false
	for _, m := range moves {
		if m.Outcome == jobstore.Moved {
			b.metrics.left(m.Record.Run.State, m.To.State)
			wake = wake || m.To.State == api.JobPending
		}
	}
	b.recordRetries(ctx, q.Tenant, moves)
	if wake {
		b.notifier.Wake(q)
	}
	b.followUp(ctx, q, follow)
	return nil
}

// changeTries is how often a change is tried if the record keeps changing concurrently. Each
// conflict means that another change succeeded, so that few calls need a second try.
const changeTries = 20

// change makes the move that decide returns for a job. If the job changes concurrently it
// calls decide again with the new record. decide returns nil if there is nothing to change.
// change returns the job after it. Errors: CodeJobNotFound, decide's, CodeStoreConflict,
// CodeStoreUnavailable.
func (b *Broker) change(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (*jobstore.Record, error) {
	for range changeTries {
		r, err := b.jobs.Find(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		m, err := decide(r)
		if err != nil || m == nil {
			return r, err
		}
		if err := b.moveAll(ctx, r.Queue(tenant), []*jobstore.Move{m}); err != nil {
			return nil, err
		}
		switch m.Outcome {
		case jobstore.Moved:
			after := *r
			after.Run, after.Stored = m.To, m.To.String()
			if m.Field != "" {
				after.Details[m.Field] = m.Value
			}
			if m.Spec != "" {
				after.Spec, err = jobstore.DecodeSpec(m.Spec)
				if err != nil {
					return nil, err
				}
			}
			return &after, nil
		case jobstore.Missing:
			return nil, jobstore.NotFound(id)
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "job %s keeps changing: try again", id)
}

// stateConflict returns the error with CodeJobState for an operation that the state of r does
// not allow. what names the operation by its participle, for example "retried".
func stateConflict(r *jobstore.Record, what string) error {
	return api.Errorf(api.CodeJobState, "job %s is %s: it cannot be %s", r.ID, r.Run.State, what)
}
