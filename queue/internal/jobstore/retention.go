package jobstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// RetentionMS returns how long ended jobs are kept in the queues of a tenant that have no
// retention of their own, in milliseconds.
func (s *Store) RetentionMS(tenant string) int64 { return s.retention.MS(tenant, 0) }

// KeepMS returns how long the ended jobs of q are kept, in milliseconds. Errors:
// CodeStoreUnavailable.
func (s *Store) KeepMS(ctx context.Context, q Queue) (int64, error) {
	own := s.rdb.HMGet(ctx, s.Keys(q).Config(), configRetention)
	return s.keepMS(q, own), Failure(ctx, "read a queue's retention", own.Err())
}

// keepMS returns the retention of q, of which own is the reply for the field of its
// configuration.
func (s *Store) keepMS(q Queue, own *redis.SliceCmd) int64 {
	for _, text := range Words(own.Val()) {
		ms, _ := strconv.ParseInt(text, 10, 64) // a queue without the field has none
		return s.retention.MS(q.Tenant, ms)
	}
	return s.retention.MS(q.Tenant, 0)
}
