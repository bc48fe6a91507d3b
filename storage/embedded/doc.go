// Package embedded is a store server inside this process, for development: one process on
// one machine, with all data in memory, a snapshot and a journal on disk.
//
// A Server speaks the Redis protocol over socket pairs; a storage.Store opens it as its
// storage.Config.Embedded. The snapshot holds every key at one moment. The journal holds
// the writes since, each appended before its answer leaves: a killed process loses nothing
// that it had answered. Snapshots and the expiry of keys run while no command does.
package embedded
