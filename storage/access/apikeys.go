package access

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// APIKeys keeps the records of API keys, each under the digest of the key's text, and for
// each tenant the set of its keys. The text itself is not stored.
//
// A record and its tenant's set are in different slots of a cluster and are written one
// after the other. An entry of the set without a record is not a key. A record without an
// entry would be a key that cannot be revoked, so the entry is written first and removed
// last.
//
// A crash after each write of Create leaves: the tenant in the registry; an entry without a
// record, which a list removes once it is a minute old; a record that does not expire by itself, but
// whose expires_at_ms readers compare; the key. A crash after each write of Revoke leaves: an
// entry without a record, so the key is revoked, but a replica may accept it from its cache
// until the cached entry is too old; the same after the notice; nothing.
//
// APIKeys is safe for concurrent use.
type APIKeys struct{ s *storage.Store }

// NewAPIKeys returns the API keys in s.
func NewAPIKeys(s *storage.Store) *APIKeys { return &APIKeys{s} }

// keyDanglingMS is the age at which an entry without a record counts as the remains of an
// interrupted Create, an interrupted Revoke or an expiry.
const keyDanglingMS = 60_000

// keyWindow is the number of records that one round trip reads.
const keyWindow = 200

// Create stores k under the digest of its text, the SHA-256 in hexadecimal digits. It may be
// repeated with the same k and digest. An ExpiresAtMS of 0 is no expiry. CodeKeyLimit where
// the tenant has api.MaxKeys live keys; concurrent calls may exceed the limit by their number.
func (r *APIKeys) Create(ctx context.Context, k api.Key, digest string) error {
	if err := r.checkLimit(ctx, k); err != nil {
		return err
	}
	return r.s.Taking(ctx, k.Tenant, func() error { return r.create(ctx, k, digest) }, storage.One(quota.Keys))
}

// create is Create after the limits were checked.
func (r *APIKeys) create(ctx context.Context, k api.Key, digest string) error {
	roles, err := storage.Encode(k.Roles)
	if err != nil {
		return err
	}
	member := keyMember{k.ID, digest}
	if err := r.s.Client().SAdd(ctx, r.s.Keys().APIKeyTenants(), k.Tenant).Err(); err != nil {
		return storage.Failure(ctx, "register tenant of key", err)
	}
	if err := r.enter(ctx, k.Tenant, member); err != nil {
		return err
	}
	record := r.s.Keys().APIKey(digest)
	pipe := r.s.Client().Pipeline()
	pipe.HSet(ctx, record, "id", k.ID, "sha256", digest, "tenant", k.Tenant, "name", k.Name, "roles", roles,
		"namespace", k.Namespace, "created_at_ms", k.CreatedAtMS, "created_by", k.CreatedBy, "expires_at_ms", k.ExpiresAtMS)
	if k.ExpiresAtMS > 0 {
		pipe.Do(ctx, "PEXPIREAT", record, k.ExpiresAtMS)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return storage.Failure(ctx, "write key", err)
	}
	// Again: meanwhile prune may have taken the entry for the remains of another call.
	return r.enter(ctx, k.Tenant, member)
}

// enter adds an entry to the set of a tenant.
func (r *APIKeys) enter(ctx context.Context, tenant string, m keyMember) error {
	return storage.Failure(ctx, "register key", r.s.Client().SAdd(ctx, r.s.Keys().APIKeySet(tenant), m.String()).Err())
}

// checkLimit fails with CodeKeyLimit where the tenant has api.MaxKeys live keys beside k.
func (r *APIKeys) checkLimit(ctx context.Context, k api.Key) error {
	n, err := r.s.Client().SCard(ctx, r.s.Keys().APIKeySet(k.Tenant)).Result()
	if err != nil || n < api.MaxKeys {
		return storage.Failure(ctx, "count keys", err)
	}
	members, err := r.members(ctx, k.Tenant)
	if err != nil {
		return err
	}
	members = slices.DeleteFunc(members, func(m keyMember) bool { return m.id == k.ID })
	live, err := r.live(ctx, k.Tenant, members, api.MaxKeys)
	if err != nil || len(live) < api.MaxKeys {
		return err
	}
	return api.Errorf(api.CodeKeyLimit, "limit of %d API keys reached; revoke some", api.MaxKeys)
}

