// Package statestoretest is the test suite for implementations of package statestore. An
// implementation calls Run from a test of its own; each test of the suite is a method of
// fixture, on keys below a random root, so that all of them share one server.
//
// Files: records.go tests reads and writes of a record, atomic.go compare-and-set and
// concurrent writers, times.go expiry, scans.go scans, edges.go malformed input, cancelled
// contexts and closed stores, and history.go compares random calls with a model.
package statestoretest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/storage/statestore"
)

// Config describes an implementation to the suite.
type Config struct {
	// Open returns a store for one test. It may share its records with other tests.
	Open func(t *testing.T) statestore.Store
	// Pass advances the clock of the stores of Open. Default: it sleeps.
	Pass func(d time.Duration)
	// TooLarge is a number of bytes of one value that exceeds the limit of a record, 0
	// without a limit.
	TooLarge int
}

// Run runs the suite, in parallel.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	for name, test := range map[string]func(*fixture){
		"put and get":           (*fixture).putAndGet,
		"put replaces":          (*fixture).putReplaces,
		"values":                (*fixture).values,
		"delete":                (*fixture).deletes,
		"fields":                (*fixture).setFields,
		"removed fields":        (*fixture).removedFields,
		"keys apart":            (*fixture).keysApart,
		"time to live":          (*fixture).timeToLive,
		"time to live, kept":    (*fixture).timeToLiveKept,
		"expire":                (*fixture).expire,
		"expired records":       (*fixture).expiredRecords,
		"compare":               (*fixture).compare,
		"compare absence":       (*fixture).compareAbsence,
		"compare and remove":    (*fixture).compareAndRemove,
		"one claim wins":        (*fixture).oneClaimWins,
		"no increment is lost":  (*fixture).noIncrementIsLost,
		"no field is lost":      (*fixture).noFieldIsLost,
		"scan":                  (*fixture).scanAll,
		"scan filters":          (*fixture).scanFilters,
		"scan exceptions":       (*fixture).scanExceptions,
		"scan bounds":           (*fixture).scanBounds,
		"scan prefixes":         (*fixture).scanPrefixes,
		"scan ends early":       (*fixture).scanEndsEarly,
		"scan while it changes": (*fixture).scanWhileItChanges,
		"scan of thousands":     (*fixture).scanOfThousands,
		"history":               (*fixture).history,
		"cancelled":             (*fixture).cancelled,
		"malformed":             (*fixture).malformed,
		"odd keys":              (*fixture).oddKeys,
		"too large":             (*fixture).tooLarge,
		"ping and close":        (*fixture).pingAndClose,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&fixture{T: t, cfg: cfg, store: cfg.Open(t), root: Root(t)})
		})
	}
}

// Root returns the beginning of keys that no other test uses. On a cluster they share a
// slot.
func Root(t testing.TB) string {
	t.Helper()
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatalf("Read: %v", err)
	}
	return "gbe:state:{test_" + hex.EncodeToString(b[:]) + "}"
}

// fixture is a test of the suite. Its methods fail the test if the store returns an
// error.
type fixture struct {
	*testing.T
	cfg   Config
	store statestore.Store
	root  string
}

// key returns a key below the test's root.
func (f *fixture) key(rest string) string { return f.root + ":" + rest }

// fields returns fields from alternating names and values.
func fields(pairs ...string) statestore.Fields {
	made := statestore.Fields{}
	for i := 0; i < len(pairs); i += 2 {
		made[pairs[i]] = []byte(pairs[i+1])
	}
	return made
}

// put stores a record with the given names and values.
func (f *fixture) put(key string, ttl time.Duration, pairs ...string) {
	f.Helper()
	if err := f.store.Put(f.Context(), key, statestore.Record{Fields: fields(pairs...), TTL: ttl}); err != nil {
		f.Fatalf("Put: %v", err)
	}
}

// set writes fields; a nil value removes one.
func (f *fixture) set(key string, fields statestore.Fields) {
	f.Helper()
	if err := f.store.SetFields(f.Context(), key, fields); err != nil {
		f.Fatalf("SetFields: %v", err)
	}
}

// swap is CompareAndSet, and returns its result.
func (f *fixture) swap(key string, expected, fields statestore.Fields) bool {
	f.Helper()
	was, err := f.store.CompareAndSet(f.Context(), key, expected, fields)
	if err != nil {
		f.Fatalf("CompareAndSet: %v", err)
	}
	return was
}

// get returns a record, nil for none.
func (f *fixture) get(key string) *statestore.Record {
	f.Helper()
	r, err := f.store.Get(f.Context(), key)
	if err != nil {
		f.Fatalf("Get: %v", err)
	}
	return r
}

// wants checks a record's fields; none means that there is no record.
func (f *fixture) wants(key string, pairs ...string) {
	f.Helper()
	f.wantsFields(key, fields(pairs...))
}

func (f *fixture) wantsFields(key string, want statestore.Fields) {
	f.Helper()
	got := statestore.Fields{}
	if r := f.get(key); r != nil {
		got = r.Fields
		if len(got) == 0 {
			f.Errorf("%s: got a record without fields, want some", key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("fields of %s (-want +got):\n%s", key, diff)
	}
}

// wantsTTL checks that a record has at most want to live, and at most a minute less; 0 is a
// record that does not expire.
func (f *fixture) wantsTTL(key string, want time.Duration) {
	f.Helper()
	r := f.get(key)
	if r == nil {
		f.Fatalf("%s: got no record, want one", key)
	}
	if r.TTL > want || r.TTL < want-time.Minute || (want > 0) != (r.TTL > 0) {
		f.Errorf("%s: %s to live, want %s", key, r.TTL, want)
	}
}

// scan returns the keys of a scan, less the test's root.
func (f *fixture) scan(prefix string, filter *statestore.Filter) []string {
	f.Helper()
	keys := []string{}
	for e, err := range f.store.Scan(f.Context(), prefix, filter) {
		if err != nil {
			f.Fatalf("Scan of %s: got error %v, want its keys", prefix, err)
		}
		keys = append(keys, e.Key[len(f.root)+1:])
	}
	return keys
}

// wantsScan checks the keys that a scan of all of the test's records returns, in order.
func (f *fixture) wantsScan(filter *statestore.Filter, want ...string) {
	f.Helper()
	if diff := cmp.Diff(append([]string{}, want...), f.scan(f.root+":", filter)); diff != "" {
		f.Errorf("scan by %s (-want +got):\n%s", describe(filter), diff)
	}
}

func describe(filter *statestore.Filter) string {
	if filter == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s %s %q except %v", filter.Field, filter.Op, filter.Value, filter.Except)
}

// pass lets d go by for the stores: it sets their clock forward. Where the suite has no such
// clock it returns, and await waits in real time.
func (f *fixture) pass(d time.Duration) {
	if f.cfg.Pass != nil {
		f.cfg.Pass(d)
	}
}

// await calls done until it returns true, for 20 s at most.
func (f *fixture) await(what string, done func() bool) {
	f.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			f.Fatalf("waited 20 s, want in that time: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
