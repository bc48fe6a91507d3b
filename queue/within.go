package queue

import (
	"context"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Within says which of a tenant's jobs exist in a namespace. A job never leaves
// its namespace, so that what is remembered holds.
func (b *Broker) Within(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.jobs.Which(ctx, tenant, ids, func(known *jobstore.Summary) bool { return known.Namespace == namespace })
}

// Settleable says which of a tenant's jobs exist, in a namespace if one is named, and
// are for workers outside to settle: those of fn queues, which no job enters or
// leaves, are the platform's own.
func (b *Broker) Settleable(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.jobs.Which(ctx, tenant, ids, func(known *jobstore.Summary) bool {
		return (namespace == "" || known.Namespace == namespace) && !jobstore.IsFunctionQueue(known.Queue)
	})
}
