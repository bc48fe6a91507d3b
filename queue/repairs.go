package queue

import (
	"github.com/codesous/sous/queue/internal/followup"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/records"
	"github.com/codesous/sous/queue/repair"
)

// NewRepairer returns a Repairer of the jobs in b's store.
func (b *Broker) NewRepairer() *repair.Repairer {
	return repair.New(b.store, b.jobs, repairs{b.follower, b})
}

// Records returns a reader of the jobs in b's store.
func (b *Broker) Records() *records.Reader { return records.New(b.store, b.jobs, b.log) }

// Watch calls heard with the tenant, the namespace and the name of each queue that got work, in this
// or another process, until stop. heard must not block.
func (b *Broker) Watch(heard func(tenant, namespace, queue string)) (stop func()) {
	return b.notifier.Watch(func(q jobstore.Queue) { heard(q.Tenant, q.Namespace, q.Name) })
}

// repairs implements repair.Owner. Package repair cannot import this package, which uses it.
type repairs struct {
	*followup.Follower

	b *Broker
}

func (o repairs) DueAt(ms int64) { o.b.DueAt(ms) }

func (o repairs) Wake(q jobstore.Queue) { o.b.notifier.Wake(q) }
