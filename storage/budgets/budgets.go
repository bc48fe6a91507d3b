// Package budgets keeps the budgets of tenants, and what their jobs have spent. The budgets of a tenant
// are one hash, which budget.MaxBudgets limits. Each has an id, under which its sums are kept, so that a
// budget that is created again, or for other jobs, begins at 0:
//
//	cs:budgets:t_acme01            agents → {"id":"7d…","scope":"queue",…}, # → 5
//	cs:spending:t_acme01:20784     b|7d…|20784 → 1250000
//	cs:budgets:t_acme01:7d…:held   the jobs that it holds, see Held
//	cs:due:3                       budget/t_acme01/7d…/agents, when it is to be looked at
//
// "#" has the revision of all of them, which each change raises. A report of usage names the revision
// that its replica knows, and is tried again if another one is stored: no job is held by a budget that
// was changed or deleted. The sums are fields of those of the days in UTC, so that a report changes
// both at once: see lua/include/ledger_budgets.lua.
//
// Files: budgets.go changes budgets, set.go has those of a tenant as replicas cache them, held.go the
// jobs that they hold. Package queue enforces them.
package budgets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/storage"
)

const (
	scriptPut     = "named_put.lua"
	scriptDrop    = "budget_drop.lua"
	fieldRevision = "#" // no name of a budget
	// cachedMS is how long the budgets of a tenant are cached: a change of another replica applies
	// after that to fetches and enqueues, and a new budget to reports.
	cachedMS      = 5_000
	cachedTenants = 10_000
	// writeMS is the time after which a write has ended.
	writeMS = 10_000
)

// Record is a budget in its stored form.
type Record struct {
	ID string `json:"id"`
	budget.Settings
	Revision    int64  `json:"revision"`
	CreatedAtMS int64  `json:"created_at_ms"`
	UpdatedAtMS int64  `json:"updated_at_ms"`
	Name        string `json:"-"`

	zone *time.Location
}

// Condition guards a write.
type Condition struct {
	IfMatch *int64 // the revision that the budget must have; nil accepts any
	IfNew   bool   // the budget must not exist
}

// check returns CodePreconditionFailed unless held, nil for a missing budget, meets the condition.
func (c Condition) check(name string, held *Record) error {
	switch {
	case c.IfNew && held != nil:
		return api.Errorf(api.CodePreconditionFailed, "budget %q exists", name)
	case c.IfMatch != nil && held == nil:
		return api.Errorf(api.CodePreconditionFailed, "budget %q does not exist", name)
	case c.IfMatch != nil && held.Revision != *c.IfMatch:
		return api.Errorf(api.CodePreconditionFailed, "budget %q is at revision %d", name, held.Revision)
	}
	return nil
}

// NotFound returns the error with CodeBudgetNotFound.
func NotFound(name string) error {
	return api.Errorf(api.CodeBudgetNotFound, "budget %q does not exist", name)
}

// Repository keeps the budgets. It is safe for concurrent use, by any number of processes.
type Repository struct {
	store *storage.Store
	cache *otter.Cache[string, *Set]
	dueAt func(ms int64)
}

// New returns the budgets in store. dueAt is called when a budget is to be looked at by its time.
func New(store *storage.Store, dueAt func(ms int64)) (*Repository, error) {
	cache, err := otter.New(&otter.Options[string, *Set]{MaximumSize: cachedTenants})
	if err != nil {
		return nil, fmt.Errorf("budgets: %w", err)
	}
	return &Repository{store: store, cache: cache, dueAt: dueAt}, nil
}

// Put creates a budget, or replaces its settings; created reports which. It counts usage that is
// reported after its creation, or after the last change of its scope or target. Jobs that it holds
// without a reason are released soon. Errors: CodeInvalid, CodePreconditionFailed for the condition,
// CodeCapacityLimit for more than budget.MaxBudgets, CodeStoreUnavailable.
func (r *Repository) Put(ctx context.Context, tenant, name string, s budget.Settings, on Condition) (out budget.Budget, created bool, err error) {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return out, false, err
	}
	var written Record
	err = r.write(ctx, tenant, name, on, func(held *Record) (*Record, error) {
		written, created = Record{ID: uuid.NewString()}, held == nil
		if !created {
			written = *held
			if !held.SameScope(&s) {
				written.ID = uuid.NewString()
			}
		}
		written.Settings, written.zone = s, s.Location()
		return &written, nil
	})
	if err != nil {
		return out, false, err
	}
	all, err := r.views(ctx, tenant, []Record{written})
	if err != nil {
		return out, false, err
	}
	return all[0], created, nil
}

// Delete deletes a budget. The jobs that it holds are released soon. Errors: CodeBudgetNotFound,
// CodePreconditionFailed, CodeStoreUnavailable.
func (r *Repository) Delete(ctx context.Context, tenant, name string, ifMatch *int64) error {
	return r.write(ctx, tenant, name, Condition{IfMatch: ifMatch}, func(held *Record) (*Record, error) {
		if held == nil {
			return nil, NotFound(name)
		}
		return nil, nil //nolint:nilnil // documented by write: it deletes
	})
}

