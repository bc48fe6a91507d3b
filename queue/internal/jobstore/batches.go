package jobstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
)

// expiredBatchPage is the maximum number of expired batches that one call removes from a list.
const expiredBatchPage = 64

// AddBatch stores an empty batch and lists it in its namespace. callback is an api.BatchCallback
// in JSON, "" for none, and by is its caller, nil for none. Errors: CodeStoreUnavailable.
func (s *Store) AddBatch(ctx context.Context, tenant, namespace, id, callback string, by *api.JobAuthor) error {
	keys, now := s.store.JobKeys(tenant), s.store.NowMS()
	if err := s.forgetBatches(ctx, tenant, namespace); err != nil {
		return err
	}
	// The event and the list come first: the list skips a batch that does not exist.
	pipe := s.rdb.Pipeline()
	s.events.Append(ctx, pipe, tenant, event.Change{
		Type: event.BatchCreated, Of: event.KindBatches, ID: id, AtMS: now, Actor: event.ActorOf(ctx), Data: event.Data{Namespace: namespace},
	})
	pipe.ZAdd(ctx, keys.Batches(namespace), redis.Z{Member: id})
	meta := []any{BatchNamespace, namespace, BatchCallback, callback, BatchCreated, now, BatchChanged, now, BatchSealed, "0"}
	if by != nil {
		raw, err := api.EncodeJSON(by)
		if err != nil {
			return fmt.Errorf("queue: encode the caller of a batch: %w", err)
		}
		meta = append(meta, batchBy, string(raw))
	}
	pipe.HSet(ctx, keys.Batch(id)+":meta", meta...)
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "create a batch", err)
}

// AdoptBatch lists a batch of a release that had no lists, and starts the time after which an
// open one expires. Errors: CodeBatchNotFound, CodeStoreUnavailable.
func (s *Store) AdoptBatch(ctx context.Context, tenant, namespace, id string) error {
	if err := s.rdb.ZAdd(ctx, s.store.JobKeys(tenant).Batches(namespace), redis.Z{Member: id}).Err(); err != nil {
		return Failure(ctx, "list a batch", err)
	}
	_, err := s.CountBatch(ctx, tenant, namespace, id, "", nil, nil)
	return err
}

// forgetBatches removes batches from the list of their namespace whose records have expired.
func (s *Store) forgetBatches(ctx context.Context, tenant, namespace string) error {
	keys := s.store.JobKeys(tenant)
	gone, err := s.rdb.ZRangeByScore(ctx, keys.BatchEnds(namespace), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(s.store.NowMS(), 10), Count: expiredBatchPage,
	}).Result()
	if err != nil || len(gone) == 0 {
		return Failure(ctx, "clean a list of batches", err)
	}
	members := make([]any, len(gone))
	for i, id := range gone {
		members[i] = id
	}
	pipe := s.rdb.Pipeline()
	pipe.ZRem(ctx, keys.Batches(namespace), members...)
	pipe.ZRem(ctx, keys.BatchEnds(namespace), members...) // last, so that an interrupted call is repeated
	_, err = pipe.Exec(ctx)
	return Failure(ctx, "clean a list of batches", err)
}

// ListBatches returns a page of a namespace's batches, newest first, after the id after. next is
// the value of after for the next page, "" at the end. A page may be short, even empty, and
// still have a next: it ends when its callbacks have 8 MiB. Errors: CodeStoreUnavailable.
func (s *Store) ListBatches(ctx context.Context, tenant, namespace, after string, limit int) (items []api.Batch, next string, err error) {
	if err := s.forgetBatches(ctx, tenant, namespace); err != nil {
		return nil, "", err
	}
	newest := "+"
	if after != "" {
		newest = "(" + after
	}
	ids, err := s.rdb.ZRevRangeByLex(ctx, s.store.JobKeys(tenant).Batches(namespace),
		&redis.ZRangeBy{Min: "-", Max: newest, Count: int64(limit) + 1}).Result()
	if err != nil {
		return nil, "", Failure(ctx, "list batches", err)
	}
	ids, next = storage.FirstPage(ids, limit)
	sizes, err := s.callbackSizes(ctx, tenant, ids)
	if err != nil {
		return nil, "", err
	}
	for held := int64(0); len(ids) > 0; {
		n, bytes := firstPart(sizes)
		found, err := s.ReadBatches(ctx, tenant, ids[:n])
		if err != nil {
			return nil, "", err
		}
		for _, b := range found {
			if b != nil {
				items = append(items, *b)
			}
		}
		held += bytes
		if held >= listBytes && n < len(ids) {
			return items, ids[n-1], nil
		}
		ids, sizes = ids[n:], sizes[n:]
	}
	return items, next, nil
}

// callbackSizes returns the bytes of the callbacks of batches.
func (s *Store) callbackSizes(ctx context.Context, tenant string, ids []string) ([]int64, error) {
	out := make([]int64, len(ids))
	if len(ids) < 2 {
		return out, nil
	}
	pipe := s.rdb.Pipeline()
	replies := make([]*redis.IntCmd, len(ids))
	for i, id := range ids {
		replies[i] = pipe.HStrLen(ctx, s.store.JobKeys(tenant).Batch(id)+":meta", BatchCallback)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Failure(ctx, "read the sizes of batches", err)
	}
	for i, reply := range replies {
		out[i] = reply.Val()
	}
	return out, nil
}

// DeleteBatch deletes a batch; its jobs stay. If unchangedSince is not "", it is deleted only if
// it is open and its changed_ms still has that value. It reports whether it deleted the batch.
// Errors: CodeStoreUnavailable.
func (s *Store) DeleteBatch(ctx context.Context, tenant, namespace, id, unchangedSince string) (bool, error) {
	keys := s.store.JobKeys(tenant)
	key := keys.Batch(id)
	reply, err := s.store.ScriptOnce(ctx, storage.ScriptBatchDelete,
		[]string{key + ":meta", key + ":jobs", key + ":succeeded", key + ":failed", keys.Batches(namespace), keys.BatchEnds(namespace)}, id, unchangedSince)
	deleted, _ := reply.(int64)
	return deleted == 1, err
}

// BatchExpired reports whether an open batch whose changed_ms is changed has expired at now, a
// Unix time in milliseconds.
func BatchExpired(changed string, now int64) bool {
	at, err := strconv.ParseInt(changed, 10, 64)
	return err == nil && time.Duration(now-at)*time.Millisecond >= api.OpenBatchRetentionMS*time.Millisecond
}
