// Package tenancy serves tenants and their namespaces, limits and usage, API keys, secrets, cs.kv
// and audit log. Each file has one of them: tenants.go, limits.go, keys.go, secrets.go, kv.go,
// audit.go.
//
// Two values enter and never leave again. The text of an API key is in the answer that
// creates it, and only its digest is stored. The value of a secret is sealed by
// storage/secrets, and no route returns it; neither logs, errors nor the audit may quote
// the body that has it.
package tenancy

import (
	"time"

	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/secrets"
)

// KeyCache caches API keys.
type KeyCache interface {
	// ForgetKey drops a key from the cache, so that this replica refuses it immediately.
	ForgetKey(tenant, id string)
}

// API serves a tenant's own resources. It is safe for concurrent use.
type API struct {
	store   *storage.Store
	quotas  *quotas.Keeper
	kv      *kvstore.KV
	tenants *storage.Tenants
	keys    *access.APIKeys
	events  *access.Audit
	secrets *secrets.Secrets
	auth    KeyCache
	clock   func() time.Time
}

// New returns the API of the tenants in a store; keys that it revokes are dropped from
// auth. clock dates new keys and refuses an expiry in the past.
func New(store *storage.Store, quotas *quotas.Keeper, secrets *secrets.Secrets, auth KeyCache, clock func() time.Time) *API {
	return &API{
		store:   store,
		quotas:  quotas,
		kv:      kvstore.New(store),
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
	for _, some := range [][]rest.Endpoint{a.tenantEndpoints(), a.limitEndpoints(), a.keyEndpoints(), a.kvEndpoints(), a.auditEndpoints(), a.secretEndpoints()} {
		all = append(all, some...)
	}
	return all
}
