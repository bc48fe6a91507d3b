package access

import (
	"context"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// What is known of a key is used for at most keyTTL from the start of the
// reading that it comes from: a key that was revoked without our hearing of it
// stops within the promised 5 s. From keyRefresh on it is read again off the
// path, so that steady traffic never waits for the store.
const (
	keyTTL     = 4 * time.Second
	keyRefresh = 2 * time.Second
	keyEntries = 20_000
	// A text that was no key is none for wrongTTL: keys are never made of a text
	// that somebody else knows. Their own cache, so that they crowd out no key.
	wrongTTL     = time.Minute
	wrongEntries = 100_000
)

// KeySource reads API keys by the digest of their text.
type KeySource interface {
	Find(ctx context.Context, digest string) (api.Key, error)
}

// knownKey is a key as it was when it was read.
type knownKey struct {
	caller *Caller
	readAt time.Time // when the reading began
	// raced: a key was revoked while this was being read, so it may be that one.
	raced bool
}

// keyCache knows the keys that are in use.
type keyCache struct {
	source KeySource
	clock  func() time.Time
	known  *otter.Cache[keyDigest, *knownKey]
	wrong  *otter.Cache[keyDigest, struct{}]
	loader otter.Loader[keyDigest, *knownKey]
	// changes counts revocations, so that a load can tell that one passed it.
	changes atomic.Uint64
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
	return c, err
}

// find gives the caller whose key has the digest. Errors: CodeAuthnInvalid, and
// the store's where the key is neither known nor can be read.
func (c *keyCache) find(ctx context.Context, digest keyDigest) (*Caller, error) {
	if _, wrong := c.wrong.GetIfPresent(digest); wrong {
		return nil, invalidKey()
	}
	// One caller's load serves all that wait for it: it must outlive that caller.
	detached := context.WithoutCancel(ctx)
	found, err := c.known.Get(detached, digest, c.loader)
	if err == nil && !c.usable(found) {
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
	return found.caller, nil
}

func (c *keyCache) age(k *knownKey) time.Duration { return c.clock().Sub(k.readAt) }

func (c *keyCache) usable(k *knownKey) bool { return !k.raced && c.age(k) < keyTTL }

// load reads a key. otter.ErrNotFound makes the cache forget it at once.
func (c *keyCache) load(ctx context.Context, digest keyDigest) (*knownKey, error) {
	// Whoever came second may find here what the first one has learned.
	if _, wrong := c.wrong.GetIfPresent(digest); wrong {
		return nil, otter.ErrNotFound
	}
	before, begin := c.changes.Load(), c.clock()
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
			Sub: k.ID, Tenant: k.Tenant, Namespace: k.Namespace, roles: k.Roles, expiresMS: k.ExpiresAtMS, digest: digest,
		},
		readAt: begin,
		raced:  c.changes.Load() != before,
	}, nil
}

// forget drops what is known of a key.
func (c *keyCache) forget(id string) {
	c.changes.Add(1)
	for digest, k := range c.known.All() {
		if k.caller.Sub == id {
			c.known.Invalidate(digest)
		}
	}
}

// onChange hears what other replicas did.
func (c *keyCache) onChange(change storage.Change) {
	switch change.Kind {
	case storage.ChangeKey:
		c.forget(change.KeyID)
	case storage.ChangeResubscribed: // notices may have been missed
		c.changes.Add(1)
		c.known.InvalidateAll()
		c.wrong.InvalidateAll()
	}
}

func (c *keyCache) close() {
	c.known.StopAllGoroutines()
	c.wrong.StopAllGoroutines()
}

// cacheClock makes the caches follow the server's clock, by what has passed on it:
// a clock that is set back must not lengthen anything.
type cacheClock struct {
	now  func() time.Time
	base time.Time
}

// NowNano is the time since the cache was made.
func (c *cacheClock) NowNano() int64 { return int64(c.now().Sub(c.base)) }

// Tick drives the removal of what has expired, which is never used anyway.
func (c *cacheClock) Tick(every time.Duration) <-chan time.Time { return time.NewTicker(every).C }
