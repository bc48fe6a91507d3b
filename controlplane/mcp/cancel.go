package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/codesous/sous/storage"
)

// maxSession bounds the session id of a client, in bytes.
const maxSession = 128

// calls are the requests that this replica answers and that their clients can cancel. A
// notifications/cancelled may reach another replica, which passes it on by a notice of the store. Notices
// can be lost, and so can such notifications: the protocol does not answer them.
type calls struct {
	store *storage.Store

	mu      sync.Mutex
	running map[string]context.CancelFunc
}

func newCalls(store *storage.Store) *calls {
	return &calls{store: store, running: map[string]context.CancelFunc{}}
}

// identity returns the name of the caller's request with an id, "" for a request that cannot be
// cancelled: one without a session. Without one, two clients with one key could not be told apart. It
// depends on the key, so no caller can cancel the requests of another key.
func (s *session) identity(id string) string {
	session := s.request.Header.Get(headerSession)
	if session == "" || len(session) > maxSession || id == "" || len(id) > maxID {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{s.caller.Tenant, s.caller.Sub, session, id}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// begin returns the context of a request, and what to call at its end. A second request of the same
// name, which a client must not send, is not registered.
func (c *calls) begin(ctx context.Context, name string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if name == "" {
		return ctx, cancel
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[name] != nil {
		return ctx, cancel
	}
	c.running[name] = cancel
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, name)
	}
}

// end cancels a request of this replica, and reports whether there is one.
func (c *calls) end(name string) bool {
	c.mu.Lock()
	cancel := c.running[name]
	c.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel()
	return true
}

// cancel cancels a request, on whichever replica it is.
func (c *calls) cancel(ctx context.Context, name string) {
	if name == "" || c.end(name) {
		return
	}
	// Best effort: the notification is not answered.
	_ = c.store.PublishChange(ctx, storage.Change{Kind: storage.ChangeCall, Call: name})
}

// onChange takes a notice of the store.
func (c *calls) onChange(change storage.Change) {
	if change.Kind == storage.ChangeCall {
		c.end(change.Call)
	}
}
