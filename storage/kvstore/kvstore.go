// Package kvstore keeps the keys and values of cs.kv, and counts them for the quotas of their
// tenants.
//
// A value is a string of the store under cs:kv:t:ns:key. Beside it, each namespace has an index
// of its keys, which lists read, the size of each key with its value, and the times at which
// keys expire. One script writes all of them and the counts of the tenant, so a quota is exact
// while many replicas write. A read is one plain command.
//
// The store removes a value that has expired by itself. Its entries stay until the tenant needs
// the room (room.go), or until the sweeper finds them (sweep.go), which also counts each namespace
// again after crashes and enters values that an earlier release has written. A write that needs
// room finds expired keys of its own namespace at once, and those of a tenant with very many
// namespaces in the course of further writes.
package kvstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// The scripts of this package, by the names of their files in package lua.
const (
	scriptSet     = "kv_set.lua"
	scriptDelete  = "kv_delete.lua"
	scriptExpire  = "kv_expire.lua"
	scriptRecount = "kv_recount.lua"
	scriptAdopt   = "kv_adopt.lua"
)

// KV is the key-value storage that functions use as cs.kv. Values are opaque bytes. The last
// write wins; there is no compare-and-set. A key may contain colons, since nothing follows
// it in the key of the store. The caller checks its size and the function's capability.
type KV struct {
	s        *storage.Store
	quotas   storage.Quotas // nil: nothing is limited
	searches searches
}

// New returns the key-value pairs in s.
func New(s *storage.Store) *KV { return &KV{s: s, quotas: s.Quotas()} }

// Get returns the value of key. found reports whether key exists. CodeStoreUnavailable.
func (r *KV) Get(ctx context.Context, tenant, namespace, key string) (value []byte, found bool, err error) {
	value, err = r.s.Client().Get(ctx, r.s.KVKeys(tenant, namespace).Value(key)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, storage.Failure(ctx, "read kv", err)
	}
	return value, true, nil
}

// Set stores value under key for ttl; a ttl of zero or less is no expiry. CodeTenantQuota,
// CodeStoreUnavailable.
func (r *KV) Set(ctx context.Context, tenant, namespace, key string, value []byte, ttl time.Duration) error {
	if tenant == "" || namespace == "" {
		return api.Errorf(api.CodeInternal, "a key needs a tenant and a namespace")
	}
	keyLimit, byteLimit := int64(quota.Unlimited), int64(quota.Unlimited)
	if r.quotas != nil {
		limits := r.quotas.LimitsOf(ctx, tenant)
		keyLimit, byteLimit = limits.KVKeys, limits.KVBytes
	}
	k := r.s.KVKeys(tenant, namespace)
	for try := 0; ; try++ {
		reply, err := r.s.Script(ctx, scriptSet, []string{k.Value(key), k.Index(), k.Expiry(), k.Sizes(), k.Usage()},
			namespace, key, value, max(0, ttl).Milliseconds(), r.s.NowMS(), keyLimit, byteLimit)
		if err != nil {
			return err
		}
		texts := replyTexts(reply)
		if len(texts) == 5 && texts[0] == "ok" {
			r.grown(tenant, texts, keyLimit, byteLimit)
			return nil
		}
		if len(texts) != 4 {
			return api.Errorf(api.CodeInternal, "kv_set.lua replied %v", reply)
		}
		room, err := r.makeRoom(ctx, tenant, namespace)
		switch {
		case err != nil:
			return err
		case !room || try == roomTries:
			q := quota.Name(texts[1])
			if r.quotas != nil {
				r.quotas.Refused(tenant, q)
			}
			return quota.Exceeded(q, replyInt(texts[2]), replyInt(texts[3]))
		}
	}
}

// grown reports the growth of the tenant's use.
func (r *KV) grown(tenant string, texts []string, keyLimit, byteLimit int64) {
	if r.quotas == nil {
		return
	}
	r.quotas.Grown(tenant, quota.KVKeys, keyLimit, replyInt(texts[1]), replyInt(texts[3]))
	r.quotas.Grown(tenant, quota.KVBytes, byteLimit, replyInt(texts[2]), replyInt(texts[4]))
}

