// Package storage connects to a store that speaks the Redis protocol: KVRocks in
// production, redis-server and Valkey as well, a single node, sentinels or a cluster, and
// the embedded server of package storage/embedded for development.
//
// A Store is the connection. It builds every key (Keys), runs the scripts of package lua
// (Script and its variants), commits the writes of concurrent callers together (Commit),
// and carries notices between processes (PublishChange, Subscribe). A repository for each
// kind of record stands on top of it: Functions, Drafts, Versions, Aliases, Schedules, KV
// and Tenants in this package; activations, documents, secrets, bindings and access below
// it; jobs in package queue. What changes several keys at once is a script.
//
// Errors are *api.Error with a code. A store that does not answer is
// api.CodeStoreUnavailable; a context that the caller ended stays a context error. A write
// whose outcome is unknown may be repeated: it recognizes what its earlier try has written.
package storage
