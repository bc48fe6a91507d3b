// Package kvrocks implements package statestore with hashes of KVRocks or Redis, and with
// sorted sets as indexes for scans of one field.
//
// A record is a hash under its key, and its time-to-live is that of the hash. A write of
// several fields, and of the index entry, is one script (lua/state_write.lua): on KVRocks it
// can be interrupted between its writes. An entry of an index is never missing for a record
// that belongs in it, and never above the indexed value. A write that raises updated_at of a
// task from 100 to 200, interrupted after each write:
//
//	HSET …:42 state completed updated_at 200    the entry is still at 100
//	ZADD …:by_updated 200 …:42                  complete
//
// and one that lowers it to 50:
//
//	ZADD …:by_updated 50 …:42                   the record is still at 100
//	HSET …:42 updated_at 50                     complete
//
// In both cases a scan of values below some bound finds the record, reads it, sees that the
// entry is wrong, and corrects it (lua/state_repair.lua). A record that has expired leaves its
// entry, which a scan removes.
//
// Files: kvrocks.go has reads and writes of one record, scan.go scans by SCAN, and index.go
// scans by an index.
package kvrocks

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
)

// Backend is the connection of a Store; *storage.Store implements it.
type Backend interface {
	Client() redis.UniversalClient
	// Script runs a script of package lua by its file name. It may run twice if a reply is
	// lost.
	Script(ctx context.Context, name string, keys []string, args ...any) (any, error)
	// ScriptOnce is Script without sending the script again if its reply is lost.
	ScriptOnce(ctx context.Context, name string, keys []string, args ...any) (any, error)
	// Failure converts an error of Client during op into an error of package api.
	Failure(ctx context.Context, op string, err error) error
}

// The scripts, by the names of their files in package lua.
const (
	scriptWrite  = "state_write.lua"
	scriptRepair = "state_repair.lua"
)

// Limits of one write, which is one script.
const (
	MaxFields = 256      // fields that it names: the Lua of the embedded store limits arguments to some thousand
	MaxBytes  = 16 << 20 // of their names and values
)

// Index keeps the keys of records in sorted sets, by the number in one of their fields. A
// record is in at most one index, the first whose Prefix begins its key. Records that were
// not written by this package, or before the index was configured, are not in it.
type Index struct {
	// Prefix begins the keys of the records.
	Prefix string
	// Key returns the key of the set with all records whose keys begin with the given
	// text, which may be a complete key; "" if no single set has them all. For tasks it
	// returns the tenant's set for "gbe:state:tasks:t_acme01." and "" for "gbe:state:tasks:",
	// whose records are of several tenants. On a cluster the set must be in the slot of its
	// records.
	Key func(text string) string
	// Field is the indexed field. A record without it has no entry.
	Field string
	// Except selects the records without an entry.
	Except statestore.Exception
}

// Store implements statestore.Store. A read is one round trip, a write one script. It is safe
// for concurrent use.
type Store struct {
	statestore.Lifecycle
	backend  Backend
	indexes  []Index
	repaired atomic.Int64
}

var _ statestore.Store = (*Store)(nil)

// New returns a Store over backend, which the caller closes. All Stores that write the same
// records, in all processes, must have the same indexes.
func New(backend Backend, indexes ...Index) *Store {
	return &Store{backend: backend, indexes: indexes}
}

// Repaired returns the number of index entries that scans of this Store have repaired.
func (s *Store) Repaired() int64 { return s.repaired.Load() }

// Ping implements statestore.Store.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.CheckOpen(); err != nil {
		return err
	}
	return s.backend.Failure(ctx, "ping", s.backend.Client().Ping(ctx).Err())
}

// Get implements statestore.Store.
func (s *Store) Get(ctx context.Context, key string) (*statestore.Record, error) {
	if err := s.CheckKey(key); err != nil {
		return nil, err
	}
	pipe := s.backend.Client().Pipeline()
	fields, ttl := readRecord(ctx, pipe, key)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, s.backend.Failure(ctx, "read a record", err)
	}
	return record(fields, ttl), nil
}

// readRecord queues the reads of a record and then of its time-to-live, so that a record
// that expires in between is recognized.
func readRecord(ctx context.Context, pipe redis.Pipeliner, key string) (*redis.MapStringStringCmd, *redis.DurationCmd) {
	return pipe.HGetAll(ctx, key), pipe.PTTL(ctx, key)
}

// record returns the result of readRecord, nil if the record does not exist.
func record(fields *redis.MapStringStringCmd, ttl *redis.DurationCmd) *statestore.Record {
	const none, gone = -1, -2 // replies of PTTL
	if len(fields.Val()) == 0 || ttl.Val() == gone {
		return nil
	}
	r := &statestore.Record{Fields: make(statestore.Fields, len(fields.Val()))}
	for name, value := range fields.Val() {
		r.Fields[name] = []byte(value)
	}
	if ttl.Val() != none {
		r.TTL = max(ttl.Val(), time.Millisecond) // a remainder below 1 ms counts as 1 ms
	}
	return r
}

// GetField implements statestore.Store.
func (s *Store) GetField(ctx context.Context, key, field string) (value []byte, found bool, err error) {
	if err := s.CheckKey(key); err != nil {
		return nil, false, err
	}
	value, err = s.backend.Client().HGet(ctx, key, field).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, s.backend.Failure(ctx, "read a field", err)
	}
	return value, true, nil
}

// Put implements statestore.Store.
func (s *Store) Put(ctx context.Context, key string, r statestore.Record) error {
	if err := statestore.ValidateTTL(r.TTL); err != nil {
		return err
	}
	_, err := s.write(ctx, key, change{
		replace: true, ttl: strconv.FormatInt(statestore.Milliseconds(r.TTL), 10), fields: r.Fields,
	})
	return err
}

