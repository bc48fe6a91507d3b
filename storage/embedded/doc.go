// Package embedded is a store server inside this process, for development: one process on
// one machine, with all data in memory, a snapshot and a journal on disk.
//
// A Server speaks the Redis protocol over socket pairs; a storage.Store opens it as its
// storage.Config.Embedded. The snapshot holds every key at one moment. The journal holds
// the writes since, each appended before its answer leaves: a killed process loses nothing
// that it had answered. Snapshots and the expiry of keys run while no command does.
//
// The data directory while the snapshot that is followed by journal 3 is being replaced:
//
//	store.lock          empty; locked by flock while a Server has the directory
//	store.snapshot      every key when journal 3 began
//	store.journal.3     the writes since
//	store.snapshot.812  every key when journal 4 began, not complete yet
//	store.journal.4     the writes since that
//
// A crash at this moment loses nothing: the next Open removes the unfinished file, loads the
// snapshot, and replays journals 3 and 4. After the rename, the snapshot names journal 4 as
// the first that follows it, and journal 3 is removed; if a crash prevents the removal, Open
// skips journal 3, and the next snapshot removes it.
//
// Files: embedded.go opens and serves; standstill.go runs every command under a lock, a write
// alone, and appends it to the journal (journal.go) before its answer is sent; snapshot.go
// copies, writes and loads the keys. Only miniredis knows the data: a journal entry is a
// command, and loading it means running it again.
package embedded
