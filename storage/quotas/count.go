package quotas

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// indexed are the quotas whose amounts the indexes of the records have. They are counted by a few
// commands for each namespace and queue. The others are sums over records: see Walk.
var indexed = []quota.Name{
	quota.Namespaces, quota.Functions, quota.Drafts, quota.DraftBytes, quota.Queues, quota.Jobs,
	quota.Batches, quota.Tasks, quota.Triggers, quota.Bindings, quota.Schedules, quota.DocNamespaces,
	quota.Secrets, quota.Domains, quota.Keys,
}

const (
	// A tenant may cause about this many commands a second by requests that count its records.
	countedPerSecond = 500
	countPause       = 100 * time.Millisecond
	countPage        = 500 // entries of one read
	// recordWithin is how long after its amount was taken a record may be written, and so not be
	// counted. Jobs and tasks of that time can exceed the limit.
	recordWithin = 2 * time.Second
)

// countAgain counts the tenant's indexed records, and reports whether it did: not if the last count
// is younger than fresh, and not before the pause that it has cost is over. A short rest of the
// pause is waited for. A call during a count waits for it.
func (k *Keeper) countAgain(ctx context.Context, t *tenant, fresh time.Duration) bool {
	t.counts.mu.Lock()
	defer t.counts.mu.Unlock()
	now := k.store.NowMS()
	age := now - t.counts.last
	if age >= 0 && age < fresh.Milliseconds() {
		return false
	}
	wait := t.counts.next - now
	if wait > 2*countPause.Milliseconds() {
		return false
	}
	if wait > 0 {
		select {
		case <-time.After(time.Duration(wait) * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	commands, err := Count(ctx, k.store, t.name)
	pause := max(countPause, time.Duration(commands)*time.Second/countedPerSecond)
	t.counts.next = k.store.NowMS() + pause.Milliseconds()
	t.counts.reserve = 0 // the count does not contain it
	if err != nil {
		k.metrics.failed.Inc()
		return false
	}
	t.counts.last = k.store.NowMS()
	return true
}

// Count counts the records of a tenant by their indexes and corrects the amounts. It returns the
// number of commands. CodeStoreUnavailable.
func Count(ctx context.Context, s *storage.Store, tenant string) (commands int, err error) {
	before, err := beforeCount(ctx, s, tenant, indexed)
	if err != nil {
		return 0, err
	}
	c := &counter{s: s, tenant: tenant, sums: map[quota.Name]int64{}}
	if err := c.count(ctx); err != nil {
		return c.commands, storage.Failure(ctx, "count records", err)
	}
	return c.commands + 2, correct(ctx, s, tenant, indexed, before, c.sums)
}

// beforeCount reads the amounts before a count.
func beforeCount(ctx context.Context, s *storage.Store, tenant string, quotas []quota.Name) ([]string, error) {
	names := make([]string, len(quotas))
	for i, q := range quotas {
		names[i] = string(q)
	}
	held, err := s.Client().HMGet(ctx, s.Keys().QuotaUse(tenant), names...).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read quotas", err)
	}
	before := make([]string, len(held))
	for i, v := range held {
		before[i] = "0"
		if text, ok := v.(string); ok {
			before[i] = text
		}
	}
	return before, nil
}

// correct stores counted amounts.
func correct(ctx context.Context, s *storage.Store, tenant string, quotas []quota.Name, before []string, sums map[quota.Name]int64) error {
	args := make([]any, 0, 1+4*len(quotas))
	args = append(args, s.NowMS())
	for i, q := range quotas {
		grace := recordWithin
		if q == quota.Jobs || q == quota.Tasks {
			grace = 0 // they end by themselves, so that a busy tenant's amount must be lowered
		}
		args = append(args, string(q), before[i], sums[q], grace.Milliseconds())
	}
	_, err := s.Script(ctx, storage.ScriptQuotaRecount, []string{s.Keys().QuotaUse(tenant)}, args...)
	return err
}

// counter counts the indexed records of a tenant.
type counter struct {
	s        *storage.Store
	tenant   string
	sums     map[quota.Name]int64
	commands int
}

func (c *counter) count(ctx context.Context) error {
	namespaces, err := c.members(ctx, c.s.Keys().Namespaces(c.tenant))
	if err != nil {
		return err
	}
	queues, err := c.members(ctx, c.s.JobKeys(c.tenant).Queues())
	if err != nil {
		return err
	}
	c.sums[quota.Namespaces], c.sums[quota.Queues] = int64(len(namespaces)), int64(len(queues))
	if err := c.drafts(ctx); err != nil {
		return err
	}
	if err := c.sum(ctx, []string{""}, c.ofTenant); err != nil {
		return err
	}
	if err := c.sum(ctx, namespaces, c.ofNamespace); err != nil {
		return err
	}
	return c.sum(ctx, queues, c.ofQueue)
}

// members returns a set, in pages.
func (c *counter) members(ctx context.Context, key string) ([]string, error) {
	var all []string
	for step, err := range c.s.ScanSet(ctx, key) {
		if err != nil {
			return nil, err
		}
		c.commands++
		all = append(all, step...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// cardinal is a set whose size belongs to a quota.
type cardinal struct {
	quota quota.Name
	size  *redis.IntCmd
}

// sum adds the sizes of the sets that of returns for each name, some hundred commands a round
// trip.
func (c *counter) sum(ctx context.Context, names []string, of func(context.Context, redis.Pipeliner, string) []cardinal) error {
	for page := range slices.Chunk(names, countPage/10) {
		pipe := c.s.Client().Pipeline()
		var sets []cardinal
		for _, name := range page {
			sets = append(sets, of(ctx, pipe, name)...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		c.commands += len(sets)
		for _, set := range sets {
			c.sums[set.quota] += set.size.Val()
		}
	}
	return nil
}

func (c *counter) ofTenant(ctx context.Context, pipe redis.Pipeliner, _ string) []cardinal {
	return []cardinal{
		{quota.Tasks, pipe.ZCard(ctx, c.s.Keys().TaskIndex(c.tenant))},
		{quota.DocNamespaces, pipe.ZCard(ctx, c.s.Keys().DocumentNames(c.tenant))},
		{quota.Domains, pipe.ZCard(ctx, c.s.Keys().DomainIndex(c.tenant))},
		{quota.Keys, pipe.SCard(ctx, c.s.Keys().APIKeySet(c.tenant))},
	}
}

func (c *counter) ofNamespace(ctx context.Context, pipe redis.Pipeliner, namespace string) []cardinal {
	keys := c.s.Keys()
	return []cardinal{
		{quota.Functions, pipe.ZCard(ctx, keys.FunctionIndex(c.tenant, namespace))},
		{quota.Schedules, pipe.SCard(ctx, keys.ScheduleIndex(c.tenant, namespace))},
		{quota.Triggers, pipe.HLen(ctx, keys.Triggers(c.tenant, namespace))},
		{quota.Bindings, pipe.SCard(ctx, keys.BindingIndex(c.tenant, namespace))},
		{quota.Secrets, pipe.ZCard(ctx, c.s.SecretKeys(c.tenant, namespace).Index())},
		{quota.Batches, pipe.ZCard(ctx, c.s.JobKeys(c.tenant).Batches(namespace))},
	}
}

func (c *counter) ofQueue(ctx context.Context, pipe redis.Pipeliner, name string) []cardinal {
	namespace, queue, _ := strings.Cut(name, "/")
	keys := c.s.JobKeys(c.tenant).Queue(namespace, queue)
	var sets []cardinal
	for _, state := range api.JobStates() {
		if state.Terminal() {
			continue
		}
		for _, key := range keys.Sets(state) {
			sets = append(sets, cardinal{quota.Jobs, pipe.ZCard(ctx, key)})
		}
	}
	return sets
}

// drafts forgets the drafts that have expired and counts the others with their bytes.
func (c *counter) drafts(ctx context.Context) error {
	keys, client := c.s.Keys(), c.s.Client()
	set, sizes := keys.QuotaDrafts(c.tenant), keys.QuotaDraftSizes(c.tenant)
	expired, err := client.ZRangeByScore(ctx, set, &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(c.s.NowMS(), 10), Count: countPage}).Result()
	c.commands++
	if err != nil {
		return err
	}
	if len(expired) > 0 {
		pipe := client.Pipeline()
		pipe.HDel(ctx, sizes, expired...)
		pipe.ZRem(ctx, set, expired)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
	for first := int64(0); ; first += countPage {
		live, err := client.ZRange(ctx, set, first, first+countPage-1).Result()
		c.commands += 2
		if err != nil || len(live) == 0 {
			return err
		}
		bytes, err := client.HMGet(ctx, sizes, live...).Result()
		if err != nil {
			return err
		}
		c.sums[quota.Drafts] += int64(len(live))
		for _, v := range bytes {
			c.sums[quota.DraftBytes] += int64(number(v))
		}
	}
}