// write replaces a budget by what change makes of it, nil to delete it, if it meets the condition. The
// marks before the write complete one that is interrupted; those after it act without delay.
func (r *Repository) write(ctx context.Context, tenant, name string, on Condition, change func(held *Record) (*Record, error)) error {
	defer r.cache.Invalidate(tenant)
	return storage.RetryConflicts(ctx, func() error {
		held, text, err := r.read(ctx, tenant, name)
		if err == nil {
			err = on.check(name, held)
		}
		if err != nil {
			return err
		}
		next, err := change(held)
		if err != nil {
			return err
		}
		raw, now := "", r.store.NowMS()
		ids := map[string]bool{}
		if held != nil {
			ids[held.ID] = true
		}
		if next != nil {
			if held != nil && held.ID == next.ID && held.same(next) {
				*next = *held
				return nil
			}
			next.Name, next.Revision, next.UpdatedAtMS = name, next.Revision+1, now
			if held == nil {
				next.CreatedAtMS = now
			}
			ids[next.ID] = true
			raw, err = storage.Encode(next)
			if err != nil {
				return err
			}
		}
		if err := r.mark(ctx, tenant, name, ids, now+writeMS); err != nil {
			return err
		}
		if _, err := r.store.Script(ctx, scriptPut, []string{r.store.JobKeys(tenant).Budgets()}, text, raw, name, budget.MaxBudgets, "budget", "budgets"); err != nil {
			return err
		}
		return r.mark(ctx, tenant, name, ids, now)
	})
}

// same reports whether both have the same settings.
func (r *Record) same(o *Record) bool {
	equal := func(a, b *agent.USD) bool { return a == b || a != nil && b != nil && *a == *b }
	return r.Scope == o.Scope && r.Target == o.Target && r.OnExceed == o.OnExceed && r.Zone == o.Zone && equal(r.DailyUSD, o.DailyUSD) && equal(r.PerJobUSD, o.PerJobUSD)
}

// mark makes budgets due at a moment.
func (r *Repository) mark(ctx context.Context, tenant, name string, ids map[string]bool, at int64) error {
	pipe := r.store.Client().Pipeline()
	for id := range ids {
		storage.MarkDue(ctx, pipe, storage.DueBudgetPrefix+tenant+"/"+id+"/"+name, at)
	}
	_, err := pipe.Exec(ctx)
	r.dueAt(at)
	return storage.Failure(ctx, "mark a budget", err)
}

// Member is the budget of a member of the due set.
type Member struct{ Tenant, ID, Name string }

// MemberOf parses a member of the due set.
func MemberOf(member string) (m Member, ok bool) {
	rest, ok := strings.CutPrefix(member, storage.DueBudgetPrefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return m, false
	}
	return Member{parts[0], parts[1], parts[2]}, true
}

// read returns a budget, nil for none, and its stored text.
func (r *Repository) read(ctx context.Context, tenant, name string) (*Record, string, error) {
	raw, err := r.store.Client().HGet(ctx, r.store.JobKeys(tenant).Budgets(), name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", storage.Failure(ctx, "read a budget", err)
	}
	rec, err := decode(name, raw)
	return rec, raw, err
}

func decode(name, raw string) (*Record, error) {
	rec, err := storage.Decode[Record](raw)
	rec.Name, rec.zone = name, rec.Location()
	return &rec, err
}

// Get returns a budget. Errors: CodeBudgetNotFound, CodeStoreUnavailable.
func (r *Repository) Get(ctx context.Context, tenant, name string) (budget.Budget, error) {
	held, _, err := r.read(ctx, tenant, name)
	if err == nil && held == nil {
		err = NotFound(name)
	}
	if err != nil {
		return budget.Budget{}, err
	}
	all, err := r.views(ctx, tenant, []Record{*held})
	if err != nil {
		return budget.Budget{}, err
	}
	return all[0], nil
}

// List returns the budgets of a tenant by name. Errors: CodeStoreUnavailable.
func (r *Repository) List(ctx context.Context, tenant string) ([]budget.Budget, error) {
	set, err := r.readSet(ctx, tenant)
	if err != nil || set == nil {
		return []budget.Budget{}, err
	}
	return r.views(ctx, tenant, set.Records)
}

// views returns budgets with their present states.
func (r *Repository) views(ctx context.Context, tenant string, records []Record) ([]budget.Budget, error) {
	now := r.store.NowMS()
	sums, err := r.sums(ctx, tenant, records, now)
	if err != nil {
		return nil, err
	}
	pipe := r.store.Client().Pipeline()
	out, held := make([]budget.Budget, len(records)), make([]*redis.IntCmd, len(records))
	for i := range records {
		rec := &records[i]
		day, next := budget.Day(rec.zone, now)
		out[i] = budget.Budget{
			Name: rec.Name, Settings: rec.Settings, Revision: rec.Revision, CreatedAtMS: rec.CreatedAtMS, UpdatedAtMS: rec.UpdatedAtMS,
			Day: budget.DateText(day), SpentUSD: sums[i], Exceeded: rec.DailyUSD != nil && sums[i] >= *rec.DailyUSD, ResetsAtMS: next,
		}
		held[i] = pipe.ZCard(ctx, r.store.JobKeys(tenant).HeldBy(rec.ID))
	}
	if len(records) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, storage.Failure(ctx, "count held jobs", err)
		}
	}
	for i := range held {
		out[i].HeldJobs = held[i].Val()
	}
	return out, nil
}

// byName orders budgets by name.
func byName(records []Record) {
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
}
