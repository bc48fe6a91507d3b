package storage

import (
	"context"
	"iter"
)

// RegisterTasks adds a tenant to those that have tasks, before its first task is written.
// It may be repeated.
func (r *Tenants) RegisterTasks(ctx context.Context, tenant string) error {
	return Failure(ctx, "register a tenant's tasks", r.s.rdb.SAdd(ctx, keyTaskTenants, tenant).Err())
}

// WithTasks iterates over the tenants that have ever had a task, in no order; it may yield
// one twice. It ends at the first error, which it yields.
func (r *Tenants) WithTasks(ctx context.Context) iter.Seq2[string, error] {
	return r.each(ctx, keyTaskTenants)
}

// WithDocuments iterates over the tenants that have ever had documents, as WithTasks does.
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

// RegisterDocuments adds a tenant to the registry and to those that have documents, before
// its first document is written. It may be repeated.
func (r *Tenants) RegisterDocuments(ctx context.Context, tenant string) error {
	pipe := r.s.rdb.Pipeline()
	pipe.SAdd(ctx, keyTenants, tenant)
	pipe.SAdd(ctx, keyDocumentTenants, tenant)
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "register tenant", err)
}
