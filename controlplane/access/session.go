package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/codesous/sous/api"
)

// A Credential is what a request presents in place of a key in its headers: the session of a
// person who signed in with a key.
type Credential struct {
	// Key is the digest of the key, and Secret the session's.
	Key, Secret [sha256.Size]byte
	// Err is why the request has no session, or why it is not used; nil if it has one.
	Err error
}

type credentialKey struct{}

// WithCredential returns a context whose requests are authenticated by c, whatever their headers
// have.
func WithCredential(ctx context.Context, c *Credential) context.Context {
	return context.WithValue(ctx, credentialKey{}, c)
}

// SessionSource reads sessions.
type SessionSource interface {
	// Ends returns when a session of a key ends, the zero time if there is none. Both are given as
	// SHA-256 in hexadecimal.
	Ends(ctx context.Context, key, session string) (time.Time, error)
}

// sessionID identifies a session by the digests of its key and of its secret.
type sessionID struct{ key, session keyDigest }

// sessionTTL is how long a session is used without reading it again: as long as a key is, so that
// a session that ended on another replica stops within the same 5 s.
const (
	sessionTTL     = keyTTL
	sessionEntries = 20_000
)

// sessionCache caches the sessions that are in use.
type sessionCache struct {
	source SessionSource
	clock  func() time.Time
	live   *otter.Cache[sessionID, time.Time] // with their ends
}

func newSessionCache(source SessionSource, clock func() time.Time) (*sessionCache, error) {
	live, err := otter.New(&otter.Options[sessionID, time.Time]{
		MaximumSize:      sessionEntries,
		ExpiryCalculator: otter.ExpiryWriting[sessionID, time.Time](sessionTTL),
		Clock:            &cacheClock{now: clock, base: clock()},
		Logger:           &otter.NoopLogger{},
	})
	return &sessionCache{source: source, clock: clock, live: live}, err
}

// check returns CodeAuthnInvalid unless the session lives. Errors: those of the store if it must be
// read.
func (c *sessionCache) check(ctx context.Context, id sessionID) error {
	ends, known := c.live.GetIfPresent(id)
	if !known {
		var err error
		ends, err = c.source.Ends(ctx, hex.EncodeToString(id.key[:]), hex.EncodeToString(id.session[:]))
		if err != nil {
			return err
		}
	}
	if !c.clock().Before(ends) {
		c.live.Invalidate(id)
		return endedSession()
	}
	if !known {
		c.live.Set(id, ends)
	}
	return nil
}

func endedSession() error {
	return api.Errorf(api.CodeAuthnInvalid, "the session has ended, or its API key is expired or revoked: sign in again")
}

// UseSessions has the authenticator accept sessions of source. It must be called before the first
// request.
func (a *Authenticator) UseSessions(source SessionSource) error {
	if a.keys == nil {
		return nil
	}
	sessions, err := newSessionCache(source, a.keys.clock)
	a.sessions = sessions
	return err
}

// ForgetSession drops a session from this process's cache. The handler that ends a session calls it
// after the store's write.
func (a *Authenticator) ForgetSession(c *Credential) {
	if a.sessions != nil {
		a.sessions.live.Invalidate(c.id())
	}
}

// id returns the identity under which a session is stored, which is not enough to use it.
func (c *Credential) id() sessionID { return sessionID{c.Key, sha256.Sum256(c.Secret[:])} }

// Stored returns the digests of the key and of the session in hexadecimal, as a SessionSource has
// them.
func (c *Credential) Stored() (key, session string) {
	id := c.id()
	return hex.EncodeToString(id.key[:]), hex.EncodeToString(id.session[:])
}

// present returns the caller of a session. Its key is examined as any other.
func (a *Authenticator) present(ctx context.Context, c *Credential) (*Caller, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	if a.sessions == nil {
		return nil, api.Errorf(api.CodeAuthnInvalid, "this server has no sessions")
	}
	id := c.id()
	if err := a.sessions.check(ctx, id); err != nil {
		return nil, err
	}
	found, err := a.keys.find(ctx, id.key)
	if api.ErrorCode(err) == api.CodeAuthnInvalid {
		return nil, endedSession()
	}
	if err != nil {
		return nil, err
	}
	caller := *found
	caller.session = &id
	return &caller, nil
}

// Digest returns the digest of the caller's key, zero where authentication is off.
func (c *Caller) Digest() [sha256.Size]byte { return c.digest }

// OfKey returns the caller whose key has a digest, for what a request with that key has asked to be done
// later. Errors: those of Authenticate.
func (a *Authenticator) OfKey(ctx context.Context, digest [sha256.Size]byte) (*Caller, error) {
	if a.mode == Off {
		return a.local, nil
	}
	return a.keys.find(ctx, digest)
}

// SignIn returns the caller whose key has the text, and the digest of the key. Errors: those of
// Authenticate.
func (a *Authenticator) SignIn(ctx context.Context, text string) (*Caller, [sha256.Size]byte, error) {
	digest := sha256.Sum256([]byte(text))
	caller, err := a.local, error(nil)
	switch {
	case a.mode == Off:
	case !api.LooksLikeKey(text):
		err = invalidKey()
	default:
		caller, err = a.keys.find(ctx, digest)
	}
	a.results.WithLabelValues(a.result(err)).Inc()
	return caller, digest, err
}
