package storage

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// getMany reads strings of one tenant in one command; what is not there is "".
func (s *Store) getMany(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := s.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, err
	}
	raws := make([]string, len(values))
	for i, v := range values {
		if raw, ok := v.(string); ok {
			raws[i] = raw
		}
	}
	return raws, nil
}

// lexRange reads up to limit members of an index whose scores are all equal, in
// order, beginning behind after ("" is the start).
func (s *Store) lexRange(ctx context.Context, key, after string, limit int) ([]string, error) {
	start := "-"
	if after != "" {
		start = "(" + after
	}
	return s.rdb.ZRangeByLex(ctx, key, &redis.ZRangeBy{Min: start, Max: "+", Count: int64(limit)}).Result()
}
