package storage

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// KV is the key-value storage that functions use as cs.kv. Values are opaque bytes. The last
// write wins; there is no compare-and-set. A key may contain colons, since nothing follows
// it in the key of the store. The caller checks its size and the function's capability.
type KV struct{ s *Store }

// NewKV returns the key-value pairs in s.
func NewKV(s *Store) *KV { return &KV{s} }

// Get returns the value of key. found reports whether key exists.
func (r *KV) Get(ctx context.Context, tenant, namespace, key string) (value []byte, found bool, err error) {
	value, err = r.s.rdb.Get(ctx, r.s.keys.kv(tenant, namespace, key)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, Failure(ctx, "read kv", err)
	}
	return value, true, nil
}

// Set stores value under key for ttl; a ttl of zero or less is no expiry.
func (r *KV) Set(ctx context.Context, tenant, namespace, key string, value []byte, ttl time.Duration) error {
	ttl = max(0, ttl) // -1 has a meaning of its own for the client
	return Failure(ctx, "write kv", r.s.rdb.Set(ctx, r.s.keys.kv(tenant, namespace, key), value, ttl).Err())
}

// Del removes key. It reports whether key existed.
func (r *KV) Del(ctx context.Context, tenant, namespace, key string) (bool, error) {
	n, err := r.s.rdb.Del(ctx, r.s.keys.kv(tenant, namespace, key)).Result()
	return n > 0, Failure(ctx, "delete kv", err)
}
