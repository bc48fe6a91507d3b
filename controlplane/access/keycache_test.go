package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// keyStore is a store of keys by digest, and calls during in the middle of each
// reading.
type keyStore struct {
	mu     sync.Mutex
	keys   map[string]api.Key
	reads  atomic.Int64
	during func()
	err    error
}

func (s *keyStore) Find(_ context.Context, digest string) (api.Key, error) {
	s.reads.Add(1)
	s.mu.Lock()
	k, ok := s.keys[digest]
	during, err := s.during, s.err
	s.mu.Unlock()
	if during != nil {
		during()
	}
	switch {
	case err != nil:
		return api.Key{}, err
	case !ok:
		return api.Key{}, api.Errorf(api.CodeKeyNotFound, "no such API key")
	}
	return k, nil
}

func (s *keyStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// cacheTest is a cache over a store of one key, on a clock of its own.
type cacheTest struct {
	*keyCache
	store  *keyStore
	ns     atomic.Int64
	digest keyDigest
}

func (c *cacheTest) now() time.Time          { return time.Unix(1_700_000_000, c.ns.Load()) }
func (c *cacheTest) advance(d time.Duration) { c.ns.Add(int64(d)) }

func newCacheTest(t *testing.T) *cacheTest {
	t.Helper()
	c := &cacheTest{digest: sha256.Sum256([]byte("a key"))}
	c.store = &keyStore{keys: map[string]api.Key{hex.EncodeToString(c.digest[:]): {ID: "key_1", Tenant: "t_test00", Roles: []string{"viewer"}}}}
	var err error
	c.keyCache, err = newKeyCache(c.store, c.now)
	if err != nil {
		t.Fatalf("newKeyCache: %v", err)
	}
	t.Cleanup(c.close)
	return c
}

// wants looks the key up and checks what comes of it and what it cost.
func (c *cacheTest) wants(t *testing.T, code api.Code, reads int64) {
	t.Helper()
	before := c.store.reads.Load()
	found, err := c.find(t.Context(), c.digest)
	if api.ErrorCode(err) != code || code == "" && found.Sub != "key_1" {
		t.Errorf("got %+v %v, want %q", found, err, code)
	}
	if got := c.store.reads.Load() - before; got != reads {
		t.Errorf("%d readings, want %d", got, reads)
	}
}

func (c *cacheTest) revoke() {
	c.store.set(func() { clear(c.store.keys) })
}

// What was read counts from the start of the reading: a slow one is old when it
// comes.
func TestKeysAreKnownFor4SecondsFromTheStartOfTheirReading(t *testing.T) {
	t.Parallel()
	c := newCacheTest(t)
	c.store.during = func() { c.advance(1500 * time.Millisecond) }
	c.wants(t, "", 1)
	c.store.set(func() { c.store.during = nil })
	c.revoke()
	c.advance(400 * time.Millisecond) // 1.9 s
	c.wants(t, "", 0)
	c.advance(2100 * time.Millisecond) // 4 s, of which the cache has seen 2.5
	c.wants(t, api.CodeAuthnInvalid, 1)

	slow := newCacheTest(t)
	slow.store.during = func() { slow.advance(keyTTL) }
	slow.wants(t, api.CodeStoreUnavailable, 2)
}

// A clock that is set back makes nothing last longer.
func TestKeysAreForgottenInTimeThatHasPassed(t *testing.T) {
	t.Parallel()
	begin := time.Now() // with a monotonic reading, as the server's clock has it
	c := newCacheTest(t)
	var passed atomic.Int64
	cache, err := newKeyCache(c.store, func() time.Time { return begin.Add(time.Duration(passed.Load())) })
	if err != nil {
		t.Fatalf("newKeyCache: %v", err)
	}
	t.Cleanup(cache.close)
	if _, err := cache.find(t.Context(), c.digest); err != nil {
		t.Fatalf("find: %v", err)
	}
	c.revoke()
	passed.Store(int64(keyTTL))
	if _, err := cache.find(t.Context(), c.digest); api.ErrorCode(err) != api.CodeAuthnInvalid {
		t.Errorf("got %v, want code CodeAuthnInvalid", err)
	}
}

func TestNoticesDropWhatIsKnown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		notice storage.Change
		code   api.Code
		reads  int64
	}{
		"of the key":        {storage.Change{Kind: storage.ChangeKey, Tenant: "t_test00", KeyID: "key_1"}, api.CodeAuthnInvalid, 1},
		"resubscribed":      {storage.Change{Kind: storage.ChangeResubscribed}, api.CodeAuthnInvalid, 1},
		"of another key":    {storage.Change{Kind: storage.ChangeKey, Tenant: "t_test00", KeyID: "key_2"}, "", 0},
		"of another tenant": {storage.Change{Kind: storage.ChangeKey, Tenant: "t_other0", KeyID: "key_1"}, "", 0},
		"of a function":     {storage.Change{Kind: storage.ChangeFunction}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCacheTest(t)
			c.wants(t, "", 1)
			c.revoke()
			c.onChange(tc.notice)
			c.wants(t, tc.code, tc.reads)
		})
	}
}

