// Package admission registers the namespaces of jobs, and takes the quotas of jobs and queues.
package admission

import (
	"context"
	"math"

	"github.com/maypok86/otter/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// knownEntries is the maximum number of namespaces and queues that a process caches as known.
const knownEntries = 20_000

// Admission admits jobs. It is safe for concurrent use.
type Admission struct {
	store   *storage.Store
	tenants *storage.Tenants
	// known has the namespaces and, each with the path as its Namespace, the queues that exist. No
	// namespace contains the slash of a path.
	known *otter.Cache[jobstore.NamespaceKey, struct{}]
}

// New returns an Admission to the queues in store.
func New(store *storage.Store) (*Admission, error) {
	known, err := otter.New(&otter.Options[jobstore.NamespaceKey, struct{}]{MaximumSize: knownEntries})
	return &Admission{store: store, tenants: storage.NewTenants(store), known: known}, err
}

// Register adds tenant and namespace to the store's registry, once in the life of this
// process. It precedes their first record, so that the sweeper finds all records. Error:
// CodeTenantQuota.
func (a *Admission) Register(ctx context.Context, tenant, namespace string) error {
	key := jobstore.NamespaceKey{Tenant: tenant, Namespace: namespace}
	if _, ok := a.known.GetIfPresent(key); ok {
		return nil
	}
	if err := a.tenants.RegisterNamespace(ctx, tenant, namespace); err != nil {
		return err
	}
	a.known.Set(key, struct{}{})
	return nil
}

// Queue registers the namespace of a queue, and takes the quota of a new queue, the first time
// that this process sees it. Error: CodeTenantQuota.
func (a *Admission) Queue(ctx context.Context, q jobstore.Queue) error {
	if err := a.Register(ctx, q.Tenant, q.Namespace); err != nil {
		return err
	}
	key := jobstore.NamespaceKey{Tenant: q.Tenant, Namespace: q.Path()}
	if _, ok := a.known.GetIfPresent(key); ok || a.store.Quotas() == nil {
		return nil
	}
	listed, err := a.store.Client().SIsMember(ctx, a.store.JobKeys(q.Tenant).Queues(), q.Path()).Result()
	if err != nil {
		return jobstore.Failure(ctx, "look up a queue", err)
	}
	if !listed {
		if err := a.store.Quotas().Take(ctx, q.Tenant, storage.One(quota.Queues)); err != nil {
			return err
		}
	}
	a.known.Set(key, struct{}{})
	return nil
}

// Jobs registers the namespace of new jobs, and takes the quotas of their queue, their number and
// their bytes. Internal jobs are those that the platform makes of others: they are never
// refused for a quota. Errors: CodeTenantQuota, CodeTenantRate.
func (a *Admission) Jobs(ctx context.Context, q jobstore.Queue, specs []*api.JobSpec, internal bool) error {
	quotas := a.store.Quotas()
	if internal || quotas == nil {
		return a.Register(ctx, q.Tenant, q.Namespace)
	}
	if err := a.Queue(ctx, q); err != nil {
		return err
	}
	bytes := 0
	for _, spec := range specs {
		bytes += bytesOf(spec)
	}
	return quotas.Enqueue(ctx, q.Tenant, int64(len(specs)), int64(bytes))
}

// Bytes takes the quota of bytes that are stored with jobs: results, checkpoints, and the job that a
// batch will make. Error: CodeTenantRate.
func (a *Admission) Bytes(ctx context.Context, tenant string, n int) error {
	if n == 0 || a.store.Quotas() == nil {
		return nil
	}
	return a.store.Quotas().Enqueue(ctx, tenant, 0, int64(n))
}

// shortText is the length in bytes to which texts are cut once the rate of bytes is used up.
const shortText = 256

// Texts takes the quota of n bytes of texts that workers and operators store with jobs: errors,
// progress, and reasons of holds. It returns the length to which each of them is cut, whatever
// else limits it: a used up rate shortens texts and refuses nothing, so that jobs can end.
func (a *Admission) Texts(ctx context.Context, tenant string, n int) (limit int, err error) {
	err = a.Bytes(ctx, tenant, n)
	if api.ErrorCode(err) == api.CodeTenantRate {
		return shortText, nil
	}
	return math.MaxInt, err
}

// bytesOf returns how many bytes a job and those of its chain store, more or less: each job of a
// chain stores the steps that follow it, and those that end the chain.
func bytesOf(spec *api.JobSpec) int {
	n := len(spec.Payload) + optionBytes(&spec.JobOptions)
	if spec.Chain == nil {
		return n
	}
	for i := range spec.Chain.Steps {
		n += (i + 2) * stepBytes(&spec.Chain.Steps[i])
	}
	for _, end := range []*api.ChainStep{spec.Chain.OnFailure, spec.Chain.OnExit} {
		if end != nil {
			n += (len(spec.Chain.Steps) + 2) * stepBytes(end)
		}
	}
	return n
}

func stepBytes(step *api.ChainStep) int { return len(step.Payload) + optionBytes(&step.JobOptions) }

// optionBytes returns the bytes of the options that may have many.
func optionBytes(o *api.JobOptions) int {
	n := len(o.ResultSchema)
	for name, value := range o.Tags {
		n += len(name) + len(value)
	}
	for _, id := range o.DependsOn {
		n += 2 * len(id) // in the set of dependents, too
	}
	return n
}
