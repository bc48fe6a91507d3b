package queue

import (
	"context"

	"github.com/codesous/sous/queue/internal/jobstore"
)

// Settleable reports, by id, which of a tenant's jobs exist, in namespace if it is not empty,
// and may be settled by workers outside the platform. Jobs of fn queues, which no job enters
// or leaves, may not. Errors: CodeStoreUnavailable.
func (b *Broker) Settleable(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.jobs.Which(ctx, tenant, ids, func(known *jobstore.Summary) bool {
		return (namespace == "" || known.Namespace == namespace) && !jobstore.IsFunctionQueue(known.Queue)
	})
}
