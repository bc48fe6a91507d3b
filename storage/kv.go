package storage

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// KV is what functions read and write as cs.kv. Values are opaque bytes.
type KV struct{ s *Store }

// NewKV gives the key-value pairs in s.
func NewKV(s *Store) *KV { return &KV{s} }

// Get gives the value under key, and whether there is one.
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

// Set stores value under key, for ttl; zero or less is for ever.
func (r *KV) Set(ctx context.Context, tenant, namespace, key string, value []byte, ttl time.Duration) error {
	ttl = max(0, ttl) // the client has a meaning of its own for -1
	return Failure(ctx, "write kv", r.s.rdb.Set(ctx, r.s.keys.kv(tenant, namespace, key), value, ttl).Err())
}

// Del removes key and says whether it was there.
func (r *KV) Del(ctx context.Context, tenant, namespace, key string) (bool, error) {
	n, err := r.s.rdb.Del(ctx, r.s.keys.kv(tenant, namespace, key)).Result()
	return n > 0, Failure(ctx, "delete kv", err)
}
