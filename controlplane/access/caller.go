// Package access decides who may do what: it authenticates callers by their API keys,
// and knows which actions each role grants. It knows nothing of routes.
//
// Authenticator (authenticator.go) finds the Caller (caller.go) of a request by the
// digest of its key, mostly in the cache of keycache.go. A Caller then answers three
// questions, which controlplane/rest asks in this order:
//
//	Enters          may it know the tenant?         no: 404, as if the tenant did not exist
//	Need            does a role grant the action?   no: 403
//	NeedNamespace   may it enter the namespace?     no: 403
//
// action.go names the actions and which of them are audited, role.go has the table from
// role to actions. docs/access.md documents both, and a test compares them. The store's
// records of keys are in storage/access.
package access

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
)

// Caller is the authenticated sender of a request. It is shared between requests and
// must not be changed.
type Caller struct {
	// Sub is the id of the caller's API key.
	Sub string
	// Tenant is the only tenant that the caller may enter, or api.AllTenants for the
	// administrator of the platform.
	Tenant string
	// Namespace is the only namespace that the caller may enter, "" for all of the
	// tenant's.
	Namespace string

	name      string // of the key
	roles     []string
	expiresMS int64      // Unix milliseconds, checked at each use; 0 is never
	digest    keyDigest  // of the key, for Recheck
	session   *sessionID // of a caller that signed in, for Recheck; nil for none
	local     bool       // authentication is off: callers cannot be told apart
}

// keyDigest is the SHA-256 of a key's text.
type keyDigest [sha256.Size]byte

// localCaller returns the caller that stands for every caller under Off: an administrator
// of all tenants whose access to functions ignores a version's roles.
func localCaller() *Caller {
	return &Caller{Sub: "local", Tenant: api.AllTenants, roles: []string{api.RoleAdmin}, local: true}
}

// Unknown returns a caller that enters no tenant and no namespace and may do nothing. No
// namespace is called "-", which is not a valid name.
func Unknown() *Caller { return &Caller{Namespace: "-"} }

// Principal returns the caller as functions see it: the id of its key, never the key. The
// slice of roles is shared and must not be changed.
func (c *Caller) Principal() api.Principal { return api.Principal{Sub: c.Sub, Roles: c.roles} }

// Identity describes c, without the parts about the server.
func (c *Caller) Identity() whoami.Identity {
	id := whoami.Identity{
		Auth: whoami.AuthKeys, KeyID: c.Sub, Name: c.name, Tenant: c.Tenant, Namespace: c.Namespace,
		Roles: c.roles, ExpiresAtMS: c.expiresMS,
	}
	if c.local {
		id.Auth, id.KeyID = whoami.AuthOff, ""
	}
	return id
}

// Grants returns the actions that the caller's roles grant. One that ends in * stands for all
// actions that begin with the text before it.
func (c *Caller) Grants() []Action {
	var all []Action
	for _, name := range c.roles {
		all = append(all, roles[name]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Access returns the access to functions of a caller that may invoke. Where callers can be
// told apart, a version's own list of roles applies on top (AccessGranted).
func (c *Caller) Access() api.Access {
	if c.local {
		return api.AccessUnrestricted
	}
	return api.AccessGranted
}

// Calls makes c, which must be allowed to invoke, the caller of inv. It checks nothing: the
// route's Action or Need has done that, and the engine checks the version's roles.
func (c *Caller) Calls(inv *api.Invocation) {
	inv.Principal, inv.Access, inv.AllNamespaces = c.Principal(), c.Access(), c.Namespace == ""
}

// Enters reports whether a tenant's resources exist for c.
func (c *Caller) Enters(tenant string) bool { return c.Tenant == tenant || c.Tenant == api.AllTenants }

// EntersNamespace reports whether c may enter a namespace of a tenant that it enters.
func (c *Caller) EntersNamespace(namespace string) bool {
	return c.Namespace == "" || c.Namespace == namespace
}

// NeedNamespace returns CodeAuthzDenied for a namespace that c may not enter. The
// empty name stands for all namespaces together.
func (c *Caller) NeedNamespace(namespace string) error {
	if c.EntersNamespace(namespace) {
		return nil
	}
	return api.Errorf(api.CodeAuthzDenied, "the API key is for the namespace %s only", c.Namespace)
}

// Need returns CodeAuthzDenied for an action that none of the caller's roles grants. It
// says nothing about the namespace.
func (c *Caller) Need(action Action) error {
	if granted(c.roles, action) {
		return nil
	}
	return api.Errorf(api.CodeAuthzDenied, "the request needs the action %s, which the roles of the API key (%s) do not grant", action, strings.Join(c.roles, ", "))
}
