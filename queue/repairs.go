package queue

import (
	"context"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/storage/activations"
)

// NewRepairer returns a Repairer of the jobs in b's store.
func (b *Broker) NewRepairer() *repair.Repairer { return repair.New(b.store, b.jobs, repairs{b}) }

// repairs implements repair.Owner. Package repair cannot import this package, which uses it.
type repairs struct{ b *Broker }

func (o repairs) EndActivation(ctx context.Context, tenant, id string, r *jobstore.Record) (bool, *activations.Record, error) {
	return o.b.endActivation(ctx, tenant, id, r)
}

func (o repairs) SendOutcome(ctx context.Context, tenant string, r *jobstore.Record) error {
	return o.b.followOutcome(ctx, tenant, r)
}

func (o repairs) FinishBatch(ctx context.Context, tenant, id string) error {
	return o.b.noteInBatch(ctx, tenant, id, "", nil, nil)
}

func (o repairs) DueAt(ms int64) { o.b.DueAt(ms) }

func (o repairs) Wake(q jobstore.Queue) { o.b.notifier.Wake(q) }
