package kvrocks_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/kvrocks"
	"github.com/codesous/sous/storage/statestore/statestoretest"
	"github.com/codesous/sous/storage/storagetest"
)

// cutOperation is a call that runs one script, on a record made before.
type cutOperation struct {
	before statestore.Fields // nil: no record
	call   func(x *indexed, s *kvrocks.Store, key string) error
	after  statestore.Fields // nil: no record
}

func put(after statestore.Fields, ttl time.Duration) func(*indexed, *kvrocks.Store, string) error {
	return func(x *indexed, s *kvrocks.Store, key string) error {
		return s.Put(x.Context(), key, statestore.Record{Fields: after, TTL: ttl})
	}
}

func set(fields statestore.Fields) func(*indexed, *kvrocks.Store, string) error {
	return func(x *indexed, s *kvrocks.Store, key string) error { return s.SetFields(x.Context(), key, fields) }
}

func cutOperations() map[string]cutOperation {
	open, moved := fields("n", "10", "state", "pending", "old", "x"), fields("n", "20", "state", "running")
	ended := fields("n", "30", "state", "completed")
	claim := fields("n", "20", "state", "claimed", "worker", "w1")
	claim["old"] = nil
	return map[string]cutOperation{
		"put of a new key": {before: nil, call: put(open, time.Hour), after: open},
		"put higher":       {before: open, call: put(moved, 0), after: moved},
		"put lower":        {before: moved, call: put(open, time.Hour), after: open},
		"put as ended":     {before: open, call: put(ended, time.Hour), after: ended},
		"put as open":      {before: ended, call: put(open, 0), after: open},
		"set of a new key": {before: nil, call: set(open), after: open},
		"set higher":       {before: open, call: set(fields("n", "99999")), after: fields("n", "99999", "state", "pending", "old", "x")},
		"set lower":        {before: open, call: set(fields("n", "-1")), after: fields("n", "-1", "state", "pending", "old", "x")},
		"set as text":      {before: open, call: set(fields("n", "text")), after: fields("n", "text", "state", "pending", "old", "x")},
		"end":              {before: open, call: set(ended), after: fields("n", "30", "state", "completed", "old", "x")},
		"remove fields":    {before: open, call: set(statestore.Fields{"old": nil, "state": nil, "m": []byte("1")}), after: fields("n", "10", "m", "1")},
		"remove its n":     {before: open, call: set(statestore.Fields{"n": nil}), after: fields("state", "pending", "old", "x")},
		"remove all":       {before: open, call: set(statestore.Fields{"n": nil, "state": nil, "old": nil}), after: nil},
		"delete":           {before: open, call: func(x *indexed, s *kvrocks.Store, key string) error { return s.Delete(x.Context(), key) }, after: nil},
		"compare and set":  {before: open, call: cutClaim(claim), after: fields("n", "20", "state", "claimed", "worker", "w1")},
		"repair":           {before: open, call: cutRepair, after: open},
	}
}

// cutClaim tells the worker who finds its own name that the claim is its own, and
// completes it.
func cutClaim(claim statestore.Fields) func(*indexed, *kvrocks.Store, string) error {
	return func(x *indexed, s *kvrocks.Store, key string) error {
		won, err := s.CompareAndSet(x.Context(), key, fields("state", "pending"), claim)
		if err != nil || won {
			return err
		}
		if worker, _, err := s.GetField(x.Context(), key, "worker"); err != nil || string(worker) != "w1" {
			return errors.New("neither claimed nor free")
		}
		return s.SetFields(x.Context(), key, claim)
	}
}

// cutRepair scans an index that has the record too low.
func cutRepair(x *indexed, s *kvrocks.Store, key string) error {
	if err := x.backend.Client().ZAdd(x.Context(), x.set, redis.Z{Score: 1, Member: key}, redis.Z{Score: 2, Member: key + "gone"}).Err(); err != nil {
		return err
	}
	for _, err := range s.Scan(x.Context(), x.root+":", filter(statestore.Less, "1000")) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestScriptsMayBeCutAfterAnyWrite ends the scripts after each of their writes, as a
// crash of KVRocks does: the index hides nothing from a scan for low values, a record
// that was there is not lost, and the same call made again completes it.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.AllBackends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			for k, open := 0, len(cutOperations()); open > 0; k++ {
				if k > 10 {
					t.Fatal("more writes than the scripts should make")
				}
				cfg.ScriptPrelude = storagetest.CutAfter(k)
				cut := kvrocks.New(storagetest.Open(t, cfg), indexes(statestoretest.HistoryException())...)
				open = 0
				for name, op := range cutOperations() {
					if !cutOnce(newIndexed(t, whole), name, op, cut) {
						open++
					} else if k == 0 {
						t.Errorf("%s: got no writes, want at least 1", name)
					}
				}
			}
		})
	}
}

// cutOnce reports whether the call went through uncut.
func cutOnce(x *indexed, name string, op cutOperation, cut *kvrocks.Store) (uncut bool) {
	x.Helper()
	key := x.key("a")
	if op.before != nil {
		if err := x.with.Put(x.Context(), key, statestore.Record{Fields: op.before}); err != nil {
			x.Fatalf("Put(%s): %v", key, err)
		}
	}
	err := op.call(x, cut, key)
	uncut = err == nil
	if !uncut {
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
			x.Fatalf("%s: got error %v, want the CUT of the prelude", name, err)
		}
		if r, err := x.full.Get(x.Context(), key); err != nil || r == nil && op.before != nil && op.after != nil {
			x.Errorf("%s, cut: got record %+v and error %v, want one", name, r, err)
		}
		x.agree(name+", cut", filter(statestore.Less, "15"), filter(statestore.Less, "1000000"))
		if err := op.call(x, x.with, key); err != nil {
			x.Errorf("%s, again after a cut: %v", name, err)
		}
	}
	r, err := x.full.Get(x.Context(), key)
	if err != nil {
		x.Fatalf("Get(%s): %v", key, err)
	}
	var got statestore.Fields
	if r != nil {
		got = r.Fields
	}
	if diff := cmp.Diff(op.after, got); diff != "" {
		x.Errorf("%s: fields differ (-want +got):\n%s", name, diff)
	}
	x.agree(name, filter(statestore.Less, "15"), filter(statestore.Less, "1000000"), filter(statestore.Greater, "0"))
	return uncut
}
