package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/internal/timeline"
	"github.com/codesous/sous/storage/events"
)

// Timeline returns the changes of j, a job of tenant that Get returned. It reads at most 10,000
// events of the tenant's log. Errors: CodeStoreUnavailable.
func (b *Broker) Timeline(ctx context.Context, tenant string, j *api.Job) (*event.Timeline, error) {
	q := jobstore.Queue{Tenant: tenant, Namespace: j.Namespace, Name: j.Queue}
	reply, err := b.rdb.HMGet(ctx, b.jobs.Keys(q).Config(), jobstore.ConfigFields...).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read a queue", err)
	}
	return timeline.Of(ctx, events.New(b.store), tenant, j, jobstore.ParseConfig(reply).Events, b.store.NowMS())
}
