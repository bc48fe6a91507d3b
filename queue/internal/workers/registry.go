// Package workers keeps a registry of the workers that fetch jobs, for operators. Leases do not
// depend on it: a worker that is not registered can fetch and settle.
//
//	cs:worker:t:ID  string  an api.Worker in JSON, expires after ttlMS
//	cs:workers:t    zset    the ids, by the time of the last write of their records
//
// Plain commands write both, without a transaction: an id without a record has expired, and
// Read leaves it out. The ids that have expired are removed by the next write of any worker.
package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// A worker is registered from its first fetch until it has neither fetched nor sent a
// heartbeat for ttlMS. A process writes its record at most once every writeEveryMS, so that a
// worker that polls in a loop does not write at each fetch. The stored time of the last
// heartbeat may therefore be too early by writeEveryMS.
const (
	ttlMS        = 5 * 60_000
	writeEveryMS = 10_000
	maxHostname  = 255 // bytes; also of the version
)

// maxSeen is the maximum number of workers that a process caches. The record of a worker
// beyond that is read and written at each call.
const maxSeen = 20_000

// Registry is the registry of the workers of all tenants. It is safe for concurrent use.
type Registry struct {
	store *storage.Store
	rdb   redis.UniversalClient
	seen  *otter.Cache[jobstore.Key, written]
}

// written is the record of a worker that this process wrote last, in Unix milliseconds. Other
// replicas may have written since; the next write of this one replaces theirs.
type written struct{ startedMS, atMS int64 }

// New returns the registry in store.
func New(store *storage.Store) (*Registry, error) {
	seen, err := otter.New(&otter.Options[jobstore.Key, written]{MaximumSize: maxSeen})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Registry{store: store, rdb: store.Client(), seen: seen}, nil
}

// Note registers w, a worker that fetches, or refreshes its record. Note sets the times of w;
// StartedAtMS is kept from the stored record, so that it is the time of the first fetch. The
// last fetch decides on the other fields, such as the queues. Errors: CodeInvalid for a host
// name or version of more than 255 bytes, CodeStoreUnavailable.
func (r *Registry) Note(ctx context.Context, tenant string, w api.Worker) error {
	if len(w.Hostname) > maxHostname || len(w.Version) > maxHostname {
		return api.InvalidField("hostname", "and version must be at most 255 bytes")
	}
	now := r.store.NowMS()
	before, known := r.seen.GetIfPresent(jobstore.Key{Tenant: tenant, ID: w.ID})
	if known && now-before.atMS < writeEveryMS {
		return nil
	}
	w.StartedAtMS, w.LastHeartbeatMS = now, now
	if known {
		w.StartedAtMS = before.startedMS
		return r.write(ctx, tenant, w)
	}
	raw, err := r.rdb.Get(ctx, r.store.JobKeys(tenant).Worker(w.ID)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobstore.Failure(ctx, "read a worker", err)
	}
	var stored api.Worker
	if err == nil && json.Unmarshal([]byte(raw), &stored) == nil && stored.StartedAtMS > 0 {
		w.StartedAtMS = stored.StartedAtMS
	}
	return r.write(ctx, tenant, w)
}

func (r *Registry) write(ctx context.Context, tenant string, w api.Worker) error {
	raw, err := api.EncodeJSON(w)
	if err != nil {
		return fmt.Errorf("queue: encode a worker: %w", err)
	}
	keys, now := r.store.JobKeys(tenant), w.LastHeartbeatMS
	pipe := r.rdb.Pipeline()
	pipe.ZAdd(ctx, keys.Workers(), redis.Z{Score: float64(now), Member: w.ID})
	pipe.ZRemRangeByScore(ctx, keys.Workers(), "-inf", strconv.FormatInt(now-ttlMS, 10))
	pipe.Do(ctx, "SET", keys.Worker(w.ID), raw, "PX", ttlMS)
	if _, err := pipe.Exec(ctx); err != nil {
		return jobstore.Failure(ctx, "note a worker", err)
	}
	r.seen.Set(jobstore.Key{Tenant: tenant, ID: w.ID}, written{w.StartedAtMS, now})
	return nil
}

// NoteAlive refreshes the record of a worker that sends heartbeats but does not fetch, because
// it is busy with long jobs. It ignores workers that are not registered and, if namespace is not
// empty, workers of other namespaces. Errors: CodeInvalid, CodeStoreUnavailable.
func (r *Registry) NoteAlive(ctx context.Context, tenant, namespace, id string) error {
	if err := api.ValidateWorkerID(id); err != nil {
		return err
	}
	now := r.store.NowMS()
	if before, known := r.seen.GetIfPresent(jobstore.Key{Tenant: tenant, ID: id}); known && now-before.atMS < writeEveryMS {
		return nil
	}
	raw, err := r.rdb.Get(ctx, r.store.JobKeys(tenant).Worker(id)).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return jobstore.Failure(ctx, "read a worker", err)
	}
	var w api.Worker
	if err := json.Unmarshal([]byte(raw), &w); err != nil {
		return fmt.Errorf("queue: decode worker %s: %w", id, err)
	}
	if namespace != "" && w.Namespace != namespace {
		return nil
	}
	w.LastHeartbeatMS = now
	return r.write(ctx, tenant, w)
}

// IDs returns the ids of a tenant's registered workers, those seen last at the end. Errors:
// CodeStoreUnavailable.
func (r *Registry) IDs(ctx context.Context, tenant string) ([]string, error) {
	ids, err := r.rdb.ZRangeByScore(ctx, r.store.JobKeys(tenant).Workers(),
		&redis.ZRangeBy{Min: strconv.FormatInt(r.store.NowMS()-ttlMS, 10), Max: "+inf"}).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "list workers", err)
	}
	return ids, nil
}

// Read returns the records of workers in the order of ids, without those that have expired.
// Errors: CodeStoreUnavailable.
func (r *Registry) Read(ctx context.Context, tenant string, ids []string) (workers []api.Worker, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := r.store.JobKeys(tenant)
	pipe := r.rdb.Pipeline()
	replies := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		replies[i] = pipe.Get(ctx, keys.Worker(id))
	}
	_, err = pipe.Exec(ctx)
	if err := jobstore.Failure(ctx, "list workers", err); err != nil {
		return nil, err
	}
	for _, reply := range replies {
		if reply.Err() != nil {
			continue // it has just expired
		}
		var w api.Worker
		if err := json.Unmarshal([]byte(reply.Val()), &w); err != nil {
			return nil, fmt.Errorf("queue: decode a worker: %w", err)
		}
		workers = append(workers, w)
	}
	return workers, nil
}
