package queue

import (
	"context"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage/activations"
)

// EnqueueInvocation adds the job of an asynchronous invocation to the queue that spec names,
// under the given id. It returns the spec and the state that the job has: if the id is derived, an
// earlier call may have made the job with another spec, and it may have ended. The state is "" for
// a random id. Errors: CodeQueueDraining, CodeShuttingDown, CodeStoreUnavailable.
func (b *Broker) EnqueueInvocation(ctx context.Context, tenant, id string, spec *api.JobSpec) (*api.JobSpec, api.JobState, error) {
	q := jobstore.Queue{Tenant: tenant, Namespace: spec.Namespace, Name: spec.Queue}
	if _, err := b.enqueueTogether(ctx, q, []string{id}, []*api.JobSpec{spec}, ofCaller, false); err != nil {
		return nil, "", err
	}
	if spec.Activation == nil || spec.Activation.Fingerprint == "" {
		return spec, "", nil // its id is random, so this call made it
	}
	r, err := b.jobs.Find(ctx, tenant, id)
	if err != nil {
		return nil, "", err
	}
	return r.Spec, r.Run.State, nil
}

// recordRetries is recordRetry for those of moves that were made.
func (b *Broker) recordRetries(ctx context.Context, tenant string, moves []*jobstore.Move) error {
	for _, m := range moves {
		if m.Outcome != jobstore.Moved {
			continue
		}
		r, err := m.After()
		if err != nil {
			return err
		}
		b.recordRetry(ctx, tenant, r.ID, r.Spec)
	}
	return nil
}

// recordRetry writes the record of the activation that a retried job will run, so that it can be
// read before it runs. A worker that is faster writes its own. A failure is logged: the job has
// been moved, and the caller must not repeat the retry.
func (b *Broker) recordRetry(ctx context.Context, tenant, jobID string, spec *api.JobSpec) {
	a := activations.Queued(tenant, jobID, spec)
	if a == nil {
		return
	}
	if _, _, err := b.activations.Start(ctx, a); err != nil {
		b.log.Warn("the record of a retried activation was not written; the worker writes it when the activation runs", zap.String("tenant", tenant), zap.String("job_id", jobID), zap.Error(err))
	}
}
