package queue

import (
	"context"
	"strconv"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
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

// completeTargets completes the specs of jobs that run functions and that the invoker did not
// make: options that a spec leaves out are those that the function's version has for its
// asynchronous invocations. Such jobs are those of clients, of schedules and of destinations. A
// target that cannot be resolved now is left to the worker.
func (b *Broker) completeTargets(ctx context.Context, q jobstore.Queue, specs []*api.JobSpec) {
	versions := storage.NewVersions(b.store)
	known := map[api.JobTarget]*api.VersionConfig{}
	for _, spec := range specs {
		if spec.Target == nil || spec.Activation != nil && spec.Activation.Hops == 0 && spec.Schedule == nil {
			continue
		}
		config, seen := known[*spec.Target]
		if !seen {
			found, err := versions.Resolve(ctx, q.Tenant, q.Namespace, spec.Target.Function, spec.Target.Ref())
			if err == nil {
				config = &found.Version.Config
			}
			known[*spec.Target] = config
		}
		if spec.Activation == nil {
			// The right to invoke was checked when the job was enqueued. The worker checks the list
			// of roles of the version that the alias names then.
			spec.Activation = &api.AsyncActivation{Trigger: api.Trigger{Type: api.TriggerQueue}, Access: api.AccessGranted}
			if by := spec.By; by != nil {
				spec.Activation.Principal, spec.Activation.Access = by.Principal, by.Access
			}
		}
		if config == nil {
			continue
		}
		spec.Activation.OnSuccess, spec.Activation.OnFailure = config.OnSuccess, config.OnFailure
		o := config.JobOptions(max(b.store.NowMS(), spec.RunAtMS), *spec.Target)
		if spec.MaxAttempts == 0 {
			spec.MaxAttempts = o.MaxAttempts
		}
		if spec.Backoff == "" && spec.BaseDelayMS == nil && spec.MaxDelayMS == 0 {
			spec.Backoff, spec.BaseDelayMS, spec.MaxDelayMS, spec.Jitter = o.Backoff, o.BaseDelayMS, o.MaxDelayMS, spec.Jitter || o.Jitter
		}
		if spec.ExpireAtMS == 0 {
			spec.ExpireAtMS = o.ExpireAtMS
		}
	}
}

// retried returns the spec of an ended job that an operator retries, and whether it differs
// from the present one: the job may make one more attempt than it has made, does not expire
// any more, and runs a new activation, because the end of the previous one never changes. Its id is derived from the epoch and the previous
// activation, so that concurrent retries name the same one.
func (b *Broker) retried(r *jobstore.Record) (*api.JobSpec, bool) {
	before := r.Spec.ActivationID(r.ID)
	used := r.Run.Attempt >= r.Spec.WithDefaults().MaxAttempts
	if !used && r.Spec.ExpireAtMS == 0 && before == "" {
		return r.Spec, false
	}
	spec := *r.Spec
	spec.ExpireAtMS = 0
	if used {
		spec.MaxAttempts = r.Run.Attempt + 1 // may exceed api.MaxMaxAttempts
	}
	if before != "" {
		var a api.AsyncActivation
		if spec.Activation != nil {
			a = *spec.Activation
		}
		a.RetryOf, a.RetriedAtMS = before, b.store.NowMS()
		a.ActivationID = api.DerivedJobID("retry", r.ID, strconv.FormatInt(r.Run.Epoch, 10), before)
		spec.Activation = &a
	}
	return &spec, true
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
