package quotas

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// Read returns the limits that are set for a tenant, with zeros for the others.
// CodeStoreUnavailable.
func Read(ctx context.Context, s *storage.Store, tenant string) (quota.TenantLimits, error) {
	raw, err := storage.Optional(s.Client().Get(ctx, s.Keys().QuotaLimits(tenant)))
	if err != nil {
		return quota.TenantLimits{}, storage.Failure(ctx, "read limits", err)
	}
	return decodeLimits(raw)
}

func decodeLimits(raw string) (quota.TenantLimits, error) {
	if raw == "" {
		return quota.TenantLimits{}, nil
	}
	return storage.Decode[quota.TenantLimits](raw)
}

// Set sets the limits of a tenant in the place of those before, and notifies the replicas. A
// limit below the present use refuses what would add to it and removes nothing. CodeInvalid,
// CodeStoreUnavailable.
func Set(ctx context.Context, s *storage.Store, tenant string, limits quota.TenantLimits) error {
	if err := limits.Validate(); err != nil {
		return err
	}
	raw, err := storage.Encode(limits)
	if err != nil {
		return err
	}
	if err := s.Client().Set(ctx, s.Keys().QuotaLimits(tenant), raw, 0).Err(); err != nil {
		return storage.Failure(ctx, "write limits", err)
	}
	return s.PublishChange(ctx, storage.Change{Kind: storage.ChangeLimits, Tenant: tenant})
}

// refresh reads the limits of tenants again, in one pipeline, and returns their number.
func (k *Keeper) refresh(ctx context.Context, tenants []*tenant) (int, error) {
	if len(tenants) == 0 {
		return 0, nil
	}
	pipe := k.store.Client().Pipeline()
	replies := make([]*redis.StringCmd, len(tenants))
	now := k.store.NowMS()
	for i, t := range tenants {
		replies[i] = pipe.Get(ctx, k.store.Keys().QuotaLimits(t.name))
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		k.metrics.failed.Inc()
		return 0, storage.Failure(ctx, "read limits", err)
	}
	for i, t := range tenants {
		set, err := decodeLimits(replies[i].Val())
		if err != nil {
			return i, err
		}
		t.read.Store(now)
		t.limits.Store(newLimitSet(set.Or(k.defaults.TenantLimits)))
	}
	return len(tenants), nil
}
