// Package workers keeps a registry of the workers that fetch jobs, for operators. Leases do not
// depend on it: a worker that is not registered can fetch and settle.
//
//	cs:worker:t:ID        string  a record in JSON, expires after ttlMS
//	cs:workerqueues:t:ID  zset    ns/q of the queues that it fetched from, by the last time; expires
//	                              together with the record
//	cs:workers:t          zset    the ids, by the time of the last write of their records
//
// Plain commands write them, without a transaction: an id without a record has expired, and
// Read leaves it out. The ids that have expired are removed by the next write of any worker. The
// queues are a set of their own, because replicas note the fetches of one worker concurrently.
//
// A tenant has at most maxWorkers workers here: a client can name another worker in each fetch.
// Beyond that, the fetch of a new worker succeeds, but is not noted. Concurrent fetches may exceed
// the limit by their number.
package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

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
	maxWorkers   = 10_000
	maxQueues    = api.MaxFetchQueues // of one worker; the oldest are left out
	maxLast      = 16                 // of the queues of the last fetch in a record
)

// record is the stored part of a worker. Namespace and Queues are those of the last fetch, at most
// maxLast queues: the registries of older releases read them.
type record struct {
	ID              string   `json:"id"`
	Hostname        string   `json:"hostname,omitempty"`
	Namespace       string   `json:"namespace"`
	Queues          []string `json:"queues"`
	Version         string   `json:"version,omitempty"`
	StartedAtMS     int64    `json:"started_at_ms"`
	LastHeartbeatMS int64    `json:"last_heartbeat_ms"`
}

// Fetch is the part of a fetch that the registry notes.
type Fetch struct {
	WorkerID, Hostname, Version string
	Namespace                   string
	Queues                      []string
}

// seenKey identifies what a process has written: the record of a worker, and with queues other
// than 0 that it fetches from these queues.
type seenKey struct {
	job    jobstore.Key
	queues uint64
}

// digest identifies the queues of a fetch in a seenKey.
func (f *Fetch) digest() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.Namespace)) // never fails
	for _, q := range f.Queues {
		_, _ = h.Write([]byte{'/'})
		_, _ = h.Write([]byte(q))
	}
	return max(h.Sum64(), 1)
}

// maxSeen is the maximum number of workers that a process caches. The record of a worker
// beyond that is read and written at each call.
const maxSeen = 20_000

// Registry is the registry of the workers of all tenants. It is safe for concurrent use.
type Registry struct {
	store *storage.Store
	rdb   redis.UniversalClient
	seen  *otter.Cache[seenKey, written]
}

// written is the record of a worker that this process wrote last, in Unix milliseconds. Other
// replicas may have written since; the next write of this one replaces theirs.
type written struct{ startedMS, atMS int64 }

// New returns the registry in store.
func New(store *storage.Store) (*Registry, error) {
	seen, err := otter.New(&otter.Options[seenKey, written]{MaximumSize: maxSeen})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Registry{store: store, rdb: store.Client(), seen: seen}, nil
}

// Note registers the worker that makes a fetch, or refreshes its record. The record keeps the
// time of the first fetch; the last one decides on host name and version. The queues are added
// to those of its other fetches. It does nothing for a new worker of a tenant that has maxWorkers
// already. Errors: CodeInvalid for a host name or version of more than 255 bytes,
// CodeStoreUnavailable.
func (r *Registry) Note(ctx context.Context, tenant string, f Fetch) error {
	if len(f.Hostname) > maxHostname || len(f.Version) > maxHostname {
		return api.InvalidField("hostname", "and version must be at most 255 bytes")
	}
	now := r.store.NowMS()
	key := seenKey{jobstore.Key{Tenant: tenant, ID: f.WorkerID}, f.digest()}
	before, known := r.seen.GetIfPresent(key)
	if known && now-before.atMS < writeEveryMS {
		return nil
	}
	w := record{
		ID: f.WorkerID, Hostname: f.Hostname, Namespace: f.Namespace, Queues: f.Queues[:min(len(f.Queues), maxLast)], Version: f.Version,
		StartedAtMS: now, LastHeartbeatMS: now,
	}
	if known && now-before.atMS < ttlMS { // else it may have expired
		w.StartedAtMS = before.startedMS
		return r.write(ctx, tenant, &w, &key, f.Queues)
	}
	keys := r.store.JobKeys(tenant)
	pipe := r.rdb.Pipeline()
	found := pipe.Get(ctx, keys.Worker(w.ID))
	pipe.ZRemRangeByScore(ctx, keys.Workers(), "-inf", strconv.FormatInt(now-ttlMS, 10))
	count := pipe.ZCard(ctx, keys.Workers())
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return jobstore.Failure(ctx, "read a worker", err)
	}
	var stored record
	switch {
	case found.Err() != nil && count.Val() >= maxWorkers:
		return nil
	case found.Err() == nil && json.Unmarshal([]byte(found.Val()), &stored) == nil && stored.StartedAtMS > 0:
		w.StartedAtMS = stored.StartedAtMS
	}
	return r.write(ctx, tenant, &w, &key, f.Queues)
}

