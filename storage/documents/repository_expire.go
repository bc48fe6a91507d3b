package documents

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// expiringPlaces is how many namespaces one step of ExpireDue goes to.
const expiringPlaces = 8

// ExpireDue removes documents of a tenant that have expired, up to limit in each of a few
// namespaces. n is how many were due, more whether some may be left.
func (r *Repository) ExpireDue(ctx context.Context, tenant string, nowMS int64, limit int) (n int, more bool, err error) {
	expiring := r.s.Keys().DocumentExpiring(tenant)
	places, err := r.due(ctx, expiring, nowMS, expiringPlaces)
	if err != nil {
		return 0, false, err
	}
	for _, place := range places {
		install, namespace, _ := strings.Cut(place, "/")
		removed, left, err := r.expireIn(ctx, storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace}, nowMS, limit)
		n, more = n+removed, more || left
		if err != nil {
			return n, true, err
		}
	}
	if len(places) < expiringPlaces && !more {
		r.floors.Consumed(expiring, nowMS, nowMS)
	}
	return n, more || len(places) == expiringPlaces, nil
}

// expireIn removes documents of a namespace that have expired, and says what is left there
// to whoever asks its tenant.
func (r *Repository) expireIn(ctx context.Context, p storage.DocumentPath, nowMS int64, limit int) (n int, more bool, err error) {
	limit = min(max(limit, 1), MaxSteps)
	expiry := r.s.Keys().Documents(p).Expiry()
	keys, err := r.due(ctx, expiry, nowMS, limit)
	if err != nil {
		return 0, false, err
	}
	if len(keys) > 0 {
		if err := r.Expire(ctx, p, keys, nowMS); err != nil {
			return 0, true, err
		}
	}
	if len(keys) == limit {
		return len(keys), true, nil
	}
	r.floors.Consumed(expiry, nowMS, nowMS)
	_, err = r.s.Script(ctx, scriptDue, []string{expiry, r.s.Keys().DocumentExpiring(p.Tenant)},
		p.Install+"/"+p.Namespace, r.floors.From(expiry, nowMS))
	return len(keys), false, err
}

// Expire removes those of some documents that have expired.
func (r *Repository) Expire(ctx context.Context, p storage.DocumentPath, keys []string, nowMS int64) error {
	_, err := r.write(ctx, p, expirySteps(keys), Quota{}, "", nowMS)
	if err == nil {
		r.feeds.wrote(p)
	}
	return err
}

// due reads the members of a set that are due at nowMS, from its floor on.
func (r *Repository) due(ctx context.Context, key string, nowMS int64, limit int) ([]string, error) {
	members, err := r.s.Client().ZRangeByScore(ctx, key, &redis.ZRangeBy{
		Min: strconv.FormatInt(r.floors.From(key, nowMS), 10), Max: strconv.FormatInt(nowMS, 10), Count: int64(limit),
	}).Result()
	return members, storage.Failure(ctx, "read what expires", err)
}

// makeRoom removes what has expired in the namespace, and where there is nothing, in its
// tenant.
func (r *Repository) makeRoom(ctx context.Context, p storage.DocumentPath, nowMS int64) (freed int, err error) {
	if freed, _, err = r.expireIn(ctx, p, nowMS, MaxSteps); freed > 0 || err != nil {
		return freed, err
	}
	freed, _, err = r.ExpireDue(ctx, p.Tenant, nowMS, MaxSteps)
	return freed, err
}
