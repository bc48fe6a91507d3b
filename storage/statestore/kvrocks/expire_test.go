package kvrocks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/kvrocks"
	"github.com/codesous/sous/storage/statestore/statestoretest"
	"github.com/codesous/sous/storage/storagetest"
)

// expireCommands is more than a script executes.
const expireCommands = 20

// TestRecordsMayExpireWithinScripts lets a record expire before each command of the
// scripts, as the clock of KVRocks does. No write fails; it is made on the record, or
// as if there had been none, and the index agrees.
func TestRecordsMayExpireWithinScripts(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			for k := 1; k <= expireCommands; k++ {
				cfg.ScriptPrelude = storagetest.ExpireBefore(k)
				expiring := kvrocks.New(storagetest.Open(t, cfg), indexes(statestoretest.HistoryException())...)
				for name, op := range cutOperations() {
					if op.before != nil && name != "repair" {
						expireOnce(newIndexed(t, whole), name, k, op, expiring)
					}
				}
				claimExpiring(newIndexed(t, whole), k, expiring)
			}
		})
	}
}

func expireOnce(x *indexed, name string, k int, op cutOperation, expiring *kvrocks.Store) {
	x.Helper()
	key := x.key("a")
	read := func(key string) statestore.Fields {
		x.Helper()
		r, err := x.full.Get(x.Context(), key)
		if err != nil {
			x.Fatalf("Get(%s): %v", key, err)
		}
		if r == nil {
			return nil
		}
		return r.Fields
	}
	if err := x.with.Put(x.Context(), key, statestore.Record{Fields: op.before, TTL: 30 * time.Second}); err != nil {
		x.Fatalf("Put(%s): %v", key, err)
	}
	if err := op.call(x, expiring, key); err != nil {
		if name == "compare and set" && read(key) == nil {
			return // it found none
		}
		x.Errorf("%s, expired before command %d: %v", name, k, err)
	}
	var fresh statestore.Fields // what the call makes of no record
	if other := x.key("fresh"); name != "compare and set" {
		if err := op.call(x, x.with, other); err != nil {
			x.Fatalf("%s without a record: %v", name, err)
		}
		fresh = read(other)
		if err := x.with.Delete(x.Context(), other); err != nil {
			x.Fatalf("Delete(%s): %v", other, err)
		}
	}
	got := read(key)
	// A change keeps the time-to-live: the record may expire right after it.
	expired := got == nil && !strings.HasPrefix(name, "put ")
	if !expired && !cmp.Equal(got, op.after) && !cmp.Equal(got, fresh) {
		x.Errorf("%s, expired before command %d: got %q, want %q or %q", name, k, got, op.after, fresh)
	}
	x.agree(name, filter(statestore.Less, "15"), filter(statestore.Less, "1000000"), filter(statestore.Greater, "0"))
}

// claimExpiring compares and sets a record that has a time-to-live, which it keeps: a
// claim that was won is one of the record that was there.
func claimExpiring(x *indexed, k int, expiring *kvrocks.Store) {
	x.Helper()
	key := x.key("claimed")
	held := statestore.Record{Fields: fields("n", "10", "state", "pending", "old", "x"), TTL: 30 * time.Second}
	if err := x.with.Put(x.Context(), key, held); err != nil {
		x.Fatalf("Put(%s): %v", key, err)
	}
	won, err := expiring.CompareAndSet(x.Context(), key, statestore.Fields{"state": []byte("pending"), "worker": nil}, fields("state", "claimed"))
	if err != nil {
		x.Errorf("expired before command %d: %v", k, err)
	}
	r, err := x.full.Get(x.Context(), key)
	if err != nil {
		x.Fatalf("Get(%s): %v", key, err)
	}
	switch want := fields("n", "10", "state", "claimed", "old", "x"); {
	case !won && r != nil:
		x.Errorf("expired before command %d: got no claim and fields %q, want a claim or no record", k, r.Fields)
	case won && (r == nil || !cmp.Equal(want, r.Fields) || r.TTL <= 0 || r.TTL > 31*time.Second):
		x.Errorf("expired before command %d: got %+v, want %q with a time-to-live", k, r, want)
	}
}

// TestExpireOfWhatIsGone: a record without fields, of which KVRocks keeps the
// time-to-live, is none.
func TestExpireOfWhatIsGone(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		x := newIndexed(t, s)
		for name, change := range map[string]func(key string) error{
			"persist": func(key string) error { return x.with.Expire(t.Context(), key, 0) },
			"expire":  func(key string) error { return x.with.Expire(t.Context(), key, time.Hour) },
			"put": func(key string) error {
				return x.with.Put(t.Context(), key, statestore.Record{Fields: fields("b", "2")})
			},
		} {
			key := x.key(name)
			if err := x.with.Put(t.Context(), key, statestore.Record{Fields: fields("a", "1"), TTL: time.Hour}); err != nil {
				t.Fatalf("Put: %v", err)
			}
			if err := x.with.SetFields(t.Context(), key, statestore.Fields{"a": nil}); err != nil {
				t.Fatalf("SetFields: %v", err)
			}
			if err := change(key); err != nil {
				t.Errorf("%s: got error %v, want success", name, err)
			}
			if r, err := x.full.Get(t.Context(), key); err != nil || (r != nil) != (name == "put") || r != nil && r.TTL != 0 {
				t.Errorf("%s: got %+v and error %v, want a record only after put, without a time to live", name, r, err)
			}
		}
	})
}
