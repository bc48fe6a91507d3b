package queue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
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
	found, err := b.load(ctx, tenant, holders, recordFields)
	if err != nil {
		return false, false, err
	}
	for i, r := range found {
		if r == nil || r.run.state.Terminal() {
			held[i].ended, freed = holders[i], true
			continue
		}
		if err := b.reindex(ctx, tenant, r); err != nil {
			return false, false, err
		}
		held[i].living, seen = holders[i], true
	}
	return freed, seen, nil
}

// reindex enters a job in the index of its state if it is not there: its own
// enqueue was cut short, and nobody but its unique key knows it.
func (b *Broker) reindex(ctx context.Context, tenant string, r *record) error {
	q := r.key(tenant)
	err := b.rdb.ZScore(ctx, b.keys(q).Set(string(r.run.state)), r.id).Err()
	if err == nil || b.failure(ctx, "read a queue", err) != nil {
		return b.failure(ctx, "read a queue", err)
	}
	if r.run.state == api.JobWaiting { // what it waits for may have ended
		pipe := b.rdb.Pipeline()
		pipe.ZAdd(ctx, b.keys(q).After(), redis.Z{Score: float64(r.run.at), Member: r.id})
		b.markDue(ctx, pipe, q, r.run.at)
		if _, err := pipe.Exec(ctx); err != nil {
			return b.failure(ctx, "mark a job", err)
		}
	}
	return b.moveAll(ctx, q, []*move{{record: r, to: r.run}})
}
