package storage

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// GetMany reads the strings of keys, all of one tenant, 50 with each command: records of 64 KiB must
// not keep the store from everything else. A missing key reads as "".
func (s *Store) GetMany(ctx context.Context, keys []string) ([]string, error) {
	raws := make([]string, 0, len(keys))
	for part := range slices.Chunk(keys, 50) {
		values, err := s.rdb.MGet(ctx, part...).Result()
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			raw, _ := v.(string)
			raws = append(raws, raw)
		}
	}
	return raws, nil
}

// LexRange reads up to limit members of an index whose scores are all equal, in order,
// after the member after ("" for the start).
func (s *Store) LexRange(ctx context.Context, key, after string, limit int) ([]string, error) {
	start := "-"
	if after != "" {
		start = "(" + after
	}
	return s.rdb.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: start, Max: "+", Count: int64(limit)}).Result()
}

// scanCount is how many members of a set one call reads.
const scanCount = 256

// ScanSet iterates over the members of a set, some at a time and in no order; a member may
// appear twice. It ends at the first error, which it yields.
func (s *Store) ScanSet(ctx context.Context, key string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for cursor := uint64(0); ; {
			step, following, err := s.rdb.SScan(ctx, key, cursor, "", scanCount).Result()
			if !yield(step, Failure(ctx, "read a set", err)) || err != nil || following == 0 {
				return
			}
			cursor = following
		}
	}
}

// Members returns all members of a set in order, and the number of commands that it took.
func (s *Store) Members(ctx context.Context, key string) (all []string, reads int, err error) {
	for step, err := range s.ScanSet(ctx, key) {
		if err != nil {
			return nil, reads, err
		}
		all = append(all, step...)
		reads++
	}
	slices.Sort(all)
	return slices.Compact(all), reads, nil // a scan may name a member twice
}

// PageOfSet reads a whole set in small steps and keeps the first limit members behind after: a set
// has no order of its own to read from. next is "" at the end, else the after of the next page.
func (s *Store) PageOfSet(ctx context.Context, key, after string, limit int) (items []string, next string, err error) {
	limit = PageLimit(limit)
	for step, err := range s.ScanSet(ctx, key) {
		if err != nil {
			return nil, "", err
		}
		for _, m := range step {
			if m > after {
				items = append(items, m)
			}
		}
		slices.Sort(items)
		items = slices.Compact(items) // a scan may name a member twice
		if len(items) > limit+1 {
			items = items[:limit+1]
		}
	}
	items, next = FirstPage(items, limit)
	return items, next, nil
}

// NamespacePath names a namespace of a tenant.
type NamespacePath struct{ Tenant, Namespace string }

// Places iterates over a set of namespaces, each as t/ns, in no order and each once. It ends at
// the first error, which it yields.
func (s *Store) Places(ctx context.Context, key string) iter.Seq2[NamespacePath, error] {
	return func(yield func(NamespacePath, error) bool) {
		seen := map[string]bool{}
		for members, err := range s.ScanSet(ctx, key) {
			if err != nil {
				yield(NamespacePath{}, err)
				return
			}
			for _, member := range members {
				if seen[member] {
					continue
				}
				seen[member] = true
				tenant, namespace, _ := strings.Cut(member, "/")
				if !yield(NamespacePath{tenant, namespace}, nil) {
					return
				}
			}
		}
	}
}