// Find returns the live key whose text has the digest: one that was not revoked and has not
// expired by the clock of this process. CodeKeyNotFound.
func (r *APIKeys) Find(ctx context.Context, digest string) (api.Key, error) {
	fields, err := r.s.Client().HGetAll(ctx, r.s.Keys().APIKey(digest)).Result()
	if err != nil {
		return api.Key{}, storage.Failure(ctx, "read key", err)
	}
	k, live, err := r.key(fields, digest)
	if err == nil && !live {
		err = keyNotFound()
	}
	return k, err
}

// Get returns a tenant's live key. CodeKeyNotFound.
func (r *APIKeys) Get(ctx context.Context, tenant, id string) (api.Key, error) {
	m, err := r.member(ctx, tenant, id)
	if err != nil {
		return api.Key{}, err
	}
	return r.Find(ctx, m.digest)
}

// List returns a page of a tenant's live keys by id, which orders them by age, after the
// id after. next is "" at the end, else the after of the next page.
func (r *APIKeys) List(ctx context.Context, tenant, after string, limit int) (items []api.Key, next string, err error) {
	limit = storage.PageLimit(limit)
	members, err := r.members(ctx, tenant)
	if err != nil {
		return nil, "", err
	}
	members = slices.DeleteFunc(members, func(m keyMember) bool { return m.id <= after })
	items, err = r.live(ctx, tenant, members, limit+1)
	if len(items) > limit {
		items, next = items[:limit], items[limit-1].ID
	}
	return items, next, err
}

// Revoke deletes a tenant's key and notifies every replica. It removes the entry of the
// set last, so that an interrupted Revoke can be repeated. CodeKeyNotFound.
func (r *APIKeys) Revoke(ctx context.Context, tenant, id string) error {
	m, err := r.member(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := r.s.Client().Del(ctx, r.s.Keys().APIKey(m.digest)).Err(); err != nil {
		return storage.Failure(ctx, "revoke key", err)
	}
	if err := r.s.PublishChange(ctx, storage.Change{Kind: storage.ChangeKey, Tenant: tenant, KeyID: id}); err != nil {
		return err
	}
	if err := r.s.Client().SRem(ctx, r.s.Keys().APIKeySet(tenant), m.String()).Err(); err != nil {
		return storage.Failure(ctx, "revoke key", err)
	}
	r.s.Returned(ctx, tenant, storage.One(quota.Keys))
	return nil
}

// Any reports whether any tenant has a key that was not revoked. It counts entries of the
// sets, so an expired key, or the remains of an interrupted Create, count until they are
// pruned.
func (r *APIKeys) Any(ctx context.Context) (bool, error) {
	for tenants, err := range r.s.ScanSet(ctx, r.s.Keys().APIKeyTenants()) {
		if err != nil {
			return false, err
		}
		for _, tenant := range tenants {
			n, err := r.s.Client().SCard(ctx, r.s.Keys().APIKeySet(tenant)).Result()
			if err != nil || n > 0 {
				return n > 0, storage.Failure(ctx, "look for keys", err)
			}
		}
	}
	return false, nil
}

// keyMember is an entry of a tenant's set: a key's id and the digest under which its
// record is stored.
type keyMember struct{ id, digest string }

func (m keyMember) String() string { return m.id + ":" + m.digest }

// members returns the entries of a tenant's set, by id. Their number is limited, except
// for entries of the last minute that are not keys any more.
func (r *APIKeys) members(ctx context.Context, tenant string) ([]keyMember, error) {
	entries, err := r.s.Client().SMembers(ctx, r.s.Keys().APIKeySet(tenant)).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "list keys", err)
	}
	slices.Sort(entries)
	members := make([]keyMember, len(entries))
	for i, entry := range entries {
		members[i].id, members[i].digest, _ = strings.Cut(entry, ":")
	}
	return members, nil
}

