package budgets

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/spending"
)

// Set has the budgets of a tenant as they were read, by name. A nil Set has none.
type Set struct {
	Revision int64
	Records  []Record

	readMS int64
	known  *knownSums
}

// knownSums are what the jobs of budgets have spent at least, by field: a sum only grows. It is safe for
// concurrent use.
type knownSums struct {
	mu sync.Mutex
	of map[string]agent.USD
}

// maxKnown bounds the sums that are remembered of a tenant: those of a few days.
const maxKnown = 4 * budget.MaxBudgets

func (s *knownSums) learn(field string, sum agent.USD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) >= maxKnown {
		clear(s.of)
	}
	s.of[field] = sum
}

func (s *knownSums) get(field string) agent.USD {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[field]
}

// Cover is a budget that covers a job, at a moment.
type Cover struct {
	*Record
	Field    string    // of the sum of its day, "" for a budget without a limit of a day
	Known    agent.USD // of that sum, at least
	ResetsMS int64     // when the day ends
}

// Reached reports whether the limit of the day is known to be reached when added is spent in addition.
func (c *Cover) Reached(added agent.USD) bool {
	return c.DailyUSD != nil && c.Known+added >= *c.DailyUSD
}

// cover returns a budget at now.
func (s *Set) cover(r *Record, now int64) Cover {
	day, next := budget.Day(r.zone, now)
	c := Cover{Record: r, ResetsMS: next}
	if r.DailyUSD != nil {
		c.Field = fieldOf(r.ID, day)
		c.Known = s.known.get(c.Field)
	}
	return c
}

// fieldOf returns the field of the sum of a budget's day.
func fieldOf(id string, day int64) string { return "b|" + id + "|" + strconv.FormatInt(day, 10) }

// Covering returns the budgets that which selects, at now, a Unix time in milliseconds.
func (s *Set) Covering(now int64, which func(r *Record) bool) (out []Cover) {
	if s == nil {
		return nil
	}
	for i := range s.Records {
		if which(&s.Records[i]) {
			out = append(out, s.cover(&s.Records[i], now))
		}
	}
	return out
}

// Of returns the budgets of a tenant, nil if it has none. It reads the store at most every few seconds.
// Errors: CodeStoreUnavailable.
func (r *Repository) Of(ctx context.Context, tenant string) (*Set, error) {
	if set, ok := r.cache.GetIfPresent(tenant); ok && r.store.NowMS()-set.readMS < cachedMS {
		return set.orNil(), nil
	}
	set, err := r.readSet(ctx, tenant)
	return set.orNil(), err
}

// orNil returns s, nil if it has no budgets.
func (s *Set) orNil() *Set {
	if s == nil || len(s.Records) == 0 {
		return nil
	}
	return s
}

// Refresh returns the budgets of a tenant as they are now, with their sums. Errors:
// CodeStoreUnavailable.
func (r *Repository) Refresh(ctx context.Context, tenant string) (*Set, error) {
	set, err := r.readSet(ctx, tenant)
	if err == nil {
		err = r.Learn(ctx, tenant, set)
	}
	return set.orNil(), err
}

// readSet reads the budgets of a tenant into the cache.
func (r *Repository) readSet(ctx context.Context, tenant string) (*Set, error) {
	now := r.store.NowMS()
	stored, err := r.store.Client().HGetAll(ctx, r.store.JobKeys(tenant).Budgets()).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read budgets", err)
	}
	set := &Set{readMS: now, known: &knownSums{of: map[string]agent.USD{}}}
	if before, ok := r.cache.GetIfPresent(tenant); ok {
		set.known = before.known
	}
	for name, raw := range stored {
		if name == fieldRevision {
			set.Revision, err = strconv.ParseInt(raw, 10, 64)
			if err != nil {
				return nil, api.Wrap(api.CodeInternal, err, "decode the revision of budgets")
			}
			continue
		}
		rec, err := decode(name, raw)
		if err != nil {
			return nil, err
		}
		set.Records = append(set.Records, *rec)
	}
	byName(set.Records)
	r.cache.Set(tenant, set)
	return set, nil
}

// Learn reads the sums of the budgets of a set. It is one round trip. Errors: CodeStoreUnavailable.
func (r *Repository) Learn(ctx context.Context, tenant string, set *Set) error {
	if set == nil || len(set.Records) == 0 {
		return nil
	}
	now := r.store.NowMS()
	found, err := r.sums(ctx, tenant, set.Records, now)
	if err != nil {
		return err
	}
	for i := range found {
		day, _ := budget.Day(set.Records[i].zone, now)
		set.known.learn(fieldOf(set.Records[i].ID, day), found[i])
	}
	return nil
}

// sums returns what the jobs of each budget have spent on the day of now. A day of a zone has parts of
// two days in UTC at most.
func (r *Repository) sums(ctx context.Context, tenant string, records []Record, now int64) ([]agent.USD, error) {
	fields := make([]string, len(records))
	for i := range records {
		day, _ := budget.Day(records[i].zone, now)
		fields[i] = fieldOf(records[i].ID, day)
	}
	return r.sumsOf(ctx, tenant, fields, spending.Day(now))
}

// sumsOf returns the sums of fields over a day in UTC and the one before.
func (r *Repository) sumsOf(ctx context.Context, tenant string, fields []string, day int64) ([]agent.USD, error) {
	out := make([]agent.USD, len(fields))
	if len(fields) == 0 {
		return out, nil
	}
	keys, pipe := r.store.JobKeys(tenant), r.store.Client().Pipeline()
	days := []*redis.SliceCmd{pipe.HMGet(ctx, keys.Spending(day), fields...), pipe.HMGet(ctx, keys.Spending(day-1), fields...)}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read the sums of budgets", err)
	}
	for _, reply := range days {
		for i, value := range reply.Val() {
			text, _ := value.(string)
			if text == "" {
				continue
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, api.Wrap(api.CodeInternal, err, "decode the sum of a budget")
			}
			out[i] += agent.USD(n)
		}
	}
	return out, nil
}

// WasExceeded reports whether a budget was exceeded on the day that ended last before now. Errors:
// CodeStoreUnavailable.
func (r *Repository) WasExceeded(ctx context.Context, tenant string, rec *Record, now int64) (bool, error) {
	if rec.DailyUSD == nil {
		return false, nil
	}
	began := rec.Began(now)
	day, _ := budget.Day(rec.zone, began-1)
	found, err := r.sumsOf(ctx, tenant, []string{fieldOf(rec.ID, day)}, spending.Day(began-1))
	return err == nil && found[0] >= *rec.DailyUSD, err
}
