package kvrocks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/kvrocks"
	"github.com/codesous/sous/storage/statestore/statestoretest"
	"github.com/codesous/sous/storage/storagetest"
)

// indexed is a root with two views of its records: one by the index, one by SCAN.
type indexed struct {
	*testing.T
	backend    *storage.Store
	root, set  string
	with, full *kvrocks.Store
}

func newIndexed(t *testing.T, s *storage.Store) *indexed {
	t.Helper()
	root := statestoretest.Root(t)
	return &indexed{
		T: t, backend: s, root: root, set: indexOf(root),
		with: kvrocks.New(s, indexes(statestoretest.HistoryException())...), full: kvrocks.New(s),
	}
}

func (x *indexed) key(rest string) string { return x.root + ":" + rest }

func (x *indexed) put(rest string, pairs ...string) {
	x.Helper()
	if err := x.with.Put(x.Context(), x.key(rest), statestore.Record{Fields: fields(pairs...)}); err != nil {
		x.Fatalf("Put(%s): %v", rest, err)
	}
}

// fields makes fields of texts, given by turns with their names.
func fields(pairs ...string) statestore.Fields {
	made := statestore.Fields{}
	for i := 0; i < len(pairs); i += 2 {
		made[pairs[i]] = []byte(pairs[i+1])
	}
	return made
}

func filter(op statestore.Op, value string) *statestore.Filter {
	return &statestore.Filter{Field: "n", Op: op, Value: []byte(value), Except: statestoretest.HistoryException()}
}

func (x *indexed) scan(s statestore.Store, prefix string, f *statestore.Filter) []string {
	x.Helper()
	keys := []string{}
	for e, err := range s.Scan(x.Context(), prefix, f) {
		if err != nil {
			x.Fatalf("Scan(%s): %v", prefix, err)
		}
		keys = append(keys, strings.TrimPrefix(e.Key, x.root+":"))
	}
	return keys
}

// agree checks that both views show the same.
func (x *indexed) agree(what string, filters ...*statestore.Filter) {
	x.Helper()
	for _, f := range filters {
		if diff := cmp.Diff(x.scan(x.full, x.root+":", f), x.scan(x.with, x.root+":", f)); diff != "" {
			x.Errorf("%s: keys by n %s %q differ (-want +got):\n%s", what, f.Op, f.Value, diff)
		}
	}
}

// members are the entries of the index, less the root.
func (x *indexed) members() map[string]float64 {
	x.Helper()
	entries, err := x.backend.Client().ZRangeWithScores(x.Context(), x.set, 0, -1).Result()
	if err != nil {
		x.Fatalf("ZRangeWithScores(%s): %v", x.set, err)
	}
	members := map[string]float64{}
	for _, z := range entries {
		text, _ := z.Member.(string)
		members[strings.TrimPrefix(text, x.root+":")] = z.Score
	}
	return members
}

// TestIndexFollowsAnyHistory: the index has each record that it should have, where it
// should have it, and no other, without a repair.
func TestIndexFollowsAnyHistory(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		x, seed := newIndexed(t, s), rand.Uint64()
		t.Logf("seed %d", seed)
		statestoretest.Histories(t, x.with, x.root, seed, func(model map[string]statestore.Fields) {
			want := map[string]float64{}
			for key, record := range model {
				value, ok := record["n"]
				if !ok || statestoretest.HistoryException().Holds(record) {
					continue
				}
				want[strings.TrimPrefix(key, x.root+":")] = 1e19
				if n, ok := statestore.Number(value); ok {
					want[strings.TrimPrefix(key, x.root+":")] = float64(n)
				}
			}
			if diff := cmp.Diff(want, x.members()); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
			x.agree("after a history", statestoretest.HistoryFilters()...)
		})
		if n := x.with.Repaired(); n != 0 {
			t.Errorf("got %d entries repaired, want 0", n)
		}
	})
}

