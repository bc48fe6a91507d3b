// Package approvals keeps the approval policies of tenants, the delegations of votes, and the links by
// which people without a key vote. Those of a tenant are one hash each, which policy.MaxPolicies,
// policy.MaxDelegations and approval.MaxLinks limit:
//
//	cs:approvals:t_acme01:policies     payments → {"id":"7d…","match":{"queue":"payments"},…}, # → 5
//	cs:approvals:t_acme01:delegations  d_7d… → {"from":"role:finance","to":"key_01…",…}
//	cs:approvals:t_acme01:links        l_7d… → {"job_id":"01…","for":"ada@example.com",…}
//	cs:approvals:t_acme01              the jobs that are held, by the time since when, and those that
//	                                   were decided, by the negative time of the decision
//
// A policy that is created again has another id, so that jobs which the former one approved are asked
// again. Package queue enforces the policies, and its scripts keep the set of jobs together with the
// sets of held jobs.
package approvals

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/storage"
)

const (
	scriptPut     = "named_put.lua"
	fieldRevision = "#" // no name of a record
	// cachedMS is how long the policies of a tenant are cached: a change of another replica applies
	// after that.
	cachedMS      = 5_000
	cachedTenants = 10_000
)

// Record is a policy in its stored form.
type Record struct {
	ID   string `json:"id"`
	Name string `json:"-"`
	policy.Rules
	Revision    int64 `json:"revision"`
	CreatedAtMS int64 `json:"created_at_ms"`
	UpdatedAtMS int64 `json:"updated_at_ms"`
}

// View returns r as the API shows it.
func (r *Record) View() policy.Policy {
	return policy.Policy{Name: r.Name, Rules: r.Rules, Revision: r.Revision, CreatedAtMS: r.CreatedAtMS, UpdatedAtMS: r.UpdatedAtMS}
}

// Condition guards a write.
type Condition struct {
	IfMatch *int64 // the revision that the policy must have; nil accepts any
	IfNew   bool   // the policy must not exist
}

// check returns CodePreconditionFailed unless held, nil for a missing policy, meets the condition.
func (c Condition) check(name string, held *Record) error {
	switch {
	case c.IfNew && held != nil:
		return api.Errorf(api.CodePreconditionFailed, "approval policy %q exists", name)
	case c.IfMatch != nil && held == nil:
		return api.Errorf(api.CodePreconditionFailed, "approval policy %q does not exist", name)
	case c.IfMatch != nil && held.Revision != *c.IfMatch:
		return api.Errorf(api.CodePreconditionFailed, "approval policy %q is at revision %d", name, held.Revision)
	}
	return nil
}

// cached are the policies of a tenant, read at a Unix time in milliseconds.
type cached struct {
	readMS  int64
	records []Record
}

// Repository keeps the policies and delegations. It is safe for concurrent use, by any number of
// processes.
type Repository struct {
	store *storage.Store
	cache *otter.Cache[string, *cached]
}

// New returns the policies and delegations in store.
func New(store *storage.Store) (*Repository, error) {
	cache, err := otter.New(&otter.Options[string, *cached]{MaximumSize: cachedTenants})
	if err != nil {
		return nil, err
	}
	return &Repository{store: store, cache: cache}, nil
}

// NotFound returns the error with CodeApprovalNotFound for a policy.
func NotFound(name string) error {
	return api.Errorf(api.CodeApprovalNotFound, "approval policy %q does not exist", name)
}

// Of returns the policies of a tenant by name, at most 5 s old. Errors: CodeStoreUnavailable.
func (r *Repository) Of(ctx context.Context, tenant string) ([]Record, error) {
	if held, ok := r.cache.GetIfPresent(tenant); ok && r.store.NowMS()-held.readMS < cachedMS {
		return held.records, nil
	}
	return r.Policies(ctx, tenant)
}

// Policies returns the policies of a tenant by name, as they are stored. Errors: CodeStoreUnavailable.
func (r *Repository) Policies(ctx context.Context, tenant string) ([]Record, error) {
	now := r.store.NowMS()
	stored, err := r.store.Client().HGetAll(ctx, r.store.JobKeys(tenant).ApprovalPolicies()).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read approval policies", err)
	}
	records := make([]Record, 0, len(stored))
	for name, raw := range stored {
		if name == fieldRevision {
			continue
		}
		rec, err := storage.Decode[Record](raw)
		if err != nil {
			return nil, err
		}
		rec.Name = name
		records = append(records, rec)
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	r.cache.Set(tenant, &cached{now, records})
	return records, nil
}

// Policy returns a policy. Errors: CodeApprovalNotFound, CodeStoreUnavailable.
func (r *Repository) Policy(ctx context.Context, tenant, name string) (policy.Policy, error) {
	held, _, err := r.read(ctx, tenant, name)
	if err == nil && held == nil {
		err = NotFound(name)
	}
	if err != nil {
		return policy.Policy{}, err
	}
	return held.View(), nil
}

// read returns a policy, nil for none, and its stored text.
func (r *Repository) read(ctx context.Context, tenant, name string) (*Record, string, error) {
	raw, err := r.store.Client().HGet(ctx, r.store.JobKeys(tenant).ApprovalPolicies(), name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", storage.Failure(ctx, "read an approval policy", err)
	}
	rec, err := storage.Decode[Record](raw)
	rec.Name = name
	return &rec, raw, err
}

