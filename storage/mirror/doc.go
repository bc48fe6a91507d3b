// Package mirror keeps a view of jobs and activations in SQLite, for searches across queues and
// functions. The store stays the only source of truth: the file can be deleted at any time, and is
// built again from the store.
//
//	mirror.go  Mirror: the states, the pool of readers
//	file.go    the folder, its lock, the file with its schema and its examination
//	space.go   the room that the file may take, and that the disk has
//	apply.go   Apply, which writes a batch of records in one transaction
//	jobs.go, activations.go  the rows of a record
//	words.go   the texts that the full-text search finds
//	scan.go    the reads of the feed: versions of rows, pages of rows
//	statements.go  the statements of the writer
//	row.go     the numbers of rows
//
// Package feed brings the records, and package search reads them. One process writes a file: a lock
// beside it keeps a second one away. Readers do not wait for the writer, nor the writer for them.
package mirror
