package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// moveAll makes moves of jobs of q, each if the job is still as it was read, and sets their
// outcomes. It notifies waiting fetches and handles the consequences of the moves.
func (b *Broker) moveAll(ctx context.Context, q jobstore.Queue, moves []*jobstore.Move) error {
	ended, err := b.apply(ctx, q, moves)
	if err != nil {
		return err
	}
	b.follower.Follow(ctx, q, ended)
	return nil
}

// apply is moveAll without the consequences: ended are the jobs whose ends have some.
func (b *Broker) apply(ctx context.Context, q jobstore.Queue, moves []*jobstore.Move) (ended []string, err error) {
	if len(moves) == 0 {
		return nil, nil
	}
	ended, err = b.jobs.Apply(ctx, q, moves)
	if err != nil {
		return nil, err
	}
	wake := false
	for _, m := range moves {
		if m.Outcome == jobstore.Moved {
			b.metrics.left(m.Record.Run.State, m.To.State)
			wake = wake || m.To.State == api.JobPending
		}
	}
	if wake {
		b.notifier.Wake(q)
	}
	return ended, nil
}

// changeTries is how often a change is tried if the record keeps changing concurrently. Each
// conflict means that another change succeeded, so that few calls need a second try.
const changeTries = 20

// Change makes the move that decide returns for a job, and handles its consequences. If the job
// changes concurrently it calls decide again with the new record. decide returns nil if there is
// nothing to change. Change returns the job after it. Errors: CodeJobNotFound, decide's,
// CodeStoreConflict, CodeStoreUnavailable.
func (b *Broker) Change(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (*jobstore.Record, error) {
	r, ended, err := b.changeOnly(ctx, tenant, id, decide)
	if ended {
		b.follower.Follow(ctx, r.Queue(tenant), []string{id})
	}
	return r, err
}

// changeOnly is Change without the consequences: ended reports whether the job's end has some.
func (b *Broker) changeOnly(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (r *jobstore.Record, ended bool, err error) {
	return b.changeFound(ctx, tenant, id, b.jobs.Find, decide)
}

// changeFound is changeOnly for a job that find reads.
func (b *Broker) changeFound(ctx context.Context, tenant, id string, find func(ctx context.Context, tenant, id string) (*jobstore.Record, error), decide func(r *jobstore.Record) (*jobstore.Move, error)) (r *jobstore.Record, ended bool, err error) {
	for range changeTries {
		r, err := find(ctx, tenant, id)
		if err != nil {
			return nil, false, err
		}
		m, err := decide(r)
		if err != nil || m == nil {
			return r, false, err
		}
		follow, err := b.apply(ctx, r.Queue(tenant), []*jobstore.Move{m})
		if err != nil {
			return nil, false, err
		}
		switch m.Outcome {
		case jobstore.Moved:
			r, err = m.After()
			return r, len(follow) > 0, err
		case jobstore.Missing:
			return nil, false, jobstore.NotFound(id)
		}
	}
	return nil, false, api.Errorf(api.CodeStoreConflict, "job %s keeps changing: try again", id)
}

// stateConflict returns the error with CodeJobState for an operation that the state of r does
// not allow. what names the operation by its participle, for example "retried".
func stateConflict(r *jobstore.Record, what string) error {
	return api.Errorf(api.CodeJobState, "job %s is %s: it cannot be %s", r.ID, r.Run.State, what)
}
