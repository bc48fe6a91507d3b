package repair

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// scanCount is the COUNT of one SCAN command.
const scanCount = 500

// scanPrefixes are the prefixes of the keys that are scanned, in this order.
var scanPrefixes = []string{storage.PrefixJobs, storage.PrefixBatches}

// scan is the position of a scan of the keys of all jobs and batches, on every master of a
// cluster. It finds every key that exists from its beginning to its end, as SCAN guarantees; a
// key may be found twice, and keys that are made or deleted meanwhile may be missing.
//
// Of the keys of a job, :run and :meta are used. A job of the previous layout has only :meta.
type scan struct {
	prefix int // index in scanPrefixes
	begun  bool
	nodes  []string // addresses of the masters to be scanned; one "" without a cluster
	cursor uint64
	keys   []jobstore.Key // found, but not yet checked; sorted, so that the keys of a tenant are neighbours
}

// end reports whether the scan is complete.
func (s *scan) end() bool {
	return s.begun && len(s.keys) == 0 && len(s.nodes) == 0 && s.prefix == len(scanPrefixes)-1
}

// scanOn scans until it has found keys or reached the limit of reads. It takes at least one step
// if none has been read yet, so that a pass ends with any limit.
func (r *Repairer) scanOn(ctx context.Context, findings *Findings, reads int) error {
	s := &r.scan
	for len(s.keys) == 0 && !s.end() && (findings.Reads == 0 || findings.Reads < reads) {
		if len(s.nodes) == 0 {
			if s.begun {
				s.prefix++
			}
			nodes, err := r.nodes(ctx)
			if err != nil {
				return err
			}
			s.begun, s.nodes, s.cursor = true, nodes, 0
		}
		prefix := scanPrefixes[s.prefix]
		found, cursor, err := r.scanNode(ctx, s.nodes[0], s.cursor, prefix)
		findings.Reads++
		if err != nil {
			return err
		}
		for _, key := range found {
			if tenant, id, ok := r.store.RecordOf(prefix, key); ok {
				s.keys = append(s.keys, jobstore.Key{Tenant: tenant, ID: id})
			}
		}
		slices.SortFunc(s.keys, jobstore.Key.Compare)
		s.keys = slices.Compact(s.keys)
		s.cursor = cursor
		if cursor == 0 {
			s.nodes = s.nodes[1:]
		}
	}
	return nil
}

// nodes returns the addresses of all masters.
func (r *Repairer) nodes(ctx context.Context) ([]string, error) {
	cluster, ok := r.rdb.(*redis.ClusterClient)
	if !ok {
		return []string{""}, nil
	}
	var mu sync.Mutex
	var all []string
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c.Options().Addr)
		return nil
	})
	slices.Sort(all)
	return all, jobstore.Failure(ctx, "list the store's nodes", err)
}

// scanNode takes one step on one node. A node that is no longer a master has no keys of its own:
// its cursor is 0.
func (r *Repairer) scanNode(ctx context.Context, addr string, from uint64, prefix string) (keys []string, cursor uint64, err error) {
	cluster, ok := r.rdb.(*redis.ClusterClient)
	if ok {
		prefix = "" // with a prefix, a node of a KVRocks cluster skips keys
	}
	step := func(ctx context.Context, c redis.Cmdable) (err error) {
		keys, cursor, err = c.Scan(ctx, from, prefix+"*", scanCount).Result()
		return err
	}
	if !ok {
		err = step(ctx, r.rdb)
	} else {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			if c.Options().Addr != addr {
				return nil
			}
			return step(ctx, c)
		})
	}
	return keys, cursor, jobstore.Failure(ctx, "scan jobs", err)
}
