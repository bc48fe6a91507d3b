// Package access decides who may do what: it authenticates callers by their API keys,
// and knows which actions each role grants. It knows nothing of routes.
package access

import (
	"crypto/sha256"
	"strings"

	"github.com/codesous/sous/api"
)

// Caller is the authenticated sender of a request. It is shared between requests and
// must not be changed.
type Caller struct {
	// Sub is the id of the caller's API key.
	Sub string
	// Tenant is the only tenant that the caller may enter, or api.AllTenants.
	Tenant string
	// Namespace is the only namespace that the caller may enter, "" for all of the
	// tenant's.
	Namespace string

	roles     []string
	expiresMS int64     // Unix milliseconds; 0 is never
	digest    keyDigest // of the key, for Recheck
	local     bool      // authentication is off: callers cannot be told apart
}

// keyDigest is the SHA-256 of a key's text.
type keyDigest [sha256.Size]byte

// localCaller returns the caller that stands for every caller under Off.
func localCaller() *Caller {
	return &Caller{Sub: "local", Tenant: api.AllTenants, roles: []string{api.RoleAdmin}, local: true}
}

// Unknown returns a caller that enters no tenant and no namespace and may do nothing.
func Unknown() *Caller { return &Caller{Namespace: "-"} }

// Principal returns the caller as functions see it.
func (c *Caller) Principal() api.Principal { return api.Principal{Sub: c.Sub, Roles: c.roles} }

// Access returns the access to functions of a caller that may invoke.
func (c *Caller) Access() api.Access {
	if c.local {
		return api.AccessUnrestricted
	}
	return api.AccessGranted
}

// Calls makes c, which must be allowed to invoke, the caller of inv.
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

// Need returns CodeAuthzDenied for an action that none of the caller's roles grants.
func (c *Caller) Need(action Action) error {
	if granted(c.roles, action) {
		return nil
	}
	return api.Errorf(api.CodeAuthzDenied, "this needs %s, which the API key's roles (%s) do not grant", action, strings.Join(c.roles, ", "))
}
