package kvstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

const (
	// roomTries bounds how often a write that finds no room removes entries of expired keys, and
	// expireCount how many of them a script removes.
	roomTries   = 20
	expireCount = 500
	// roomStep is about how many namespaces of a tenant a write that needs room looks at. If no key
	// has expired there, the next look, at the following ones, is after roomPause.
	roomStep  = 128
	roomPause = 2 * time.Second
	// roomTenants bounds the tenants that are remembered.
	roomTenants = 10_000
)

// searches has the searches for room of the tenants that needed some.
type searches struct {
	mu sync.Mutex
	of map[string]*search
}

// search is how far this replica has looked through the namespaces of a tenant for keys that have
// expired.
type search struct {
	mu     sync.Mutex
	cursor uint64 // of the scan over the namespaces
	next   int64  // when the next look may be, in ms
}

// tenant returns the search of a tenant. A search that is forgotten begins at the first namespace.
func (s *searches) tenant(name string) *search {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.of[name]
	if ok {
		return found
	}
	if s.of == nil {
		s.of = map[string]*search{}
	}
	for other := range s.of {
		if len(s.of) < roomTenants {
			break
		}
		delete(s.of, other)
	}
	s.of[name] = &search{}
	return s.of[name]
}

// makeRoom removes entries of keys that have expired from the namespace, and, if it has none,
// from some other namespaces of the tenant. It reports whether it has found some. However many
// namespaces a tenant has, refused writes cost about one command each, and those of one look in
// each roomPause.
func (r *KV) makeRoom(ctx context.Context, tenant, namespace string) (bool, error) {
	n, err := r.Expire(ctx, tenant, namespace)
	if n > 0 || err != nil {
		return n > 0, err
	}
	s := r.searches.tenant(tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := r.s.NowMS()
	wait := s.next - now
	if wait > 0 && wait <= roomPause.Milliseconds() {
		return false, nil
	}
	names, cursor, err := r.s.Client().SScan(ctx, r.s.Keys().Namespaces(tenant), s.cursor, "", roomStep).Result()
	if err != nil {
		return false, storage.Failure(ctx, "read a set", err)
	}
	names, err = r.expired(ctx, tenant, names)
	if err != nil {
		return false, err
	}
	for _, other := range names {
		n, err := r.Expire(ctx, tenant, other)
		if n > 0 || err != nil {
			return n > 0, err // the next look is at the same namespaces
		}
	}
	s.cursor, s.next = cursor, now+roomPause.Milliseconds()
	return false, nil
}

// expired returns those namespaces that have entries of keys that have expired.
func (r *KV) expired(ctx context.Context, tenant string, namespaces []string) (found []string, err error) {
	if len(namespaces) == 0 {
		return nil, nil
	}
	pipe := r.s.Client().Pipeline()
	counts := make([]*redis.IntCmd, len(namespaces))
	now := strconv.FormatInt(r.s.NowMS(), 10)
	for i, name := range namespaces {
		counts[i] = pipe.ZCount(ctx, r.s.KVKeys(tenant, name).Expiry(), "-inf", now)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "look for expired keys", err)
	}
	for i, name := range namespaces {
		if counts[i].Val() > 0 {
			found = append(found, name)
		}
	}
	return found, nil
}