// PutPolicy creates a policy, or replaces its settings; created reports which. It applies to jobs that
// are enqueued, or report usage, after at most 5 s. Errors: CodeInvalid, CodePreconditionFailed for the
// condition, CodeCapacityLimit for more than policy.MaxPolicies, CodeStoreUnavailable.
func (r *Repository) PutPolicy(ctx context.Context, tenant, name string, s policy.Rules, on Condition) (out policy.Policy, created bool, err error) {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return out, false, err
	}
	defer r.cache.Invalidate(tenant)
	err = storage.RetryConflicts(ctx, func() error {
		held, text, err := r.read(ctx, tenant, name)
		if err == nil {
			err = on.check(name, held)
		}
		if err != nil {
			return err
		}
		now := r.store.NowMS()
		created = held == nil
		next := Record{ID: uuid.NewString(), CreatedAtMS: now}
		if !created {
			next = *held
		}
		next.Name, next.Rules, next.UpdatedAtMS, next.Revision = name, s, now, next.Revision+1
		raw, err := storage.Encode(next)
		if err != nil {
			return err
		}
		out = next.View()
		return r.put(ctx, r.store.JobKeys(tenant).ApprovalPolicies(), text, raw, name, policy.MaxPolicies, "approval policy", "approval policies")
	})
	return out, created, err
}

// put writes a record that was read as text.
func (r *Repository) put(ctx context.Context, key, text, raw, name string, limit int, noun, plural string) error {
	_, err := r.store.Script(ctx, scriptPut, []string{key}, text, raw, name, limit, noun, plural)
	return err
}

// DeletePolicy deletes a policy. The requests that it has made stay. Errors: CodeApprovalNotFound,
// CodePreconditionFailed, CodeStoreUnavailable.
func (r *Repository) DeletePolicy(ctx context.Context, tenant, name string, ifMatch *int64) error {
	defer r.cache.Invalidate(tenant)
	return storage.RetryConflicts(ctx, func() error {
		held, text, err := r.read(ctx, tenant, name)
		if err == nil {
			err = Condition{IfMatch: ifMatch}.check(name, held)
		}
		if err == nil && held == nil {
			err = NotFound(name)
		}
		if err != nil {
			return err
		}
		return r.put(ctx, r.store.JobKeys(tenant).ApprovalPolicies(), text, "", name, policy.MaxPolicies, "approval policy", "approval policies")
	})
}

// Delegations returns the delegations of a tenant that have not ended at now, oldest first. Errors:
// CodeStoreUnavailable.
func (r *Repository) Delegations(ctx context.Context, tenant string, now int64) ([]policy.Delegation, error) {
	stored, err := r.store.Client().HGetAll(ctx, r.store.JobKeys(tenant).Delegations()).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read delegations", err)
	}
	out := make([]policy.Delegation, 0, len(stored))
	for id, raw := range stored {
		if id == fieldRevision {
			continue
		}
		d, err := storage.Decode[policy.Delegation](raw)
		if err != nil {
			return nil, err
		}
		if d.UntilMS > now {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b policy.Delegation) int {
		return cmp.Or(cmp.Compare(a.CreatedAtMS, b.CreatedAtMS), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Delegate adds a delegation, and removes those that have ended. Errors: CodeInvalid,
// CodeCapacityLimit for more than policy.MaxDelegations, CodeStoreUnavailable.
func (r *Repository) Delegate(ctx context.Context, tenant string, d policy.Delegation) (policy.Delegation, error) {
	d.ID, d.CreatedAtMS = "d_"+uuid.NewString(), r.store.NowMS()
	if err := d.Validate(d.CreatedAtMS); err != nil {
		return d, err
	}
	raw, err := storage.Encode(d)
	if err != nil {
		return d, err
	}
	key := r.store.JobKeys(tenant).Delegations()
	if err := r.dropEnded(ctx, key, d.CreatedAtMS); err != nil {
		return d, err
	}
	return d, r.put(ctx, key, "", raw, d.ID, policy.MaxDelegations, "delegation", "delegations")
}

// dropEnded removes the records of a hash that have ended: delegations or links.
func (r *Repository) dropEnded(ctx context.Context, key string, now int64) error {
	stored, err := r.store.Client().HGetAll(ctx, key).Result()
	if err != nil {
		return storage.Failure(ctx, "read records that end", err)
	}
	for id, raw := range stored {
		record, err := storage.Decode[struct {
			UntilMS int64 `json:"until_ms"`
		}](raw)
		if id == fieldRevision || err != nil || record.UntilMS > now {
			continue
		}
		if err := r.store.Client().HDel(ctx, key, id).Err(); err != nil {
			return storage.Failure(ctx, "remove a record that has ended", err)
		}
	}
	return nil
}

// EndDelegation removes a delegation. Errors: CodeApprovalNotFound, CodeStoreUnavailable.
func (r *Repository) EndDelegation(ctx context.Context, tenant, id string) error {
	n, err := r.store.Client().HDel(ctx, r.store.JobKeys(tenant).Delegations(), id).Result()
	if err != nil {
		return storage.Failure(ctx, "remove a delegation", err)
	}
	if n == 0 || id == fieldRevision {
		return api.Errorf(api.CodeApprovalNotFound, "delegation %q does not exist", id)
	}
	return nil
}
