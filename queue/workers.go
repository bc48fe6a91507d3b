package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// A worker is known from its first fetch until it has neither fetched nor sent a
// heartbeat for workerTTLMS.
// Its record is written at most once in workerEveryMS.
const (
	workerTTLMS   = 5 * 60_000
	workerEveryMS = 10_000
	maxHostname   = 255
)

// seenWorker is what this process wrote of a worker last.
type seenWorker struct{ startedMS, writtenMS int64 }

// noteWorker enters who fetches in the registry.
func (b *Broker) noteWorker(ctx context.Context, f *Fetch) error {
	if f.Internal {
		return nil
	}
	if len(f.Hostname) > maxHostname || len(f.Version) > maxHostname {
		return fieldError("hostname", "and version must be at most 255 bytes")
	}
	now := b.store.NowMS()
	key := jobKey{f.Tenant, f.WorkerID}
	seen, known := b.workers.GetIfPresent(key)
	if known && now-seen.writtenMS < workerEveryMS {
		return nil
	}
	tenant := b.store.JobKeys(f.Tenant)
	started := now
	if known {
		started = seen.startedMS
	} else if raw, err := b.rdb.Get(ctx, tenant.Worker(f.WorkerID)).Result(); err == nil {
		var before api.Worker
		if json.Unmarshal([]byte(raw), &before) == nil && before.StartedAtMS > 0 {
			started = before.StartedAtMS
		}
	} else if !errors.Is(err, redis.Nil) {
		return b.failure(ctx, "read a worker", err)
	}
	return b.writeWorker(ctx, f.Tenant, api.Worker{
		ID: f.WorkerID, Hostname: f.Hostname, Namespace: f.Namespace, Queues: f.Queues, Version: f.Version,
		StartedAtMS: started, LastHeartbeatMS: now,
	})
}

func (b *Broker) writeWorker(ctx context.Context, tenant string, w api.Worker) error {
	raw, err := api.EncodeJSON(w)
	if err != nil {
		return fmt.Errorf("queue: encode a worker: %w", err)
	}
	keys, now := b.store.JobKeys(tenant), w.LastHeartbeatMS
	pipe := b.rdb.Pipeline()
	pipe.ZAdd(ctx, keys.Workers(), redis.Z{Score: float64(now), Member: w.ID})
	pipe.ZRemRangeByScore(ctx, keys.Workers(), "-inf", strconv.FormatInt(now-workerTTLMS, 10))
	pipe.Do(ctx, "SET", keys.Worker(w.ID), raw, "PX", workerTTLMS)
	if _, err := pipe.Exec(ctx); err != nil {
		return b.failure(ctx, "note a worker", err)
	}
	b.workers.Set(jobKey{tenant, w.ID}, seenWorker{w.StartedAtMS, now})
	return nil
}

// NoteAlive keeps a worker in the registry that works and does not fetch
// meanwhile. One that never fetched is not entered; with a namespace, none of
// another is touched.
func (b *Broker) NoteAlive(ctx context.Context, tenant, namespace, id string) error {
	if err := api.ValidateWorkerID(id); err != nil {
		return err
	}
	now := b.store.NowMS()
	if seen, known := b.workers.GetIfPresent(jobKey{tenant, id}); known && now-seen.writtenMS < workerEveryMS {
		return nil
	}
	raw, err := b.rdb.Get(ctx, b.store.JobKeys(tenant).Worker(id)).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return b.failure(ctx, "read a worker", err)
	}
	var w api.Worker
	if err := json.Unmarshal([]byte(raw), &w); err != nil {
		return fmt.Errorf("queue: a stored worker cannot be read: %w", err)
	}
	if namespace != "" && w.Namespace != namespace {
		return nil
	}
	w.LastHeartbeatMS = now
	return b.writeWorker(ctx, tenant, w)
}

// Workers is a page of those who fetched lately, by id, behind after.
func (b *Broker) Workers(ctx context.Context, tenant, after string, limit int) (items []api.Worker, next string, err error) {
	keys := b.store.JobKeys(tenant)
	limit = pageLimit(limit)
	now := b.store.NowMS()
	ids, err := b.rdb.ZRangeByScore(ctx, keys.Workers(), &redis.ZRangeBy{Min: strconv.FormatInt(now-workerTTLMS, 10), Max: "+inf"}).Result()
	if err != nil {
		return nil, "", b.failure(ctx, "list workers", err)
	}
	names, next := pageOf(ids, after, limit)
	if len(names) == 0 {
		return nil, "", nil
	}
	pipe := b.rdb.Pipeline()
	replies := make([]*redis.StringCmd, len(names))
	for i, id := range names {
		replies[i] = pipe.Get(ctx, keys.Worker(id))
	}
	if _, err := pipe.Exec(ctx); b.failure(ctx, "list workers", err) != nil {
		return nil, "", b.failure(ctx, "list workers", err)
	}
	for _, reply := range replies {
		var w api.Worker
		if reply.Err() != nil {
			continue // it has just expired
		}
		if err := json.Unmarshal([]byte(reply.Val()), &w); err != nil {
			return nil, "", fmt.Errorf("queue: a stored worker cannot be read: %w", err)
		}
		items = append(items, w)
	}
	return items, next, nil
}
