// Package statestore is the contract of a store of current state: records of
// fields under a key, with an optional time-to-live, compare-and-set and filtered
// scans. Packages kvrocks and jetstream implement it; both pass package
// statestoretest. What it does not do, on purpose: deliver messages, keep history,
// join, or change two keys at once.
package statestore

import (
	"context"
	"iter"
	"time"
)

// Store keeps records. It is safe for concurrent use. A key is one or more
// segments joined by colons, none of them empty, without white space or control
// characters, of at most MaxKeyBytes; a field's name is any text. Errors:
// CodeValidation for a malformed key, filter or time-to-live, CodeStoreUnavailable
// where the store does not answer or is closed, CodeStoreConflict where others
// changed the record again and again meanwhile, CodeBodyLimit for a record that the
// store cannot hold. After CodeStoreUnavailable a write may have been made or not.
type Store interface {
	// Get gives the record, nil where there is none.
	Get(ctx context.Context, key string) (*Record, error)
	// Put stores the record in place of what was there. Its TTL of 0 keeps it until
	// it is deleted.
	Put(ctx context.Context, key string, r Record) error
	// Delete removes the record, if it is there.
	Delete(ctx context.Context, key string) error

	// GetField gives one field; found is false where there is no record, or no such
	// field in it.
	GetField(ctx context.Context, key, field string) (value []byte, found bool, err error)
	// SetFields writes fields, and removes those whose value is nil; others, and the
	// time-to-live, stay. It makes the record if there is none; one without fields
	// does not exist.
	SetFields(ctx context.Context, key string, fields Fields) error
	// CompareAndSet is SetFields if every field of expected has its value now, nil
	// meaning that it must be absent. It says whether it was so. Where the network
	// failed meanwhile, false may stem from the call's own write: what tells is a
	// field that names the writer.
	CompareAndSet(ctx context.Context, key string, expected, fields Fields) (bool, error)
	// Expire gives the record, if it is there, ttl to live from now; 0 keeps it.
	Expire(ctx context.Context, key string, ttl time.Duration) error

	// Scan gives the records whose keys begin with prefix (the beginning of a key, in
	// a segment's middle as well, but not "") and that pass the filter (nil: all of
	// them), until the caller stops or an error is given, which is the last. With a
	// filter they come in ascending order of its field, then of their keys. No record
	// comes twice; those that change meanwhile may be given or not.
	Scan(ctx context.Context, prefix string, f *Filter) iter.Seq2[Entry, error]

	// Ping asks for a sign of life.
	Ping(ctx context.Context) error
	// Close ends what the store made for itself; what it was given stays open.
	Close() error
}

// Fields are a record's values by name.
type Fields map[string][]byte

// Record is what stands under a key.
type Record struct {
	Fields Fields
	TTL    time.Duration // that remains; 0 where it has none
}

// Entry is one record of a scan.
type Entry struct {
	Key string
	Record
}

// Op is how a filter compares.
type Op string

// The comparisons, by Compare.
const (
	Equal   Op = "eq"
	Less    Op = "lt"
	Greater Op = "gt"
)

// Filter selects records by one field. A record without the field does not pass.
type Filter struct {
	Field string
	Op    Op
	Value []byte
	// Except leaves out records whose field has one of the values.
	Except Exception
	// MaxResults bounds how many records the scan gives; 0 means no bound.
	MaxResults int
}

// Exception names values of a field; its zero value names none.
type Exception struct {
	Field  string
	Values []string
}

// CompareAndSwap gives field the value new if it is expected now (nil: absent),
// and says whether it was.
func CompareAndSwap(ctx context.Context, s Store, key, field string, expected, value []byte) (bool, error) {
	return s.CompareAndSet(ctx, key, Fields{field: expected}, Fields{field: value})
}

// SetField writes one field.
func SetField(ctx context.Context, s Store, key, field string, value []byte) error {
	return s.SetFields(ctx, key, Fields{field: value})
}
