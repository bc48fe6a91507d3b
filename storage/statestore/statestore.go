// Package statestore defines a store of current state: records of fields under a key,
// with an optional time-to-live, compare-and-set and filtered scans. Packages kvrocks and
// jetstream implement it; both pass the tests of package statestoretest. It does not
// deliver messages, keep history, join, or change two keys at once.
package statestore

import (
	"context"
	"iter"
	"time"
)

// Store keeps records. It is safe for concurrent use. A key is one or more
// segments joined by colons, none of them empty, without white space or control
// characters, of at most MaxKeyBytes; a field's name is any text. Errors:
// CodeInvalid for a malformed key, filter or time-to-live, CodeStoreUnavailable
// where the store does not answer or is closed, CodeStoreConflict where others
// changed the record again and again meanwhile, CodeBodyLimit for a record that the
// store cannot hold. After CodeStoreUnavailable a write may have been made or not.
type Store interface {
	// Get returns the record, nil if it does not exist.
	Get(ctx context.Context, key string) (*Record, error)
	// Put stores the record and replaces an existing one. A record with a TTL of 0 does
	// not expire.
	Put(ctx context.Context, key string, r Record) error
	// Delete removes the record. A missing record is no error.
	Delete(ctx context.Context, key string) error

	// GetField returns one field. found is false if the record or the field does not
	// exist.
	GetField(ctx context.Context, key, field string) (value []byte, found bool, err error)
	// SetFields writes fields and removes those whose value is nil. Other fields and the
	// time-to-live stay. It creates a missing record; a record without fields does not
	// exist.
	SetFields(ctx context.Context, key string, fields Fields) error
	// CompareAndSet is SetFields on the condition that every field of expected has its
	// value; nil means that the field must be absent. It reports whether the condition
	// held. If the network failed meanwhile, false can result from the call's own
	// write: use a field that names the writer to find out.
	CompareAndSet(ctx context.Context, key string, expected, fields Fields) (bool, error)
	// Expire sets the time-to-live of the record, from now; 0 removes it. A missing
	// record is no error.
	Expire(ctx context.Context, key string, ttl time.Duration) error

	// Scan iterates over the records whose keys begin with prefix and that pass the
	// filter (nil: all). The prefix may end within a segment; it must not be "". An
	// error is the last element. With a filter, the records are in ascending order of
	// its field, then of their keys; without one they are in no order. No record is
	// repeated; a record that changes during the scan may be missing.
	Scan(ctx context.Context, prefix string, f *Filter) iter.Seq2[Entry, error]

	// Ping returns nil if the store answers.
	Ping(ctx context.Context) error
	// Close makes later calls fail. A connection that was passed to the store stays open.
	Close() error
}

// Fields are the values of a record by name.
type Fields map[string][]byte

// Record is the value of a key.
type Record struct {
	Fields Fields
	TTL    time.Duration // remaining; 0 for none
}

// Entry is one record of a scan.
type Entry struct {
	Key string
	Record
}

// Op is the comparison of a filter.
type Op string

// The comparisons; Compare defines the order.
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
	// Except excludes records whose field has one of the values.
	Except Exception
	// MaxResults bounds the number of records of the scan; 0 means no bound.
	MaxResults int
}

// Exception names values of a field; its zero value names none.
type Exception struct {
	Field  string
	Values []string
}

// CompareAndSwap sets field to value if its value is expected (nil: absent). It reports
// whether it was. A nil value removes the field. See Store.CompareAndSet.
func CompareAndSwap(ctx context.Context, s Store, key, field string, expected, value []byte) (bool, error) {
	return s.CompareAndSet(ctx, key, Fields{field: expected}, Fields{field: value})
}

// SetField writes one field.
func SetField(ctx context.Context, s Store, key, field string, value []byte) error {
	return s.SetFields(ctx, key, Fields{field: value})
}
