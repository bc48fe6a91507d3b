package storage

import (
	"context"
	"iter"
)

// RegisterTasks enters a tenant among those that have tasks, before its first one is
// written. It may be repeated.
func (r *Tenants) RegisterTasks(ctx context.Context, tenant string) error {
	return Failure(ctx, "register a tenant's tasks", r.s.rdb.SAdd(ctx, keyTaskTenants, tenant).Err())
}

// WithTasks goes through the tenants that have ever had a task, in no order; it may
// name one twice. It ends at the first error, which it yields.
func (r *Tenants) WithTasks(ctx context.Context) iter.Seq2[string, error] {
	return r.each(ctx, keyTaskTenants)
}

// WithDocuments does the same for those that have ever had documents.
func (r *Tenants) WithDocuments(ctx context.Context) iter.Seq2[string, error] {
	return r.each(ctx, keyDocumentTenants)
}

func (r *Tenants) each(ctx context.Context, key string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for step, err := range r.s.ScanSet(ctx, key) {
			if err != nil {
				yield("", err)
				return
			}
			for _, tenant := range step {
				if !yield(tenant, nil) {
					return
				}
			}
		}
	}
}

// RegisterDocuments enters a tenant in the registry, and among those that have documents,
// before its first one is written. It may be repeated.
func (r *Tenants) RegisterDocuments(ctx context.Context, tenant string) error {
	pipe := r.s.rdb.Pipeline()
	pipe.SAdd(ctx, keyTenants, tenant)
	pipe.SAdd(ctx, keyDocumentTenants, tenant)
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "register tenant", err)
}
