// Package tenancy serves tenants and their namespaces, API keys, secrets and audit log.
package tenancy

import (
	"time"

	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/secrets"
)

// KeyCache caches API keys.
type KeyCache interface {
	// ForgetKey drops a key from the cache.
	ForgetKey(id string)
}

// API serves a tenant's own resources.
type API struct {
	tenants *storage.Tenants
	keys    *access.APIKeys
	events  *access.Audit
	secrets *secrets.Secrets
	auth    KeyCache
	clock   func() time.Time
}

// New returns the API of the tenants in a store; keys that it revokes are dropped from
// auth.
func New(store *storage.Store, secrets *secrets.Secrets, auth KeyCache, clock func() time.Time) *API {
	return &API{
		tenants: storage.NewTenants(store),
		keys:    access.NewAPIKeys(store),
		events:  access.NewAudit(store),
		secrets: secrets,
		auth:    auth,
		clock:   clock,
	}
}

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	var all []rest.Endpoint
	for _, some := range [][]rest.Endpoint{a.tenantEndpoints(), a.keyEndpoints(), a.auditEndpoints(), a.secretEndpoints()} {
		all = append(all, some...)
	}
	return all
}