// Delete implements statestore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.write(ctx, key, change{replace: true})
	return err
}

// SetFields implements statestore.Store.
func (s *Store) SetFields(ctx context.Context, key string, fields statestore.Fields) error {
	_, err := s.write(ctx, key, change{fields: fields})
	return err
}

// CompareAndSet implements statestore.Store.
func (s *Store) CompareAndSet(ctx context.Context, key string, expected, fields statestore.Fields) (bool, error) {
	return s.write(ctx, key, change{expected: expected, fields: fields})
}

// An Event is an entry of a stream, in its field event.
type Event struct {
	Stream string        // its key, in the slot of the record
	Length int           // the number of entries that the stream keeps
	TTL    time.Duration // of the stream, from its last entry on
	AtMS   int64         // Unix time in ms; the id of the entry is not below
	Body   []byte
	// Log is the key of a tenant's log of events, and Change the event that it gets, as
	// lua/include/changes.lua reads it. "" for none.
	Log, Change string
}

// CompareAndPublish is CompareAndSet for a record with an index. If it writes, it adds e to its
// stream in the same step. After a crash in the middle e may be there without its write; a
// repeat then adds it again.
func (s *Store) CompareAndPublish(ctx context.Context, key string, expected, fields statestore.Fields, e Event) (bool, error) {
	return s.write(ctx, key, change{expected: expected, fields: fields, event: &e})
}

// Expire implements statestore.Store.
func (s *Store) Expire(ctx context.Context, key string, ttl time.Duration) error {
	if err := errors.Join(s.CheckKey(key), statestore.ValidateTTL(ttl)); err != nil {
		return err
	}
	forever := ttl == 0
	if forever {
		ttl = beforePersist
	}
	// With forever, a crash between the two commands leaves a record that expires in a year.
	found, err := s.backend.Client().Do(ctx, "PEXPIRE", key, statestore.Milliseconds(ttl)).Int()
	if err == nil && forever && found == 1 {
		err = s.backend.Client().Persist(ctx, key).Err()
	}
	return s.backend.Failure(ctx, "set a time-to-live", err)
}

// beforePersist is the time-to-live that a record gets before PERSIST removes it. On
// KVRocks, PERSIST fails for a key that expires at that moment and for a hash without
// fields. PEXPIRE replies 0 for both.
const beforePersist = 365 * 24 * time.Hour

// change is one call of the script that writes. A nil value in expected means that the field
// must be absent, in fields that it is removed.
type change struct {
	replace  bool   // removes fields that are not named
	ttl      string // ms, "0" for none, "" to keep it
	expected statestore.Fields
	fields   statestore.Fields
	event    *Event // nil: none
}

// write runs the script and reports whether the record was as expected; if not, it changed
// nothing. CodeInvalid for a malformed key, CodeBodyLimit.
func (s *Store) write(ctx context.Context, key string, c change) (bool, error) {
	if err := errors.Join(s.CheckKey(key), c.validate()); err != nil {
		return false, err
	}
	keys, index := []string{key}, Index{}
	if x, set := s.indexOf(key); set != "" {
		keys, index = append(keys, set), x
	}
	if c.event != nil {
		if len(keys) == 1 {
			return false, api.Errorf(api.CodeInternal, "a record without an index has no events: %q", key)
		}
		keys = append(keys, c.event.Stream)
		if c.event.Log != "" {
			keys = append(keys, c.event.Log)
		}
	}
	run := s.backend.Script
	if len(c.expected) > 0 {
		run = s.backend.ScriptOnce // a second try would find its own write
	}
	reply, err := run(ctx, scriptWrite, keys, c.args(index)...)
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

func (c change) validate() error {
	size := 0
	for _, fields := range []statestore.Fields{c.expected, c.fields} {
		for name, value := range fields {
			size += len(name) + len(value)
		}
	}
	if len(c.expected)+len(c.fields) > MaxFields || size > MaxBytes {
		return api.Errorf(api.CodeBodyLimit, "a write names at most %d fields, of %d bytes together", MaxFields, MaxBytes)
	}
	return nil
}

// args returns the ARGV of the script. For an expected state pending and new fields state and
// worker, with the index of tasks:
//
//	keep "" updated_at state 3 1 0 2 0
//	completed failed cancelled  state pending  state claimed worker w1
func (c change) args(x Index) []any {
	mode := "keep"
	if c.replace {
		mode = "replace"
	}
	present, absent := split(c.expected)
	set, removed := split(c.fields)
	args := []any{
		mode, c.ttl, x.Field, x.Except.Field,
		len(x.Except.Values), len(present) / 2, len(absent), len(set) / 2, len(removed),
	}
	for _, v := range x.Except.Values {
		args = append(args, v)
	}
	args = append(args, present...)
	args = append(args, absent...)
	args = append(args, set...)
	args = append(args, removed...)
	if e := c.event; e != nil {
		args = append(args, e.Length, statestore.Milliseconds(e.TTL), e.AtMS, e.Body)
		if e.Log != "" {
			args = append(args, e.Change)
		}
	}
	return args
}

// split returns the pairs of fields with a value and the names of those without.
func split(fields statestore.Fields) (pairs, names []any) {
	for name, value := range fields {
		if value == nil {
			names = append(names, name)
		} else {
			pairs = append(pairs, name, value)
		}
	}
	return pairs, names
}

// indexOf returns the index of the records whose keys begin with text, and the key of its
// set, which is "" if no index or no single set has them.
func (s *Store) indexOf(text string) (x Index, set string) {
	for _, x := range s.indexes {
		if strings.HasPrefix(text, x.Prefix) {
			return x, x.Key(text)
		}
	}
	return Index{}, ""
}
