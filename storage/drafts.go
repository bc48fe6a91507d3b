package storage

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
)

// Drafts keeps uploads for a day, or until they are published.
type Drafts struct{ s *Store }

// NewDrafts returns the drafts in s.
func NewDrafts(s *Store) *Drafts { return &Drafts{s} }

// tombstone replaces a consumed draft for the rest of its day, so that a repeated publish
// learns its version:
//
//	{"draft_id":"drf_…","consumed_version":7}
type tombstone struct {
	DraftID         string `json:"draft_id"`
	ConsumedVersion int64  `json:"consumed_version"`
}

// draftHead is the number of leading bytes that distinguish a stored draft from a
// tombstone and from any other draft: both begin with their ids. Publish reads and compares
// only these, since a draft may have many megabytes.
const draftHead = 256

// Put stores a draft for api.DraftTTLMS. CodeFunctionNotFound, CodeTenantQuota.
func (r *Drafts) Put(ctx context.Context, tenant, namespace, function string, d api.Draft) error {
	if _, err := NewFunctions(r.s).Get(ctx, tenant, namespace, function); err != nil {
		return err
	}
	raw, err := Encode(d)
	if err != nil {
		return err
	}
	key := r.s.keys.function(tenant, namespace, function).draft(d.DraftID)
	store := func() error {
		return Failure(ctx, "store draft", r.s.rdb.Set(ctx, key, raw, api.DraftTTLMS*time.Millisecond).Err())
	}
	if r.s.quotas == nil {
		return store()
	}
	size := int64(len(raw))
	return r.s.Taking(ctx, tenant, func() error {
		if err := r.list(ctx, tenant, draftMember(namespace, function, d.DraftID), size); err != nil {
			return err
		}
		return store()
	}, One(quota.Drafts), quota.Amount{Quota: quota.DraftBytes, Amount: size})
}

// draftMember is a draft in the set of a tenant's drafts.
func draftMember(namespace, function, id string) string { return namespace + "/" + function + "/" + id }

// list enters a draft in the set of the tenant's drafts before it is stored, so that every stored
// draft is counted.
func (r *Drafts) list(ctx context.Context, tenant, member string, size int64) error {
	until := float64(r.s.NowMS() + api.DraftTTLMS)
	pipe := r.s.rdb.Pipeline()
	pipe.HSet(ctx, r.s.keys.QuotaDraftSizes(tenant), member, size)
	pipe.ZAdd(ctx, r.s.keys.QuotaDrafts(tenant), redis.Z{Score: until, Member: member})
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "list draft", err)
}

// forget removes a published draft from the set of the tenant's drafts. It is best effort: the
// entry expires.
func (r *Drafts) forget(ctx context.Context, tenant, namespace, function, id string) {
	if r.s.quotas == nil {
		return
	}
	member := draftMember(namespace, function, id)
	pipe := r.s.rdb.Pipeline()
	size := pipe.HGet(ctx, r.s.keys.QuotaDraftSizes(tenant), member)
	removed := pipe.ZRem(ctx, r.s.keys.QuotaDrafts(tenant), member)
	pipe.HDel(ctx, r.s.keys.QuotaDraftSizes(tenant), member)
	if err := ExecOptional(ctx, pipe); err != nil || removed.Val() == 0 {
		return
	}
	bytes, _ := size.Int64() // 0 if it is missing
	r.s.Returned(ctx, tenant, One(quota.Drafts), quota.Amount{Quota: quota.DraftBytes, Amount: bytes})
}

// Get returns a draft. CodeDraftConsumed if it was published; CodeDraftExpired if its id
// is older than api.DraftTTLMS; CodeDraftNotFound otherwise.
func (r *Drafts) Get(ctx context.Context, tenant, namespace, function, id string) (api.Draft, error) {
	key := r.s.keys.function(tenant, namespace, function).draft(id)
	raw, err := r.s.rdb.Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		return api.Draft{}, draftMissing(id, r.s.NowMS())
	}
	if err != nil {
		return api.Draft{}, Failure(ctx, "read draft", err)
	}
	var held struct {
		api.Draft
		ConsumedVersion int64 `json:"consumed_version"`
	}
	if err := json.Unmarshal(raw, &held); err != nil {
		return api.Draft{}, api.Wrap(api.CodeInternal, err, "a stored draft cannot be read")
	}
	if held.ConsumedVersion != 0 {
		return api.Draft{}, draftConsumed(id, held.ConsumedVersion)
	}
	if held.ExpiresAtMS <= r.s.NowMS() {
		return api.Draft{}, draftExpired(id)
	}
	return held.Draft, nil
}

// draftMissing returns the error for an id without a draft.
func draftMissing(id string, nowMS int64) error {
	madeMS, err := api.DraftTimeMS(id)
	if err != nil {
		return err
	}
	if nowMS-madeMS >= api.DraftTTLMS {
		return draftExpired(id)
	}
	return api.Errorf(api.CodeDraftNotFound, "draft %s does not exist", id)
}

func draftExpired(id string) error {
	return api.Errorf(api.CodeDraftExpired, "draft %s has expired: upload it again", id)
}

func draftConsumed(id string, version int64) error {
	return api.Errorf(api.CodeDraftConsumed, "draft %s was published as version %d", id, version)
}

// headConsumed reports whether the first bytes of a stored draft are a tombstone, and the
// version that it names.
func headConsumed(head string) (version int64, consumed bool) {
	var t tombstone
	if err := json.Unmarshal([]byte(head), &t); err != nil {
		return 0, false // a draft's head ends in the middle of its files
	}
	return t.ConsumedVersion, t.ConsumedVersion != 0
}
