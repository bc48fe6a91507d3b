// Package jetstream implements package statestore with a key-value bucket of NATS
// JetStream. A record is one document, changed by compare-and-swap on its revision. Its
// time-to-live is in the document, since a bucket has only one for all entries. An expired
// record reads as absent and is removed by the next call that reads it.
//
// It is for programs that have NATS and no Redis; the platform itself uses package kvrocks.
// There is no index: a scan reads every record below its prefix. Two writers of one record
// change it one after the other:
//
//	A reads revision 7            B reads revision 7
//	A updates it from 7: now 8    B updates it from 7: refused
//	                              B waits, reads revision 8, and updates it: now 9
//
// Each write is one message, so no crash leaves half of one. After CodeStoreUnavailable the
// message may have been stored.
//
// Files: jetstream.go has the calls for one record, document.go the layout of a record, key.go
// the escape of keys, scan.go the scan, and errors.go timeouts and errors.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage/statestore"
)

// Config configures a Store. Bucket is required; other zero values mean the documented
// defaults.
type Config struct {
	Bucket string
	// Replicas and Storage configure a bucket that New creates; an existing one keeps its
	// settings. Default: one replica, in files.
	Replicas int
	Storage  natsjs.StorageType
	// Timeout bounds one request, and the wait for a scan's next record. Default: 3 s.
	Timeout time.Duration
	// Clock is the clock for expiry. The clocks of all users of a bucket should agree.
	// Default: time.Now.
	Clock func() time.Time
}

const (
	defaultTimeout = 3 * time.Second
	// markerTTL is the lifetime of the delete marker of a record in the bucket.
	markerTTL = time.Minute
	// A change that conflicts with another writer is repeated after a random part of a
	// pause that grows from pauseMin to pauseMax.
	maxTries = 64
	// The tries together wait for less than 3.2 s.
	pauseMin = time.Millisecond
	pauseMax = 50 * time.Millisecond
)

// Store implements statestore.Store. It is safe for concurrent use, by any number of processes
// with the same bucket.
type Store struct {
	statestore.Lifecycle
	js      natsjs.JetStream
	kv      natsjs.KeyValue
	timeout time.Duration
	clock   func() time.Time
}

var _ statestore.Store = (*Store)(nil)

// New opens the bucket, and creates it if it does not exist, over a connection that the caller
// closes. The server must be 2.11 or later, which lets the markers of deleted entries expire.
// A bucket whose entries expire by themselves, or whose markers do not, is refused
// (CodeInvalid): the first would lose records, the second would grow without bound.
// CodeStoreUnavailable. ctx applies to New only.
func New(ctx context.Context, js natsjs.JetStream, cfg Config) (*Store, error) {
	s := &Store{js: js, timeout: cfg.Timeout, clock: cfg.Clock}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	var status natsjs.KeyValueStatus
	err := s.request(ctx, "open the bucket", func(ctx context.Context) (err error) {
		s.kv, err = openBucket(ctx, js, cfg)
		if err == nil {
			status, err = s.kv.Status(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if status.TTL() != 0 || status.LimitMarkerTTL() == 0 {
		return nil, api.Errorf(api.CodeInvalid, "the bucket %s must have no time-to-live, and one for its markers", cfg.Bucket)
	}
	return s, nil
}

// openBucket opens the bucket or creates it. Two clients may do so at the same time.
func openBucket(ctx context.Context, js natsjs.JetStream, cfg Config) (natsjs.KeyValue, error) {
	kv, err := js.KeyValue(ctx, cfg.Bucket)
	if !errors.Is(err, natsjs.ErrBucketNotFound) {
		return kv, err
	}
	kv, err = js.CreateKeyValue(ctx, natsjs.KeyValueConfig{
		Bucket: cfg.Bucket, Replicas: cfg.Replicas, Storage: cfg.Storage, LimitMarkerTTL: markerTTL,
	})
	if errors.Is(err, natsjs.ErrBucketExists) { // another client created it meanwhile, with other settings
		return js.KeyValue(ctx, cfg.Bucket)
	}
	return kv, err
}

// Ping implements statestore.Store.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.CheckOpen(); err != nil {
		return err
	}
	return s.request(ctx, "ping", func(ctx context.Context) error {
		_, err := s.kv.Status(ctx)
		return err
	})
}

// Get implements statestore.Store.
func (s *Store) Get(ctx context.Context, key string) (*statestore.Record, error) {
	if err := s.CheckKey(key); err != nil {
		return nil, err
	}
	held, err := s.read(ctx, key)
	if err != nil || len(held.fields) == 0 {
		return nil, err
	}
	r := held.record(s.clock())
	return &r, nil
}

// GetField implements statestore.Store.
func (s *Store) GetField(ctx context.Context, key, field string) (value []byte, found bool, err error) {
	if err := s.CheckKey(key); err != nil {
		return nil, false, err
	}
	held, err := s.read(ctx, key)
	if err != nil {
		return nil, false, err
	}
	value, found = held.fields[field]
	return value, found, nil
}

// Put implements statestore.Store.
func (s *Store) Put(ctx context.Context, key string, r statestore.Record) error {
	if err := errors.Join(s.CheckKey(key), statestore.ValidateTTL(r.TTL)); err != nil {
		return err
	}
	d := document{fields: statestore.Fields{}}
	d.set(r.Fields)
	d.expire(s.clock(), r.TTL)
	if len(d.fields) == 0 {
		return s.Delete(ctx, key)
	}
	return s.request(ctx, "write a record", func(ctx context.Context) error {
		_, err := s.kv.Put(ctx, escape(key), d.encode())
		return err
	})
}

// Delete implements statestore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.CheckKey(key); err != nil {
		return err
	}
	return s.request(ctx, "delete a record", func(ctx context.Context) error {
		_, err := s.kv.Get(ctx, escape(key))
		if err == nil {
			err = s.kv.Purge(ctx, escape(key), natsjs.PurgeTTL(markerTTL))
		}
		if errors.Is(err, natsjs.ErrKeyNotFound) {
			return nil // it needs no delete marker
		}
		return err
	})
}

