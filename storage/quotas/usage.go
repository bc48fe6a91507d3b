package quotas

import (
	"context"
	"time"

	"github.com/codesous/sous/api/quota"
)

// usageFresh is how old a count may be from which Usage answers.
const usageFresh = 10 * time.Second

// InForce returns the limits of a tenant for which set was set.
func (k *Keeper) InForce(set quota.TenantLimits) quota.TenantLimits {
	return set.Or(k.defaults.TenantLimits)
}

// Usage returns the use of each quota of a tenant. It counts the records first, unless this replica
// has done so within usageFresh. CodeStoreUnavailable.
func (k *Keeper) Usage(ctx context.Context, name string) ([]quota.Used, error) {
	t := k.tenant(name)
	limits := k.limitsOf(ctx, t).TenantLimits
	k.countAgain(ctx, t, usageFresh) // without it the amounts are those of the last count
	used, err := Stored(ctx, k.store, name)
	if err != nil {
		return nil, err
	}
	left, err := Rates(ctx, k.store, name, limits)
	if err != nil {
		return nil, err
	}
	var all []quota.Used
	for _, q := range quota.Stored() {
		all = append(all, fraction(quota.Used{Name: q, Used: used[q], Limit: limits.Of(q)}))
	}
	for _, q := range quota.Rates() {
		u := quota.Used{Name: q, Limit: limits.Of(q)}
		if rest, leased := left[q]; leased {
			u.Used = max(0, u.Limit-rest)
		}
		all = append(all, fraction(u))
	}
	return all, nil
}

func fraction(u quota.Used) quota.Used {
	if u.Limit > 0 {
		u.Fraction = float64(u.Used) / float64(u.Limit)
	}
	return u
}
