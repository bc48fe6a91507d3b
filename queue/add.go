package queue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// plain reports whether nothing but a draining queue can stand in the job's way: it is
// for a worker at once, under an id that no other job has.
func (e *enqueueItem) plain() bool {
	return e.state == api.JobPending && e.spec.UniqueKey == "" && e.spec.ExpireAtMS == 0 && !e.internal && !api.IsDerivedJobID(e.id)
}

// add adds plain jobs: their records by one plain command, then their entries by a
// script, in one round trip. Payloads pass through no script that way.
func (b *Broker) add(ctx context.Context, q queueKey, items []*enqueueItem) error {
	k, tenant := b.keys(q), b.store.JobKeys(q.tenant)
	records := make([]any, 0, 4*len(items))
	written := make([]string, 0, 2*len(items))
	var byRank [4][]*enqueueItem
	for _, item := range items {
		run, spec := tenant.Run(item.id), tenant.Spec(item.id)
		records = append(records, spec, item.text, run, item.firstRun().String())
		written = append(written, run, spec)
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
	if api.ErrorCode(err) == api.CodeQueueDraining {
		if err := b.rdb.Del(ctx, written...).Err(); err != nil {
			return b.failure(ctx, "withdraw jobs", err)
		}
	}
	if err != nil {
		return err
	}
	b.metrics.added(q, items)
	b.woken(q, items)
	return nil
}
