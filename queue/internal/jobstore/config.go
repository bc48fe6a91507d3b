package jobstore

import (
	"cmp"
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// The fields of a queue's configuration, the hash cs:queue:t:ns:q:config. Only Configure of
// queue.Broker writes them. claim_limits.lua reads paused and the limits before each claim;
// the scripts that add jobs read draining. A missing field, or 0, is no limit, and the
// retention of the tenant.
const (
	configPaused      = "paused"
	configDraining    = "draining"
	configConcurrency = "max_concurrency"
	configRateLimit   = "rate_limit"
	configRateWindow  = "rate_window_ms"
	configRetention   = "retention_ms"
	configEvents      = "events"
	FieldProvider     = "provider"
)

// ConfigFields are the fields of a queue's configuration, in the order that ParseConfig
// expects.
var ConfigFields = []string{configPaused, configDraining, configConcurrency, configRateLimit, configRateWindow, configRetention, configEvents, FieldProvider}

// ConfigValues returns c as arguments of HSET: each field followed by its value.
func ConfigValues(c api.QueueConfig) []any {
	flag := func(on bool) string {
		if on {
			return "1"
		}
		return "0"
	}
	return []any{
		configPaused, flag(c.Paused), configDraining, flag(c.Draining),
		configConcurrency, c.MaxConcurrency, configRateLimit, c.RateLimit, configRateWindow, c.RateWindowMS, configRetention, c.RetentionMS, configEvents, c.Events, FieldProvider, c.Provider,
	}
}

// ParseConfig returns the configuration whose fields, in the order of ConfigFields, have
// the given values. A missing value is the zero value.
func ParseConfig(values []any) api.QueueConfig {
	words := Words(values)
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(words[i], 10, 64) // "" is 0, which means not set
		return n
	}
	return api.QueueConfig{
		Paused: words[0] == "1", Draining: words[1] == "1",
		MaxConcurrency: number(2), RateLimit: number(3), RateWindowMS: number(4), RetentionMS: number(5), Events: cmp.Or(words[6], event.RecordEnds), Provider: words[7],
	}
}

// Depth queues commands on pipe that count the jobs of q in one state. The returned
// function returns the count after pipe was executed, 0 if it failed. Strays of an
// interrupted script are counted, too.
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

// AddQueue adds q to the list of its tenant's queues. It comes before the first entry in the
// queue's sets: a listed queue without jobs does no harm, but one that has jobs and is not
// listed is found only by the sweeper. A repeat succeeds. Errors: CodeStoreUnavailable.
func (s *Store) AddQueue(ctx context.Context, q Queue) error {
	return Failure(ctx, "enter a queue", s.rdb.SAdd(ctx, s.store.JobKeys(q.Tenant).Queues(), q.Path()).Err())
}