// write stores a record, and the queues of a fetch. fetch is nil for a heartbeat, which keeps
// the queues: a worker that is busy does not fetch.
func (r *Registry) write(ctx context.Context, tenant string, w *record, fetch *seenKey, queues []string) error {
	raw, err := api.EncodeJSON(w)
	if err != nil {
		return fmt.Errorf("queue: encode a worker: %w", err)
	}
	keys, now := r.store.JobKeys(tenant), w.LastHeartbeatMS
	expired := strconv.FormatInt(now-ttlMS, 10)
	pipe := r.rdb.Pipeline()
	pipe.ZAdd(ctx, keys.Workers(), redis.Z{Score: float64(now), Member: w.ID})
	pipe.ZRemRangeByScore(ctx, keys.Workers(), "-inf", expired)
	if fetch != nil {
		members := make([]redis.Z, len(queues))
		for i, q := range queues {
			members[i] = redis.Z{Score: float64(now), Member: w.Namespace + "/" + q}
		}
		pipe.ZAdd(ctx, keys.WorkerQueues(w.ID), members...)
		pipe.ZRemRangeByScore(ctx, keys.WorkerQueues(w.ID), "-inf", expired)
		pipe.ZRemRangeByRank(ctx, keys.WorkerQueues(w.ID), 0, -maxQueues-1)
	}
	pipe.Do(ctx, "PEXPIRE", keys.WorkerQueues(w.ID), ttlMS)
	pipe.Do(ctx, "SET", keys.Worker(w.ID), raw, "PX", ttlMS)
	if _, err := pipe.Exec(ctx); err != nil {
		return jobstore.Failure(ctx, "note a worker", err)
	}
	at := written{w.StartedAtMS, now}
	r.seen.Set(seenKey{job: jobstore.Key{Tenant: tenant, ID: w.ID}}, at)
	if fetch != nil {
		r.seen.Set(*fetch, at)
	}
	return nil
}

// NoteAlive refreshes the record of a worker that sends heartbeats but does not fetch, because
// it is busy with long jobs. It ignores workers that are not registered and, if namespace is not
// empty, workers that do not fetch from it. Errors: CodeInvalid, CodeStoreUnavailable.
func (r *Registry) NoteAlive(ctx context.Context, tenant, namespace, id string) error {
	if err := api.ValidateWorkerID(id); err != nil {
		return err
	}
	now := r.store.NowMS()
	if before, known := r.seen.GetIfPresent(seenKey{job: jobstore.Key{Tenant: tenant, ID: id}}); known && now-before.atMS < writeEveryMS {
		return nil
	}
	found, queues, err := r.read(ctx, tenant, []string{id})
	if err != nil || len(found) == 0 {
		return err
	}
	if namespace != "" && !slices.ContainsFunc(namespacesOf(&found[0], queues[0]), func(n api.WorkerNamespace) bool { return n.Namespace == namespace }) {
		return nil
	}
	found[0].LastHeartbeatMS = now
	return r.write(ctx, tenant, &found[0], nil, nil)
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

// Read returns the workers in the order of ids, without those that have expired. Errors:
// CodeStoreUnavailable.
func (r *Registry) Read(ctx context.Context, tenant string, ids []string) ([]api.Worker, error) {
	records, queues, err := r.read(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	workers := make([]api.Worker, len(records))
	for i := range records {
		w := &records[i]
		workers[i] = api.Worker{
			ID: w.ID, Hostname: w.Hostname, Version: w.Version, StartedAtMS: w.StartedAtMS, LastHeartbeatMS: w.LastHeartbeatMS,
			Namespaces: namespacesOf(w, queues[i]),
		}
	}
	return workers, nil
}

// read returns the records of workers that have not expired, with the members of their sets of
// queues.
func (r *Registry) read(ctx context.Context, tenant string, ids []string) (records []record, queues [][]string, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	keys := r.store.JobKeys(tenant)
	pipe := r.rdb.Pipeline()
	stored, members := make([]*redis.StringCmd, len(ids)), make([]*redis.StringSliceCmd, len(ids))
	for i, id := range ids {
		stored[i], members[i] = pipe.Get(ctx, keys.Worker(id)), pipe.ZRange(ctx, keys.WorkerQueues(id), 0, -1)
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return nil, nil, jobstore.Failure(ctx, "read workers", err)
	}
	for i, reply := range stored {
		if reply.Err() != nil {
			continue // it has just expired
		}
		var w record
		if err := json.Unmarshal([]byte(reply.Val()), &w); err != nil {
			return nil, nil, fmt.Errorf("queue: decode worker %s: %w", ids[i], err)
		}
		records, queues = append(records, w), append(queues, members[i].Val())
	}
	return records, queues, nil
}

// namespacesOf returns the namespaces and queues of a worker, in the order of their names:
// those of its set, and those of its last fetch, for records of older releases.
func namespacesOf(w *record, members []string) []api.WorkerNamespace {
	for _, q := range w.Queues {
		members = append(members, w.Namespace+"/"+q)
	}
	slices.Sort(members)
	out := []api.WorkerNamespace{}
	for _, m := range slices.Compact(members) {
		namespace, queue, _ := strings.Cut(m, "/")
		if len(out) == 0 || out[len(out)-1].Namespace != namespace {
			out = append(out, api.WorkerNamespace{Namespace: namespace})
		}
		last := &out[len(out)-1]
		last.Queues = append(last.Queues, queue)
	}
	return out
}
