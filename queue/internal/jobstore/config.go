package jobstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// The fields of a queue's configuration.
const (
	configPaused      = "paused"
	configDraining    = "draining"
	configConcurrency = "max_concurrency"
	configRateLimit   = "rate_limit"
	configRateWindow  = "rate_window_ms"
)

var ConfigFields = []string{configPaused, configDraining, configConcurrency, configRateLimit, configRateWindow}

// ConfigValues are a configuration as the hash has it: each field with its value.
func ConfigValues(c api.QueueConfig) []any {
	flag := func(on bool) string {
		if on {
			return "1"
		}
		return "0"
	}
	return []any{
		configPaused, flag(c.Paused), configDraining, flag(c.Draining),
		configConcurrency, c.MaxConcurrency, configRateLimit, c.RateLimit, configRateWindow, c.RateWindowMS,
	}
}

func ParseConfig(values []any) api.QueueConfig {
	words := Words(values)
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(words[i], 10, 64) // "" is 0: not set
		return n
	}
	return api.QueueConfig{
		Paused: words[0] == "1", Draining: words[1] == "1",
		MaxConcurrency: number(2), RateLimit: number(3), RateWindowMS: number(4),
	}
}

// Depth counts q's jobs of one state; call the result when pipe has run.
func (s *Store) Depth(ctx context.Context, pipe redis.Pipeliner, q Queue, state api.JobState) func() int64 {
	var sizes []*redis.IntCmd
	for _, set := range s.Sets(q, state) {
		sizes = append(sizes, pipe.ZCard(ctx, set))
	}
	return func() (n int64) {
		for _, size := range sizes {
			n += size.Val()
		}
		return n
	}
}

func (s *Store) AddQueue(ctx context.Context, q Queue) error {
	return Failure(ctx, "enter a queue", s.rdb.SAdd(ctx, s.store.JobKeys(q.Tenant).Queues(), q.Path()).Err())
}
