package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// batchRepaired is set in a batch whose callback a repair made.
const batchRepaired = "repaired"

// batchPage looks at some batches: one that is sealed, has no job left and is not on
// its way out was not followed up.
func (r *Repairer) batchPage(ctx context.Context, page []jobKey, now int64, look *Look) error {
	if len(page) == 0 {
		return nil
	}
	pipe := r.b.rdb.Pipeline()
	sealed := make([]*redis.StringCmd, len(page))
	for i, k := range page {
		sealed[i] = pipe.HGet(ctx, r.b.store.JobKeys(k.tenant).Batch(k.id)+":meta", batchSealed)
	}
	look.Reads += len(page)
	if _, err := pipe.Exec(ctx); r.b.failure(ctx, "look at batches", err) != nil {
		return r.b.failure(ctx, "look at batches", err)
	}
	var errs []error
	for i, k := range page {
		if sealed[i].Val() != "1" {
			continue
		}
		err := r.batch(ctx, k, now, look)
		if fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *Repairer) batchesAgain(ctx context.Context, now int64, look *Look) error {
	var errs []error
	for _, k := range r.batches.due(now, repairGraceMS) {
		err := r.batch(ctx, k, now, look)
		if fatal(ctx, err) {
			return err
		}
		errs = append(errs, err)
		r.batches.Clear(k)
	}
	return errors.Join(errs...)
}

// batch looks closely at one batch.
func (r *Repairer) batch(ctx context.Context, k jobKey, now int64, look *Look) error {
	key := r.b.store.JobKeys(k.tenant).Batch(k.id) + ":meta"
	ttl, err := r.b.rdb.PTTL(ctx, key).Result()
	look.Reads++
	if err != nil || ttl != -1 { // -1: it has none
		r.batches.Clear(k)
		return r.b.failure(ctx, "look at a batch", err)
	}
	batch, _, err := r.b.readBatch(ctx, k.tenant, k.id)
	look.Reads += 4
	if err != nil || !batch.Sealed || batch.Pending > 0 {
		r.batches.Clear(k)
		return err
	}
	if !r.batches.Ripe(k, "", now, repairGraceMS) { // its last job may just have ended
		look.Busy = true
		return nil
	}
	r.batches.Clear(k)
	look.Reads += 10
	if err := r.b.noteInBatch(ctx, k.tenant, k.id, "", nil, nil); err != nil {
		return err
	}
	first, err := r.b.rdb.HSetNX(ctx, key, batchRepaired, now).Result()
	if err == nil && first {
		look.mended(RepairBatch, queueKey{tenant: k.tenant, namespace: batch.Namespace}, k.id, "it was done, and not followed up")
	}
	return r.b.failure(ctx, "note a repair", err)
}