// A load that read the key before its revocation admits no caller with it, now or from the
// cache, wherever the revocation overtakes it.
func TestAKeyRevokedDuringItsLoadIsRefused(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(c *cacheTest, revoke func()){
		"during the read": func(c *cacheTest, revoke func()) { c.store.during = revoke },
		"before the entry is cached": func(c *cacheTest, revoke func()) {
			load, once := c.loader, sync.OnceFunc(revoke)
			c.loader = otter.LoaderFunc[keyDigest, *knownKey](func(ctx context.Context, digest keyDigest) (*knownKey, error) {
				defer once()
				return load.Load(ctx, digest)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCacheTest(t)
			arrange(c, func() { // the record was read, but is not yet cached
				c.store.set(func() { c.store.during = nil })
				c.revoke()
				c.forget(keyID{"t_test00", "key_1"})
			})
			c.wants(t, api.CodeAuthnInvalid, 1)
			c.wants(t, api.CodeAuthnInvalid, 0)
			c.advance(keyTTL)
			c.wants(t, api.CodeAuthnInvalid, 1)
		})
	}
}

func TestFirstTriesOfOneKeyCoalesce(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"a key": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCacheTest(t)
			if !known {
				c.revoke()
			}
			entered, leave := make(chan struct{}), make(chan struct{})
			var once sync.Once
			c.store.during = func() { once.Do(func() { close(entered) }); <-leave }
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, err := c.find(t.Context(), c.digest); (err == nil) != known {
						t.Errorf("find: got error %v, want success: %v", err, known)
					}
				})
			}
			<-entered
			close(leave)
			all.Wait()
			if got := c.store.reads.Load(); got != 1 {
				t.Errorf("got %d reads of the store, want 1", got)
			}
		})
	}
}

func TestWrongKeysAreAMinuteLongWrong(t *testing.T) {
	t.Parallel()
	c := newCacheTest(t)
	c.revoke()
	c.wants(t, api.CodeAuthnInvalid, 1)
	c.advance(wrongTTL - time.Second)
	c.wants(t, api.CodeAuthnInvalid, 0)
	c.advance(time.Second)
	c.wants(t, api.CodeAuthnInvalid, 1)
}

// A caller that began before the first answer was cached, and reads after it, uses the cache.
func TestWhoComesSecondReadsNothing(t *testing.T) {
	t.Parallel()
	c := newCacheTest(t)
	c.revoke()
	c.wants(t, api.CodeAuthnInvalid, 1)
	if k, err := c.load(t.Context(), c.digest); err == nil || c.store.reads.Load() != 1 {
		t.Errorf("got key %+v and error %v after %d reads, want an error after 1 read", k, err, c.store.reads.Load())
	}
}

func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	c := newCacheTest(t)
	c.store.set(func() { c.store.err = api.Errorf(api.CodeStoreUnavailable, "gone") })
	c.wants(t, api.CodeStoreUnavailable, 1)
	c.wants(t, api.CodeStoreUnavailable, 1)
	c.store.set(func() { c.store.err = nil })
	c.wants(t, "", 1)
}

// A caller that goes away does not cancel the load of the others.
func TestALoadOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	c := newCacheTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.find(ctx, c.digest); err != nil {
		t.Errorf("find: %v", err)
	}
}

func TestWrongKeysAreBoundedAndCrowdOutNone(t *testing.T) {
	t.Parallel()
	c := newCacheTest(t)
	c.wants(t, "", 1)
	for i := range wrongEntries + 20_000 {
		digest := sha256.Sum256(strconv.AppendInt(nil, int64(i), 10))
		if _, err := c.find(t.Context(), digest); api.ErrorCode(err) != api.CodeAuthnInvalid {
			t.Fatalf("find: got error %v, want code %s", err, api.CodeAuthnInvalid)
		}
	}
	c.wrong.CleanUp()
	if n := c.wrong.EstimatedSize(); n > wrongEntries {
		t.Errorf("got %d wrong texts in the cache, want at most %d", n, wrongEntries)
	}
	c.wants(t, "", 0)
}
