package queue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// Change is a partial update of a queue's configuration. A nil field leaves its value.
type Change struct {
	Paused         *bool
	Draining       *bool
	MaxConcurrency *int64  // active jobs, from 0, which means no limit, to api.MaxQueueConcurrency
	RateLimit      *int64  // claims in each window, from 0, which means no limit, to api.MaxRateLimit
	RateWindowMS   *int64  // from api.MinRateWindowMS to api.MaxRateWindowMS
	RetentionMS    *int64  // 0, the retention of the tenant, or from api.MinRetentionMS to api.MaxRetentionMS
	Provider       *string // of models, "" for none
	Events         *string // event.RecordAll, RecordEnds or RecordOff
	// Now is the configuration that the queue must have for the change to be made; nil
	// for any.
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
		"retention_ms":    {c.RetentionMS, api.MinRetentionMS, api.MaxRetentionMS},
	} {
		if path == "retention_ms" && bound.value != nil && *bound.value == 0 {
			continue
		}
		if bound.value != nil && (*bound.value < bound.least || *bound.value > bound.most) {
			return api.InvalidRange(path, bound.least, bound.most)
		}
	}
	if e := c.Events; e != nil && *e != event.RecordAll && *e != event.RecordEnds && *e != event.RecordOff {
		return api.InvalidField("events", "must be all, ends or off")
	}
	return nil
}

// Configure changes a queue's configuration and returns the queue, which is created if it
// does not exist. It applies from the next claim or enqueue on, in all replicas, because
// their scripts read it; jobs that are active finish. Errors: CodeInvalid…,
// CodePreconditionFailed if the configuration is not c.Now, CodeStoreConflict if others keep
// changing it, CodeTenantQuota, CodeStoreUnavailable.
func (b *Broker) Configure(ctx context.Context, tenant, namespace, queue string, c Change) (*api.Queue, error) {
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	q := jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}
	if err := b.admission.Queue(ctx, q); err != nil {
		return nil, err
	}
	if err := b.jobs.AddQueue(ctx, q); err != nil {
		return nil, err
	}
	for try := range changeTries {
		done, err := b.configure(ctx, q, &c, try > 0)
		if err != nil {
			return nil, err
		}
		if done {
			b.notifier.Wake(q)
			return b.GetQueue(ctx, tenant, namespace, queue)
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "the configuration of queue %q keeps changing: try again", queue)
}

// configure makes the change and reports whether it did: it does not if the configuration
// changes concurrently. again marks another try, whose predecessor may have made the change
// although its reply was lost.
func (b *Broker) configure(ctx context.Context, q jobstore.Queue, c *Change, again bool) (bool, error) {
	values, err := b.rdb.HMGet(ctx, b.jobs.Keys(q).Config(), jobstore.ConfigFields...).Result()
	if err != nil {
		return false, jobstore.Failure(ctx, "read a queue", err)
	}
	held := jobstore.ParseConfig(values)
	if c.Now != nil && held != *c.Now && (!again || held != c.applied(*c.Now)) {
		return false, configChanged(q.Name)
	}
	args := []any{len(jobstore.ConfigFields)}
	for i, value := range jobstore.Words(values) {
		args = append(args, jobstore.ConfigFields[i], value)
	}
	reply, err := b.store.ScriptThen(ctx, storage.ScriptQueueConfig, []string{b.jobs.Keys(q).Config()}, append(args, jobstore.ConfigValues(c.applied(held))...), func(pipe redis.Pipeliner) {
		if jobstore.IsFunctionQueue(q.Name) { // the change may let jobs start
			b.jobs.MarkReady(ctx, pipe, q, b.store.NowMS())
		}
		if c.RetentionMS != nil { // jobs that have ended may be purged sooner
			b.jobs.MarkDue(ctx, pipe, q, b.store.NowMS())
		}
	})
	return reply == "ok", err
}

func configChanged(queue string) error {
	return api.Errorf(api.CodePreconditionFailed, "the configuration of queue %q has changed since it was read", queue)
}

// applied returns the configuration held with the change applied. A rate limit without a window
// gets the default one, which is then stored.
func (c *Change) applied(held api.QueueConfig) api.QueueConfig {
	for to, value := range map[*bool]*bool{&held.Paused: c.Paused, &held.Draining: c.Draining} {
		if value != nil {
			*to = *value
		}
	}
	if c.RateLimit != nil && *c.RateLimit > 0 && c.RateWindowMS == nil && held.RateWindowMS == 0 {
		held.RateWindowMS = api.DefaultRateWindowMS
	}
	for to, value := range map[*int64]*int64{&held.MaxConcurrency: c.MaxConcurrency, &held.RateLimit: c.RateLimit, &held.RateWindowMS: c.RateWindowMS, &held.RetentionMS: c.RetentionMS} {
		if value != nil {
			*to = *value
		}
	}
	for to, value := range map[*string]*string{&held.Events: c.Events, &held.Provider: c.Provider} {
		if value != nil {
			*to = *value
		}
	}
	return held
}