// SetFields implements statestore.Store.
func (s *Store) SetFields(ctx context.Context, key string, fields statestore.Fields) error {
	_, err := s.CompareAndSet(ctx, key, nil, fields)
	return err
}

// CompareAndSet implements statestore.Store.
func (s *Store) CompareAndSet(ctx context.Context, key string, expected, fields statestore.Fields) (bool, error) {
	return s.change(ctx, key, func(d *document) (was, changed bool) {
		if !d.holds(expected) {
			return false, false
		}
		d.set(fields)
		return true, len(fields) > 0
	})
}

// Expire implements statestore.Store.
func (s *Store) Expire(ctx context.Context, key string, ttl time.Duration) error {
	if err := statestore.ValidateTTL(ttl); err != nil {
		return err
	}
	_, err := s.change(ctx, key, func(d *document) (was, changed bool) {
		before := d.expiresAtMS
		d.expire(s.clock(), ttl)
		return true, len(d.fields) > 0 && d.expiresAtMS != before
	})
	return err
}

// read returns the document of key. A missing or expired document has no fields.
func (s *Store) read(ctx context.Context, key string) (d document, err error) {
	var entry natsjs.KeyValueEntry
	err = s.request(ctx, "read a record", func(ctx context.Context) (err error) {
		entry, err = s.kv.Get(ctx, escape(key))
		if errors.Is(err, natsjs.ErrKeyNotFound) {
			return nil
		}
		return err
	})
	if err != nil || entry == nil {
		return document{fields: statestore.Fields{}}, err
	}
	d, err = decode(entry.Value())
	if err != nil {
		return d, api.Wrap(api.CodeInternal, err, "a record of the bucket cannot be read")
	}
	d.revision = entry.Revision()
	if d.expired(s.clock()) {
		s.remove(ctx, entry)
		return document{fields: statestore.Fields{}}, nil
	}
	return d, nil
}

// remove removes an expired entry unless it has changed. After a failure the next reader
// tries it again.
func (s *Store) remove(ctx context.Context, entry natsjs.KeyValueEntry) {
	_ = s.request(ctx, "remove a record", func(ctx context.Context) error {
		return s.kv.Purge(ctx, entry.Key(), natsjs.LastRevision(entry.Revision()), natsjs.PurgeTTL(markerTTL))
	})
}

// change reads a record, changes it by edit and writes it, and starts again if another
// writer changed the record meanwhile, up to maxTries times. edit reports in was whether the
// record was as its caller expects, and in changed whether there is something to write; it is
// called again with each new document. change returns was. CodeStoreConflict after the last
// try.
func (s *Store) change(ctx context.Context, key string, edit func(d *document) (was, changed bool)) (bool, error) {
	if err := s.CheckKey(key); err != nil {
		return false, err
	}
	pause := pauseMin
	for range maxTries {
		d, err := s.read(ctx, key)
		if err != nil {
			return false, err
		}
		was, changed := edit(&d)
		if !changed {
			return was, nil
		}
		err = s.request(ctx, "write a record", func(ctx context.Context) error { return s.write(ctx, key, d) })
		if !conflict(err) {
			return was && err == nil, err
		}
		if err := sleep.For(ctx, rand.N(pause)); err != nil {
			return false, fmt.Errorf("write a record: %w", err)
		}
		pause = min(2*pause, pauseMax)
	}
	return false, api.Errorf(api.CodeStoreConflict, "others changed the record %q %d times meanwhile", key, maxTries)
}

// write stores d if the record still has its revision: it creates, updates or deletes the
// entry. Nothing is written for a document without fields that was not stored.
func (s *Store) write(ctx context.Context, key string, d document) (err error) {
	switch {
	case len(d.fields) > 0 && d.revision == 0:
		_, err = s.kv.Create(ctx, escape(key), d.encode())
	case len(d.fields) > 0:
		_, err = s.kv.Update(ctx, escape(key), d.encode(), d.revision)
	case d.revision > 0:
		err = s.kv.Purge(ctx, escape(key), natsjs.LastRevision(d.revision), natsjs.PurgeTTL(markerTTL))
	}
	return err
}
