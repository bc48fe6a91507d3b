package access

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// A cached key is used for at most keyTTL from the start of the read that returned it:
// a key whose revocation was missed stops within the promised 5 s. From keyRefresh on
// it is read again in the background, so that steady traffic never waits for the store.
const (
	keyTTL     = 4 * time.Second
	keyRefresh = 2 * time.Second
	keyEntries = 20_000
	// A text that is no key stays one for wrongTTL: keys are generated, never chosen by
	// a caller. Such texts have a cache of their own, so that they cannot evict keys.
	wrongTTL     = time.Minute
	wrongEntries = 100_000
)

// KeySource reads API keys by the digest of their text, the SHA-256 in hexadecimal.
type KeySource interface {
	// Find returns a live key. Errors: CodeKeyNotFound, CodeStoreUnavailable.
	Find(ctx context.Context, digest string) (api.Key, error)
}

// knownKey is a cached key.
type knownKey struct {
	caller *Caller
	readAt time.Time // when the read began
}

// keyCache caches the keys that are in use, and the texts that are no keys. A key that is
// in use while another replica revokes it, and whose notice is lost:
//
//	0.0 s  a request: the key is read, readAt is the start of the read
//	2.0 s  the next request is served from the cache, and reads the key again meanwhile
//	2.1 s  that read ends: readAt is 2.0 s
//	3.0 s  the key is revoked elsewhere
//	4.2 s  the next request is served from the cache; the read that it starts finds no key
//	4.3 s  the next request gets 401
//
// Without the request at 4.2 s, the entry would end at readAt + keyTTL, 6.0 s.
type keyCache struct {
	source KeySource
	clock  func() time.Time
	known  *otter.Cache[keyDigest, *knownKey]
	wrong  *otter.Cache[keyDigest, struct{}]
	loader otter.Loader[keyDigest, *knownKey]
	// revoked has the ids of keys that were revoked in the last keyTTL. A load that read
	// such a key before its revocation may cache it after forget looked for entries.
	// Its entry is refused for keyTTL from the revocation; from then on it is stale, since
	// its read began earlier. The store's rate of revocations bounds the set.
	revoked *otter.Cache[keyID, struct{}]
}

func newKeyCache(source KeySource, clock func() time.Time) (*keyCache, error) {
	c := &keyCache{source: source, clock: clock}
	c.loader = otter.LoaderFunc[keyDigest, *knownKey](c.load)
	since := &cacheClock{now: clock, base: clock()}
	var err error
	c.known, err = otter.New(&otter.Options[keyDigest, *knownKey]{
		MaximumSize:       keyEntries,
		ExpiryCalculator:  otter.ExpiryWriting[keyDigest, *knownKey](keyTTL),
		RefreshCalculator: otter.RefreshWriting[keyDigest, *knownKey](keyRefresh),
		Clock:             since,
		StatsRecorder:     stats.NewCounter(),
		Logger:            &otter.NoopLogger{}, // a failed refresh shows at the next load
	})
	if err != nil {
		return nil, err
	}
	c.wrong, err = otter.New(&otter.Options[keyDigest, struct{}]{
		MaximumSize:      wrongEntries,
		ExpiryCalculator: otter.ExpiryWriting[keyDigest, struct{}](wrongTTL),
		Clock:            since,
		StatsRecorder:    stats.NewCounter(),
		Logger:           &otter.NoopLogger{},
	})
	if err != nil {
		return nil, err
	}
	c.revoked, err = otter.New(&otter.Options[keyID, struct{}]{
		ExpiryCalculator: otter.ExpiryWriting[keyID, struct{}](keyTTL),
		Clock:            since,
		Logger:           &otter.NoopLogger{},
	})
	return c, err
}

// find returns the caller whose key has the digest. Errors: CodeAuthnInvalid; those of
// the store if the key is not cached and cannot be read.
//
// An entry that is stale by the server's clock is read once more. The result is used for
// this request, but is not cached.
func (c *keyCache) find(ctx context.Context, digest keyDigest) (*Caller, error) {
	if _, wrong := c.wrong.GetIfPresent(digest); wrong {
		return nil, invalidKey()
	}
	// Several callers may wait for one load: it must outlive the caller that started
	// it.
	detached := context.WithoutCancel(ctx)
	found, err := c.known.Get(detached, digest, c.loader)
	if err == nil && c.age(found) >= keyTTL {
		c.known.Invalidate(digest)
		found, err = c.load(detached, digest)
		if err == nil && c.age(found) >= keyTTL {
			err = api.Errorf(api.CodeStoreUnavailable, "the store takes too long to answer")
		}
	}
	switch {
	case errors.Is(err, otter.ErrNotFound):
		return nil, invalidKey()
	case err != nil:
		return nil, err
	case found.caller.expiresMS != 0 && c.clock().UnixMilli() >= found.caller.expiresMS:
		return nil, invalidKey()
	}
	if _, revoked := c.revoked.GetIfPresent(keyID{found.caller.Tenant, found.caller.Sub}); revoked {
		return nil, invalidKey()
	}
	return found.caller, nil
}

func (c *keyCache) age(k *knownKey) time.Duration { return c.clock().Sub(k.readAt) }

// load reads a key. otter.ErrNotFound makes the cache drop the entry.
func (c *keyCache) load(ctx context.Context, digest keyDigest) (*knownKey, error) {
	// A concurrent load may have found that this is no key.
	if _, wrong := c.wrong.GetIfPresent(digest); wrong {
		return nil, otter.ErrNotFound
	}
	begin := c.clock()
	k, err := c.source.Find(ctx, hex.EncodeToString(digest[:]))
	if api.ErrorCode(err) == api.CodeKeyNotFound {
		c.wrong.Set(digest, struct{}{})
		return nil, otter.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &knownKey{
		caller: &Caller{
			Sub: k.ID, name: k.Name, Tenant: k.Tenant, Namespace: k.Namespace, roles: k.Roles, expiresMS: k.ExpiresAtMS, digest: digest,
		},
		readAt: begin,
	}, nil
}

// keyID names a key within its tenant: an id alone, which a caller chooses, must not let one
// tenant end the keys of another.
type keyID struct{ tenant, id string }

// forget refuses a revoked key from now on, also if a load is reading it now, and drops it
// from the cache.
func (c *keyCache) forget(revoked keyID) {
	c.revoked.Set(revoked, struct{}{})
	for digest, k := range c.known.All() {
		if k.caller.Tenant == revoked.tenant && k.caller.Sub == revoked.id {
			c.known.Invalidate(digest)
		}
	}
}

// onChange takes the store's notices of revocations on other replicas.
func (c *keyCache) onChange(change storage.Change) {
	switch change.Kind {
	case storage.ChangeKey:
		c.forget(keyID{change.Tenant, change.KeyID})
	case storage.ChangeResubscribed: // notices may have been missed
		c.known.InvalidateAll()
		c.wrong.InvalidateAll()
	}
}

func (c *keyCache) close() {
	c.known.StopAllGoroutines()
	c.wrong.StopAllGoroutines()
	c.revoked.StopAllGoroutines()
}

// cacheClock makes the caches follow the server's clock by elapsed time: setting the
// clock back must not lengthen anything.
type cacheClock struct {
	now  func() time.Time
	base time.Time
}

// NowNano returns the time since the cache was made.
func (c *cacheClock) NowNano() int64 { return int64(c.now().Sub(c.base)) }

// Tick triggers the removal of expired entries, which are never used anyway.
func (c *cacheClock) Tick(every time.Duration) <-chan time.Time { return time.NewTicker(every).C }
