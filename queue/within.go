package queue

import (
	"context"

	"github.com/codesous/sous/queue/internal/jobstore"
)

// Within reports, by id, which of a tenant's jobs exist in a namespace. A job never leaves its
// namespace, so a cached answer is valid. An enqueue that is confined to a namespace uses it to
// refuse dependencies of other namespaces as if they did not exist. Errors: CodeStoreUnavailable.
func (b *Broker) Within(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.jobs.Which(ctx, tenant, ids, func(known *jobstore.Summary) bool { return known.Namespace == namespace })
}

// Settleable reports, by id, which of a tenant's jobs exist, in namespace if it is not empty,
// and may be settled by workers outside the platform. Jobs of fn queues, which no job enters
// or leaves, may not. Errors: CodeStoreUnavailable.
func (b *Broker) Settleable(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.jobs.Which(ctx, tenant, ids, func(known *jobstore.Summary) bool {
		return (namespace == "" || known.Namespace == namespace) && !jobstore.IsFunctionQueue(known.Queue)
	})
}
