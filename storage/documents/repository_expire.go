package documents

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// expireNamespaces is the number of namespaces that one call of ExpireDue visits.
const expireNamespaces = 8

// ExpireDue removes expired documents of a tenant, up to limit in each of a few
// namespaces. n is the number of documents that were due; more reports whether others may
// remain.
//
// Two sets lead to them. cs:doc:t:expiring has each namespace by its earliest expiry, and
// …:expiry of a namespace has its documents by theirs. Both may hold an earlier time than the
// true one, but never a later one: a put that expires sooner lowers the entries before it
// writes the document, and one that expires later raises the document's entry after that.
// An entry that proves too early is corrected here.
func (r *Repository) ExpireDue(ctx context.Context, tenant string, nowMS int64, limit int) (n int, more bool, err error) {
	expiring := r.s.Keys().DocumentExpiring(tenant)
	places, err := r.due(ctx, expiring, nowMS, expireNamespaces)
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
	if len(places) < expireNamespaces && !more {
		r.floors.Consumed(expiring, nowMS, nowMS)
	}
	return n, more || len(places) == expireNamespaces, nil
}

// expireIn removes expired documents of a namespace, and updates the namespace's next
// expiry in its tenant's set.
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

// Expire removes those of the given documents that have expired at nowMS, each with a change
// "expire" in the feed. Missing documents are no error; the remains of an interrupted removal
// go as well. The caller passes at most MaxSteps keys.
func (r *Repository) Expire(ctx context.Context, p storage.DocumentPath, keys []string, nowMS int64) error {
	_, err := r.write(ctx, p, expirySteps(keys), Quota{}, "", nowMS)
	if err == nil {
		r.feeds.wrote(p)
	}
	return err
}

// due returns the members of a set that are due at nowMS, from its floor on.
func (r *Repository) due(ctx context.Context, key string, nowMS int64, limit int) ([]string, error) {
	members, err := r.s.Client().ZRangeByScore(ctx, key, &redis.ZRangeBy{
		Min: strconv.FormatInt(r.floors.From(key, nowMS), 10), Max: strconv.FormatInt(nowMS, 10), Count: int64(limit),
	}).Result()
	return members, storage.Failure(ctx, "read what expires", err)
}

// makeRoom removes expired documents of the namespace, or, if it has none, of its tenant: the
// quota that refused the write may be the tenant's.
// It returns the number of removed documents.
func (r *Repository) makeRoom(ctx context.Context, p storage.DocumentPath, nowMS int64) (freed int, err error) {
	freed, _, err = r.expireIn(ctx, p, nowMS, MaxSteps)
	if freed > 0 || err != nil {
		return freed, err
	}
	freed, _, err = r.ExpireDue(ctx, p.Tenant, nowMS, MaxSteps)
	return freed, err
}
