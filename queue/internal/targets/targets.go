// Package targets completes the specs of jobs that run functions, when they are made and when they are
// retried.
package targets

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// Complete completes the specs of jobs that run functions and that the invoker did not
// make: options that a spec leaves out are those that the function's version has for its
// asynchronous invocations. Such jobs are those of clients, of schedules and of destinations. A
// target that cannot be resolved now is left to the worker.
func Complete(ctx context.Context, store *storage.Store, q jobstore.Queue, specs []*api.JobSpec) {
	versions := storage.NewVersions(store)
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
		o := config.JobOptions(max(store.NowMS(), spec.RunAtMS), *spec.Target)
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

// Retried returns the spec of an ended job that an operator retries, and whether it differs
// from the present one: the job may make one more attempt than it has made, does not expire
// any more, and runs a new activation, because the end of the previous one never changes. Its id is derived from the epoch and the previous
// activation, so that concurrent retries name the same one.
func Retried(r *jobstore.Record, now int64) (*api.JobSpec, bool) {
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
		a.RetryOf, a.RetriedAtMS = before, now
		a.ActivationID = api.DerivedJobID("retry", r.ID, strconv.FormatInt(r.Run.Epoch, 10), before)
		spec.Activation = &a
	}
	return &spec, true
}