// member returns the entry of one key. CodeKeyNotFound.
func (r *APIKeys) member(ctx context.Context, tenant, id string) (keyMember, error) {
	members, err := r.members(ctx, tenant)
	if err != nil {
		return keyMember{}, err
	}
	i := slices.IndexFunc(members, func(m keyMember) bool { return m.id == id })
	if i < 0 {
		return keyMember{}, keyNotFound()
	}
	return members[i], nil
}

func keyNotFound() error { return api.Errorf(api.CodeKeyNotFound, "no such API key") }

// live reads the records of members, in their order, until it has found most keys. It
// removes members that are not keys any more.
func (r *APIKeys) live(ctx context.Context, tenant string, members []keyMember, most int) ([]api.Key, error) {
	var found []api.Key
	for window := range slices.Chunk(members, keyWindow) {
		pipe := r.s.Client().Pipeline()
		records := make([]*redis.MapStringStringCmd, len(window))
		for i, m := range window {
			records[i] = pipe.HGetAll(ctx, r.s.Keys().APIKey(m.digest))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, storage.Failure(ctx, "read keys", err)
		}
		for i, record := range records {
			k, live, err := r.key(record.Val(), window[i].digest)
			if err == nil && !live {
				err = r.prune(ctx, tenant, window[i], len(record.Val()) > 0)
			}
			if err != nil {
				return nil, err
			}
			if live {
				found = append(found, k)
			}
			if len(found) == most {
				return found, nil
			}
		}
	}
	return found, nil
}

// prune removes a member that is not a key any more, with its record if it has one, unless
// it is so young that its record may be on its way.
func (r *APIKeys) prune(ctx context.Context, tenant string, m keyMember, recorded bool) error {
	if made, err := api.KeyTimeMS(m.id); err != nil || made > r.s.NowMS()-keyDanglingMS {
		return err
	}
	record := r.s.Keys().APIKey(m.digest)
	if recorded {
		if err := r.s.Client().Del(ctx, record).Err(); err != nil {
			return storage.Failure(ctx, "prune keys", err)
		}
	}
	if err := r.s.Client().SRem(ctx, r.s.Keys().APIKeySet(tenant), m.String()).Err(); err != nil {
		return storage.Failure(ctx, "prune keys", err)
	}
	// A Create that was delayed, or whose clock is slow, may have written its record
	// since this call looked for it.
	n, err := r.s.Client().Exists(ctx, record).Result()
	if err != nil || n == 0 {
		return storage.Failure(ctx, "prune keys", err)
	}
	return r.enter(ctx, tenant, m)
}

// key decodes a record. live reports whether the record exists, belongs to the digest, and
// has not expired: an interrupted Create may have left it without a time to live.
func (r *APIKeys) key(fields map[string]string, digest string) (k api.Key, live bool, err error) {
	if subtle.ConstantTimeCompare([]byte(fields["sha256"]), []byte(digest)) != 1 {
		return api.Key{}, false, nil
	}
	k = api.Key{
		ID: fields["id"], Tenant: fields["tenant"], Name: fields["name"],
		Namespace: fields["namespace"], CreatedBy: fields["created_by"],
	}
	if err := json.Unmarshal([]byte(fields["roles"]), &k.Roles); err != nil {
		return api.Key{}, false, fmt.Errorf("decode roles of key %s: %w", k.ID, err)
	}
	for field, to := range map[string]*int64{"created_at_ms": &k.CreatedAtMS, "expires_at_ms": &k.ExpiresAtMS} {
		*to, err = strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return api.Key{}, false, fmt.Errorf("decode %s of key %s: %w", field, k.ID, err)
		}
	}
	if k.ExpiresAtMS > 0 && k.ExpiresAtMS <= r.s.NowMS() {
		return api.Key{}, false, nil
	}
	return k, true, nil
}
