package queue

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// The fields of a queue's configuration.
const (
	configPaused      = "paused"
	configDraining    = "draining"
	configConcurrency = "max_concurrency"
	configRateLimit   = "rate_limit"
	configRateWindow  = "rate_window_ms"
)

var configFields = []string{configPaused, configDraining, configConcurrency, configRateLimit, configRateWindow}

// Change is what of a queue's configuration is to be another; nil leaves it.
type Change struct {
	Paused         *bool
	Draining       *bool
	MaxConcurrency *int64
	RateLimit      *int64
	RateWindowMS   *int64
	// Now, where set, is what the configuration must be when it is changed.
	Now *api.QueueConfig
}

func (c *Change) validate() error {
	for path, bound := range map[string]struct {
		value       *int64
		least, most int64
	}{
		"max_concurrency": {c.MaxConcurrency, 0, api.MaxQueueConcurrency},
		"rate_limit":      {c.RateLimit, 0, api.MaxRateLimit},
		"rate_window_ms":  {c.RateWindowMS, api.MinRateWindowMS, api.MaxRateWindowMS},
	} {
		if bound.value != nil && (*bound.value < bound.least || *bound.value > bound.most) {
			return fieldError(path, "must be from "+strconv.FormatInt(bound.least, 10)+" to "+strconv.FormatInt(bound.most, 10))
		}
	}
	return nil
}

// Configure changes how a queue serves; the queue comes into being with it.
// CodePreconditionFailed where its configuration is not c.Now.
func (b *Broker) Configure(ctx context.Context, tenant, namespace, queue string, c Change) (*api.Queue, error) {
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := b.register(ctx, tenant, namespace); err != nil {
		return nil, err
	}
	q := queueKey{tenant, namespace, queue}
	if err := b.addQueue(ctx, q); err != nil {
		return nil, err
	}
	for try := range changeTries {
		done, err := b.configure(ctx, q, &c, try > 0)
		if err != nil {
			return nil, err
		}
		if done {
			b.wakes.wake(q)
			return b.GetQueue(ctx, tenant, namespace, queue)
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "the configuration of queue %q keeps changing", queue)
}

// configure makes the change unless somebody else makes one meanwhile. again says
// that it was tried before, and may have been made then.
func (b *Broker) configure(ctx context.Context, q queueKey, c *Change, again bool) (bool, error) {
	values, err := b.rdb.HMGet(ctx, b.keys(q).Config(), configFields...).Result()
	if err != nil {
		return false, b.failure(ctx, "read a queue", err)
	}
	held := configOf(values)
	if c.Now != nil && held != *c.Now && (!again || held != c.on(*c.Now)) {
		return false, configChanged(q.queue)
	}
	args := []any{len(configFields)}
	for i, value := range texts(values) {
		args = append(args, configFields[i], value)
	}
	reply, err := b.store.ScriptThen(ctx, storage.ScriptQueueConfig, []string{b.keys(q).Config()}, append(args, configValues(c.on(held))...), func(pipe redis.Pipeliner) {
		if isFunctionQueue(q.queue) { // it may serve again
			b.markReady(ctx, pipe, q, b.store.NowMS())
		}
	})
	return reply == "ok", err
}

func configChanged(queue string) error {
	return api.Errorf(api.CodePreconditionFailed, "the configuration of queue %q is another by now", queue)
}

// configValues are a configuration as the hash has it: each field with its value.
func configValues(c api.QueueConfig) []any {
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

// on is what c makes of a configuration.
func (c *Change) on(held api.QueueConfig) api.QueueConfig {
	for to, value := range map[*bool]*bool{&held.Paused: c.Paused, &held.Draining: c.Draining} {
		if value != nil {
			*to = *value
		}
	}
	if c.RateLimit != nil && *c.RateLimit > 0 && c.RateWindowMS == nil && held.RateWindowMS == 0 {
		held.RateWindowMS = api.DefaultRateWindowMS
	}
	for to, value := range map[*int64]*int64{&held.MaxConcurrency: c.MaxConcurrency, &held.RateLimit: c.RateLimit, &held.RateWindowMS: c.RateWindowMS} {
		if value != nil {
			*to = *value
		}
	}
	return held
}

func configOf(values []any) api.QueueConfig {
	words := texts(values)
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(words[i], 10, 64) // "" is 0: not set
		return n
	}
	return api.QueueConfig{
		Paused: words[0] == "1", Draining: words[1] == "1",
		MaxConcurrency: number(2), RateLimit: number(3), RateWindowMS: number(4),
	}
}
