package runs

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
)

// Get returns a run: a job, with the steps that its function has recorded. A job whose function has
// recorded none is a run without steps. Errors: CodeInvalid, CodeJobNotFound, CodeStoreUnavailable.
func (r *Runs) Get(ctx context.Context, tenant, id string) (*step.Run, error) {
	job, err := r.broker.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	steps, err := r.steps(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for i := range steps {
		taken[steps[i].Taken] = true
	}
	waiting, err := r.arrivals(ctx, tenant, id, taken)
	if err != nil {
		return nil, err
	}
	run := &step.Run{
		ID: job.ID, Namespace: job.Namespace, Queue: job.Queue, State: string(job.State), Attempt: job.Attempt,
		CreatedAt: job.CreatedAtMS, EndedAt: job.EndedAtMS, DueAt: job.DueAtMS, HoldReason: job.HoldReason, DeadReason: job.DeadReason,
		Result: job.Result, Activation: job.ActivationID, Steps: steps,
	}
	if n := len(job.Errors); n > 0 && job.State != api.JobCompleted {
		run.Error = job.Errors[n-1].Error
	}
	for _, field := range waiting {
		if name := nameOf(field); name != "" {
			run.Events = append(run.Events, name)
		}
	}
	return run, nil
}
