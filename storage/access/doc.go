// Package access keeps the API keys of tenants, the bootstrap of the first one, and the
// audit of what callers changed.
//
// A key is a text that its holder presents; only its SHA-256 is stored. The key with the id
// key_1 of the tenant t_acme01, whose text has the digest 9f86d0…, is
//
//	cs:keys:tenants          {t_acme01, …}
//	cs:keys:t_acme01         {key_1:9f86d0…}
//	cs:key:9f86d0…           id key_1, tenant t_acme01, roles ["admin"], …
//
// A request is authenticated by one read of cs:key:9f86d0…; the sets are for lists and
// revocation. apikeys.go keeps the keys, apikeys_bootstrap.go creates the first one under a
// lock, and audit.go keeps a stream of events for each tenant.
package access