// TestIndexServes only scans to which it has the whole answer: an emptied index shows.
func TestIndexServes(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		x := newIndexed(t, s)
		x.put("a:1", "n", "1", "state", "pending")
		x.put("a:2", "n", "2", "state", "pending")
		if err := s.Client().Del(t.Context(), x.set).Err(); err != nil {
			t.Fatalf("Err: %v", err)
		}
		other := filter(statestore.Less, "5")
		other.Field = "state"
		all, fewer := filter(statestore.Less, "5"), filter(statestore.Less, "5")
		all.Except = statestore.Exception{}
		fewer.Except.Values = fewer.Except.Values[:1]
		elsewhere := filter(statestore.Less, "5")
		elsewhere.Except.Field = "other"
		turned := filter(statestore.Less, "5")
		turned.Except.Values = []string{"failed", "completed", "completed"}
		for name, tt := range map[string]struct {
			prefix string
			f      *statestore.Filter
			serves bool
		}{
			"the root":               {x.root + ":", filter(statestore.Less, "5"), true},
			"below the root":         {x.root + ":a:", filter(statestore.Greater, "0"), true},
			"the exception turned":   {x.root + ":", turned, true},
			"the root's middle":      {x.root[:len(x.root)-1], filter(statestore.Less, "5"), false},
			"no filter":              {x.root + ":", nil, false},
			"another field":          {x.root + ":", other, false},
			"no exception":           {x.root + ":", all, false},
			"another field's":        {x.root + ":", elsewhere, false},
			"another exception":      {x.root + ":", fewer, false},
			"above the index itself": {"gbe:state:", filter(statestore.Less, "5"), false},
		} {
			if name == "another field" {
				tt.f.Op, tt.f.Value = statestore.Greater, []byte("a")
			}
			found := x.scan(x.with, tt.prefix, tt.f)
			if served := len(found) == 0; served != tt.serves {
				t.Errorf("%s: got the scan served by the index %v, which returned %v, want %v", name, served, found, tt.serves)
			}
		}
	})
}

// TestScanRepairsTheIndex: entries without a record, with another's score, of records
// that are to be left out, of other types and of other places go, or move.
func TestScanRepairsTheIndex(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		x := newIndexed(t, s)
		x.put("right", "n", "10", "state", "pending")
		x.put("low", "n", "20", "state", "pending")
		x.put("high", "n", "30", "state", "pending")
		x.put("ended", "n", "40", "state", "completed")
		x.put("fieldless", "m", "50")
		if err := s.Client().Set(t.Context(), x.key("text"), "x", 0).Err(); err != nil {
			t.Fatalf("Err: %v", err)
		}
		t.Cleanup(func() { _ = s.Client().Del(context.Background(), x.key("text")).Err() })
		wrong := []redis.Z{
			{Score: 5, Member: x.key("low")}, {Score: 35, Member: x.key("high")}, {Score: 40, Member: x.key("ended")},
			{Score: 50, Member: x.key("fieldless")}, {Score: 60, Member: x.key("text")}, {Score: 70, Member: x.key("none")},
			{Score: 80, Member: "elsewhere"}, {Score: 90, Member: "gbe:state:{other}:a"},
		}
		if err := s.Client().ZAdd(t.Context(), x.set, wrong...).Err(); err != nil {
			t.Fatalf("Err: %v", err)
		}
		x.agree("to be repaired", filter(statestore.Less, "1000"))
		x.agree("repaired", filter(statestore.Less, "1000"), filter(statestore.Greater, "15"))
		if diff := cmp.Diff(map[string]float64{"right": 10, "low": 20, "high": 30}, x.members()); diff != "" {
			t.Errorf("difference (-want +got):\n%s", diff)
		}
		if n := x.with.Repaired(); n != int64(len(wrong)) {
			t.Errorf("%d repaired, want %d", n, len(wrong))
		}
	})
}

// TestExpiredRecordsLeaveTheIndex with the scan that meets them.
func TestExpiredRecordsLeaveTheIndex(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		x := newIndexed(t, s)
		if err := x.with.Put(t.Context(), x.key("a"), statestore.Record{Fields: fields("n", "1"), TTL: 20 * time.Millisecond}); err != nil {
			t.Fatalf("Put: %v", err)
		}
		for deadline := time.Now().Add(20 * time.Second); len(x.scan(x.with, x.root+":", filter(statestore.Less, "5"))) > 0; {
			if time.Now().After(deadline) {
				t.Fatal("it stays")
			}
			time.Sleep(2 * time.Millisecond)
		}
		if members := x.members(); len(members) > 0 {
			t.Errorf("got index members %v, want none", members)
		}
	})
}

// TestOtherTypesArePassedOver by scans, and refused by what names them.
func TestOtherTypesArePassedOver(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		x, rdb := newIndexed(t, s), s.Client()
		x.put("a", "n", "1")
		err := errors.Join(
			rdb.Set(t.Context(), x.key("string"), "n", 0).Err(), rdb.SAdd(t.Context(), x.key("set"), "n").Err(),
			rdb.RPush(t.Context(), x.key("list"), "n").Err(), rdb.ZAdd(t.Context(), x.key("sorted"), redis.Z{Member: "n"}).Err(),
		)
		if err != nil {
			t.Fatalf("errors.Join: %v", err)
		}
		if diff := cmp.Diff([]string{"a"}, x.scan(x.full, x.root+":", nil)); diff != "" {
			t.Errorf("difference (-want +got):\n%s", diff)
		}
		if _, err := x.full.Get(t.Context(), x.key("string")); err == nil {
			t.Error("a string is read as a record")
		}
		if err := x.full.Delete(t.Context(), x.key("string")); err == nil || rdb.Exists(t.Context(), x.key("string")).Val() == 0 {
			t.Errorf("Delete of a string: got error %v, want one, and the string kept", err)
		}
	})
}
