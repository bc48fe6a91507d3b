package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// plain reports whether the job is a new one, for a worker at once, that only a draining
// queue can refuse.
func (e *enqueueItem) plain() bool {
	return e.fresh && e.state == api.JobPending && e.spec.UniqueKey == "" && e.spec.ExpireAtMS == 0
}

// add adds plain jobs: their records by one plain command, then their entries by a
// script, in one round trip. Payloads pass through no script that way.
func (b *Broker) add(ctx context.Context, q queueKey, items []*enqueueItem) error {
	k, tenant := b.keys(q), b.store.JobKeys(q.tenant)
	records := make([]any, 0, 4*len(items))
	var byRank [4][]*enqueueItem
	for _, item := range items {
		records = append(records, tenant.Spec(item.id), item.text, tenant.Run(item.id), item.firstRun().String())
		rank := rankOf(item.spec.Score)
		byRank[rank] = append(byRank[rank], item)
	}
	args := append(make([]any, 0, 9+2*len(items)), q.name())
	for _, list := range byRank {
		args = append(args, len(list))
	}
	for _, list := range byRank {
		least := int64(0)
		for i, item := range list {
			if i == 0 || item.spec.Score < least {
				least = item.spec.Score
			}
		}
		args = append(args, least)
	}
	for _, list := range byRank {
		for _, item := range list {
			args = append(args, item.spec.Score, item.id)
		}
	}
	keys := append([]string{k.Config(), k.Cursor(), tenant.Queues()}, b.setsOf(q, api.JobPending)...)
	_, err := b.store.ScriptBetween(ctx, storage.ScriptJobAdd, keys, args, func(pipe redis.Pipeliner) {
		// A call that got no answer is sent again by the store's client: NX keeps the
		// runs of jobs that workers have begun since.
		pipe.MSetNX(ctx, records...)
	}, func(pipe redis.Pipeliner) {
		b.announce(ctx, pipe, q, items)
	})
	switch {
	case api.ErrorCode(err) == api.CodeQueueDraining:
		return errors.Join(err, b.withdraw(ctx, q, items))
	case err != nil:
		return err
	}
	b.metrics.added(q, items)
	b.woken(q, items)
	return nil
}

// withdraw deletes the records of refused jobs, as long as no worker has begun them: a
// call whose answer was lost may have entered them before.
func (b *Broker) withdraw(ctx context.Context, q queueKey, items []*enqueueItem) error {
	records := make([]*record, len(items))
	for i, item := range items {
		records[i] = &record{id: item.id, text: item.firstRun().String()}
	}
	_, err := b.purge(ctx, q, api.JobPending, records)
	return err
}
