package queue

import (
	"github.com/codesous/sous/queue/internal/followup"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/queue/repair"
)

// NewRepairer returns a Repairer of the jobs in b's store.
func (b *Broker) NewRepairer() *repair.Repairer {
	return repair.New(b.store, b.jobs, repairs{b.follower, b})
}

// repairs implements repair.Owner. Package repair cannot import this package, which uses it.
type repairs struct {
	*followup.Follower

	b *Broker
}

func (o repairs) DueAt(ms int64) { o.b.DueAt(ms) }

func (o repairs) Wake(q jobstore.Queue) { o.b.notifier.Wake(q) }
