package kvrocks

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage/statestore"
)

const (
	scanCount = 512 // keys that a server is asked to look at in one SCAN
	readBatch = 128 // records in one pipeline
)

// Scan implements statestore.Store. It uses an index that has every record that can pass,
// and otherwise scans all keys of all masters.
func (s *Store) Scan(ctx context.Context, prefix string, f *statestore.Filter) iter.Seq2[statestore.Entry, error] {
	return statestore.Entries(prefix, f, func(give func(statestore.Entry) error) error {
		if err := s.CheckOpen(); err != nil {
			return err
		}
		if x, set, ok := s.serves(prefix, f); ok {
			return s.walkIndex(ctx, x, set, prefix, f, give)
		}
		scan := func(give func(statestore.Entry) error) error { return s.scanKeys(ctx, prefix, give) }
		return statestore.Filtered(f, scan, give)
	})
}

// anyKey is the pattern of SCAN on a cluster. With a prefix, a node of a KVRocks cluster
// (seen on 2.9) misses matching keys: if it continues from a cursor at a key without the
// prefix, it skips the rest of that key's slot.
const anyKey = "*"

// scanKeys iterates over every record below prefix once, in no order; SCAN can return a key
// twice. The server looks at many keys of other records, so it is for rare calls.
func (s *Store) scanKeys(ctx context.Context, prefix string, give func(statestore.Entry) error) error {
	nodes, err := s.masters(ctx)
	if err != nil {
		return err
	}
	match, seen := matchPrefix(prefix), map[string]bool{}
	if _, cluster := s.backend.Client().(*redis.ClusterClient); cluster {
		match = anyKey
	}
	for _, node := range nodes {
		for cursor := uint64(0); ; {
			var keys []string
			keys, cursor, err = node.Scan(ctx, cursor, match, scanCount).Result()
			if err != nil {
				return s.backend.Failure(ctx, "scan the keys", err)
			}
			keys = slices.DeleteFunc(keys, func(key string) bool {
				if !strings.HasPrefix(key, prefix) || seen[key] {
					return true
				}
				seen[key] = true
				return false
			})
			if err := s.giveRecords(ctx, keys, give); err != nil {
				return err
			}
			if cursor == 0 {
				break
			}
		}
	}
	return nil
}

// matchPrefix returns a pattern for the keys that begin with prefix, and perhaps others:
// KVRocks supports only patterns of a prefix and a star.
func matchPrefix(prefix string) string {
	if special := strings.IndexAny(prefix, `*?[]\`); special >= 0 {
		prefix = prefix[:special]
	}
	return prefix + "*"
}

// masters returns the servers that together have all keys.
func (s *Store) masters(ctx context.Context) ([]redis.Cmdable, error) {
	cluster, ok := s.backend.Client().(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.backend.Client()}, nil
	}
	var mu sync.Mutex
	var nodes []redis.Cmdable
	err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	return nodes, s.backend.Failure(ctx, "find the masters", err)
}

// giveRecords reads the records of keys and passes on those that exist.
func (s *Store) giveRecords(ctx context.Context, keys []string, give func(statestore.Entry) error) error {
	for batch := range slices.Chunk(keys, readBatch) {
		records, err := s.readMany(ctx, batch)
		if err != nil {
			return err
		}
		for i, r := range records {
			if r == nil {
				continue
			}
			if err := give(statestore.Entry{Key: batch[i], Record: *r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMany returns the record of each key, nil if it does not exist or has another type: a scan
// by a prefix may meet keys that are no records.
func (s *Store) readMany(ctx context.Context, keys []string) ([]*statestore.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	pipe := s.backend.Client().Pipeline()
	fields, ttls := make([]*redis.MapStringStringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		fields[i], ttls[i] = readRecord(ctx, pipe, key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	records, refused := make([]*statestore.Record, len(keys)), map[string]error{}
	for i, key := range keys {
		err := errors.Join(fields[i].Err(), ttls[i].Err())
		var reply redis.Error
		switch {
		case err == nil:
			records[i] = record(fields[i], ttls[i])
		case errors.As(err, &reply):
			refused[key] = err
		default:
			return nil, s.backend.Failure(ctx, "read records", err)
		}
	}
	return records, s.passOver(ctx, refused)
}

// passOver returns an error unless the keys, whose reads failed, have other types. The
// servers have different error texts for that.
func (s *Store) passOver(ctx context.Context, refused map[string]error) error {
	if len(refused) == 0 {
		return nil
	}
	pipe := s.backend.Client().Pipeline()
	types := make(map[string]*redis.StatusCmd, len(refused))
	for key := range refused {
		types[key] = pipe.Type(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return s.backend.Failure(ctx, "look at the types of keys", err)
	}
	for key, kind := range types {
		if kind.Val() == "hash" {
			return s.backend.Failure(ctx, "read records", refused[key])
		}
	}
	return nil
}
