// Package storage keeps every record of the platform in a store that speaks the
// Redis protocol: KVRocks in production, redis-server and Valkey as well, a
// single node, sentinels or a cluster, and an embedded store for development.
//
// A Store is the connection; each record kind has a repository over it
// (Functions, Drafts, Versions, Aliases, Activations, Logs, KV, Tenants, Keys, Audit). What
// changes several keys at once is a script of package lua.
//
// Errors are *api.Error with a code. Whatever keeps the store from answering is
// api.CodeStoreUnavailable; a caller's own cancelled context stays a context
// error. A write whose outcome is unknown may be repeated: each recognises what
// an earlier try of itself left.
package storage
