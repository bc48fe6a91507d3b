package queue

import (
	"context"

	"github.com/codesous/sous/queue/internal/jobstore"
)

// lookAtHolders reads the jobs that hold unique keys. freed reports whether one has ended, or
// was never stored because of a crash, so that its key is free. seen reports whether one
// lives that was not known to.
func (b *Broker) lookAtHolders(ctx context.Context, tenant string, items []*jobstore.Entry) (freed, seen bool, err error) {
	var holders []string
	var held []*jobstore.Entry
	for _, item := range items {
		if item.Holder != "" && item.Holder != item.Living {
			holders, held = append(holders, item.Holder), append(held, item)
		}
	}
	found, err := b.jobs.Load(ctx, tenant, holders)
	if err != nil {
		return false, false, err
	}
	for i, r := range found {
		if r == nil || r.Run.State.Terminal() {
			held[i].Ended, freed = holders[i], true
			continue
		}
		if _, err := b.jobs.Reindex(ctx, tenant, r); err != nil {
			return false, false, err
		}
		held[i].Living, seen = holders[i], true
	}
	return freed, seen, nil
}
