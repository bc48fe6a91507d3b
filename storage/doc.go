// Package storage connects to a store that speaks the Redis protocol: KVRocks in
// production, redis-server and Valkey as well, a single node, sentinels or a cluster, and
// the embedded server of package storage/embedded for development.
//
// A Store is the connection. It builds every key (Keys), runs the scripts of package lua
// (Script and its variants), commits the writes of concurrent callers together (Commit),
// and carries notices between processes (PublishChange, Subscribe). A repository for each
// kind of record stands on top of it: Functions, Drafts, Versions, Aliases and Tenants in
// this package; schedules, activations, documents, secrets, bindings and access below it; jobs in package queue. What changes several keys at once is a script.
//
// The path of a call: a repository builds its keys and arguments and calls Script
// (script.go), which sends the digest through the client of connect.go. The hook of
// metrics.go counts the call. errors.go converts the reply or the failure, and
// RetryConflicts (retry.go) repeats calls that lost a race.
//
// These rules hold for the records of this package and the packages below it:
//   - Keys are built in keys.go, and all keys of a tenant share a slot of a cluster.
//   - A record that is written whole is JSON (Encode, Decode); a script that changes it
//     compares the stored bytes with those that its caller read.
//   - An index entry is written before its record and removed after it. Readers skip an
//     entry without a record; a record without an entry would never be listed.
//   - Times are milliseconds since 1970 and come from the caller's clock.
//   - Any prefix of an operation's writes is harmless; script.go has a worked example.
//
// Errors are *api.Error with a code. A store that does not answer is
// api.CodeStoreUnavailable; a context that the caller ended stays a context error. A write
// whose outcome is unknown may be repeated: it recognizes what its earlier try has written.
package storage
