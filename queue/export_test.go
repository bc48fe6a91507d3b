package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// FlushInternals adds jobs of the platform to a queue by one flush. It returns the error of each.
func (b *Broker) FlushInternals(ctx context.Context, tenant, namespace, queue string, ids []string) []error {
	q := jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}
	specs := make([]*api.JobSpec, len(ids))
	for i := range specs {
		specs[i] = &api.JobSpec{Namespace: namespace, Queue: queue, Payload: []byte(`1`)}
	}
	items, err := b.items(ctx, q, ids, specs, ofPlatform)
	if err != nil {
		return []error{err}
	}
	b.flushInternals(ctx, q, items)
	errs := make([]error, len(items))
	for i, item := range items {
		errs[i] = item.Err
	}
	return errs
}