// Expire removes the entries of some keys that have expired, and returns their number.
// CodeStoreUnavailable.
func (r *KV) Expire(ctx context.Context, tenant, namespace string) (int, error) {
	k := r.s.KVKeys(tenant, namespace)
	reply, err := r.s.Script(ctx, scriptExpire, []string{k.Index(), k.Expiry(), k.Sizes(), k.Usage()}, namespace, r.s.NowMS(), expireCount)
	n, _ := reply.(int64)
	return int(n), err
}

// Del removes key. It reports whether key existed. CodeStoreUnavailable.
func (r *KV) Del(ctx context.Context, tenant, namespace, key string) (bool, error) {
	return r.remove(ctx, tenant, namespace, key, false)
}

// remove deletes key. With onlyMissing it only forgets a key that has no value.
func (r *KV) remove(ctx context.Context, tenant, namespace, key string, onlyMissing bool) (bool, error) {
	k := r.s.KVKeys(tenant, namespace)
	only := "0"
	if onlyMissing {
		only = "1"
	}
	reply, err := r.s.Script(ctx, scriptDelete, []string{k.Value(key), k.Index(), k.Expiry(), k.Sizes(), k.Usage()}, namespace, key, only)
	n, _ := reply.(int64)
	return n > 0, err
}

// Entry is a key in a list. ExpiresAtMS is 0 for a key that does not expire.
type Entry struct {
	Key         string
	Bytes       int64 // of the value
	ExpiresAtMS int64
}

// List returns a page of the keys that begin with prefix, in byte order, after the key after.
// next is "" at the end. A page may be short and still have a next. CodeStoreUnavailable.
func (r *KV) List(ctx context.Context, tenant, namespace, prefix, after string, limit int) (items []Entry, next string, err error) {
	limit = storage.PageLimit(limit)
	k := r.s.KVKeys(tenant, namespace)
	from := "[" + prefix
	if after >= prefix && after != "" {
		from = "(" + after
	}
	if from == "[" {
		from = "-"
	}
	to := "+"
	if end := following(prefix); end != "" {
		to = "(" + end
	}
	names, err := r.s.Client().ZRangeByLex(ctx, k.Index(), &redis.ZRangeBy{Min: from, Max: to, Count: int64(limit) + 1}).Result()
	if err != nil {
		return nil, "", storage.Failure(ctx, "list kv", err)
	}
	names, next = storage.FirstPage(names, limit)
	type reads struct {
		bytes *redis.IntCmd
		until *redis.FloatCmd
	}
	found := make([]reads, len(names))
	pipe := r.s.Client().Pipeline()
	for i, name := range names {
		found[i] = reads{pipe.StrLen(ctx, k.Value(name)), pipe.ZScore(ctx, k.Expiry(), name)}
	}
	if len(names) > 0 {
		if err := storage.ExecOptional(ctx, pipe); err != nil {
			return nil, "", storage.Failure(ctx, "list kv", err)
		}
	}
	items = make([]Entry, 0, len(names))
	for i, name := range names {
		if found[i].bytes.Val() > 0 { // else it has expired; a value is never empty
			items = append(items, Entry{name, found[i].bytes.Val(), int64(found[i].until.Val())})
		}
	}
	return items, next, nil
}

// following returns the first text behind all those that begin with prefix, "" if there is none.
func following(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// Usage returns the counted keys of a tenant, and their bytes with those of the values.
// CodeStoreUnavailable.
func (r *KV) Usage(ctx context.Context, tenant string) (keys, bytes int64, err error) {
	held, err := r.s.Client().HMGet(ctx, r.s.KVKeys(tenant, "").Usage(), "k", "b").Result()
	if err != nil {
		return 0, 0, storage.Failure(ctx, "read counts of kv", err)
	}
	return replyInt(held[0]), replyInt(held[1]), nil
}

func replyTexts(reply any) []string {
	parts, _ := reply.([]any)
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i], _ = part.(string)
	}
	return texts
}

// replyInt reads a number of a reply of this package's scripts.
func replyInt(reply any) int64 {
	text, _ := reply.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
