package queue

import (
	"context"
)

// lookAtHolders reads the jobs that hold unique keys. freed: one has ended, or
// never was, since a crash came between, and its key is free. seen: one lives that
// was not known to.
func (b *Broker) lookAtHolders(ctx context.Context, tenant string, items []*enqueueItem) (freed, seen bool, err error) {
	var holders []string
	var held []*enqueueItem
	for _, item := range items {
		if item.holder != "" && item.holder != item.living {
			holders, held = append(holders, item.holder), append(held, item)
		}
	}
	found, err := b.load(ctx, tenant, holders)
	if err != nil {
		return false, false, err
	}
	for i, r := range found {
		if r == nil || r.run.state.Terminal() {
			held[i].ended, freed = holders[i], true
			continue
		}
		if _, err := b.reindex(ctx, tenant, r); err != nil {
			return false, false, err
		}
		held[i].living, seen = holders[i], true
	}
	return freed, seen, nil
}
