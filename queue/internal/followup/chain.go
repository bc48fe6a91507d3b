package followup

import (
	"context"
	"errors"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// chain makes the next jobs of r's chain: the next step if r completed, which takes the
// rest of the chain along; OnExit after the last step; OnFailure and OnExit if r did not
// complete. The jobs of OnFailure and OnExit have no chain.
func (f *Follower) chain(ctx context.Context, tenant string, r *jobstore.Record) error {
	c := r.Spec.Chain
	if c == nil {
		return nil
	}
	if r.Run.State == api.JobCompleted {
		if len(c.Steps) > 0 {
			rest := *c
			rest.Steps = c.Steps[1:]
			return f.chainOn(ctx, tenant, r, &c.Steps[0], &rest, "step")
		}
		return f.chainOn(ctx, tenant, r, c.OnExit, nil, "exit")
	}
	return errors.Join(
		f.chainOn(ctx, tenant, r, c.OnFailure, nil, "failure"),
		f.chainOn(ctx, tenant, r, c.OnExit, nil, "exit"),
	)
}

// chainOn makes the job of one step of r's chain. rest is the remaining chain, nil for none.
// The id is derived from r and kind. A nil step makes no job.
func (f *Follower) chainOn(ctx context.Context, tenant string, r *jobstore.Record, step *api.ChainStep, rest *api.Chain, kind string) error {
	if step == nil {
		return nil
	}
	q := r.Queue(tenant)
	if step.Queue != "" {
		q.Name = step.Queue
	}
	first := r.Spec.ChainID
	if first == "" {
		first = r.ID
	}
	spec := &api.JobSpec{
		Payload: step.Payload, JobOptions: step.JobOptions, ParentID: r.ID, ChainID: first, ChainStep: r.Spec.ChainStep + 1,
	}
	spec.Chain = rest
	spec.By = jobstore.AuthorOf(spec, r.Spec.By)
	return f.Enqueue(ctx, q, api.DerivedJobID("chain", tenant, r.ID, kind), spec)
}
