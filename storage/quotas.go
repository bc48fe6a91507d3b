package storage

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
)

// Quotas limits what tenants store. Package quotas implements it. It must be safe for
// concurrent use.
type Quotas interface {
	// Take adds amounts to the use of a tenant before something is stored: all of them, or
	// none and CodeTenantQuota. A negative amount is returned. CodeStoreUnavailable.
	Take(ctx context.Context, tenant string, amounts ...quota.Amount) error
	// Return takes amounts back after nothing was stored, or after something was deleted. It
	// is best effort: a recount corrects what it misses.
	Return(ctx context.Context, tenant string, amounts ...quota.Amount)
	// LimitsOf returns the limits of a tenant, with those of the server in the place of zeros.
	LimitsOf(ctx context.Context, tenant string) quota.TenantLimits
	// Refused notes that a script refused a write of the tenant for the quota, and Grown that
	// the use of a quota grew from before to after.
	Refused(tenant string, q quota.Name)
	Grown(tenant string, q quota.Name, limit, before, after int64)
	// Enqueue takes jobs whose payloads have the given bytes together. Mostly it sends no
	// command. CodeTenantQuota, CodeTenantRate, CodeStoreUnavailable.
	Enqueue(ctx context.Context, tenant string, jobs, bytes int64) error
}

// LimitBy makes the repositories of s keep the quotas. It is called once, before the store is
// used by several goroutines. Without it nothing is limited.
func (s *Store) LimitBy(q Quotas) { s.quotas = q }

// Quotas returns the quotas of LimitBy, nil without.
func (s *Store) Quotas() Quotas { return s.quotas }

// Taking stores something by store, under amounts that are taken first and returned if store
// fails. After CodeStoreUnavailable they are kept, because it may have been stored.
func (s *Store) Taking(ctx context.Context, tenant string, store func() error, amounts ...quota.Amount) error {
	if s.quotas == nil {
		return store()
	}
	if err := s.quotas.Take(ctx, tenant, amounts...); err != nil {
		return err
	}
	err := store()
	if err != nil && api.ErrorCode(err) != api.CodeStoreUnavailable {
		s.quotas.Return(context.WithoutCancel(ctx), tenant, amounts...)
	}
	return err
}

// Returned returns amounts of what was deleted.
func (s *Store) Returned(ctx context.Context, tenant string, amounts ...quota.Amount) {
	if s.quotas != nil {
		s.quotas.Return(context.WithoutCancel(ctx), tenant, amounts...)
	}
}

// TakingNew is Taking for a new member of an index. For a member that is in the index it takes
// only more.
func (s *Store) TakingNew(ctx context.Context, tenant, index, member string, q quota.Name, store func() error, more ...quota.Amount) error {
	if s.quotas != nil {
		err := s.rdb.ZScore(ctx, index, member).Err()
		switch {
		case errors.Is(err, redis.Nil):
			more = append(more, One(q))
		case err != nil:
			return Failure(ctx, "look up "+string(q), err)
		}
	}
	if len(more) == 0 {
		return store()
	}
	return s.Taking(ctx, tenant, store, more...)
}

// One returns one of a quota that counts.
func One(q quota.Name) quota.Amount { return quota.Amount{Quota: q, Amount: 1} }
