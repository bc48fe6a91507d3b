package statestoretest

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/codesous/sous/storage/statestore"
)

// putAndGet tests reads of a record and of a field, existing and missing.
func (f *fixture) putAndGet() {
	key := f.key("tasks:a")
	f.wants(key)
	f.put(key, 0, "state", "pending", "step", "1")
	f.wants(key, "state", "pending", "step", "1")
	f.wantsTTL(key, 0)
	if value, found, err := f.store.GetField(f.Context(), key, "state"); err != nil || !found || string(value) != "pending" {
		f.Errorf("GetField of state: got %q, %v and error %v, want the stored pending", value, found, err)
	}
	for _, missing := range []string{key, f.key("none")} {
		if value, found, err := f.store.GetField(f.Context(), missing, "worker"); err != nil || found || value != nil {
			f.Errorf("GetField of worker of %s: got %q, %v and error %v, want none", missing, value, found, err)
		}
	}
}

// putReplaces tests that Put removes the fields that it does not name, and that a record
// without fields does not exist.
func (f *fixture) putReplaces() {
	key := f.key("a")
	f.put(key, 0, "state", "running", "worker", "w1", "step", "3")
	f.put(key, 0, "state", "pending", "error", "lost")
	f.wants(key, "state", "pending", "error", "lost")

	err := f.store.Put(f.Context(), key, statestore.Record{Fields: statestore.Fields{"state": []byte("x"), "error": nil}})
	if err != nil {
		f.Fatalf("Put: %v", err)
	}
	f.wants(key, "state", "x")
	for _, none := range []statestore.Fields{nil, {}, {"state": nil}} {
		f.put(key, 0, "state", "y")
		if err := f.store.Put(f.Context(), key, statestore.Record{Fields: none, TTL: time.Hour}); err != nil {
			f.Fatalf("Put: %v", err)
		}
		f.wants(key)
	}
	many := statestore.Fields{}
	for i := range 10 {
		part := statestore.Fields{}
		for n := range 100 {
			part[strconv.Itoa(100*i+n)] = []byte{byte(n)}
		}
		f.set(key, part)
		maps.Copy(many, part)
	}
	f.wantsFields(key, many)
	f.put(key, 0, "one", "1")
	f.wants(key, "one", "1")
}

// values tests that values and names may be any bytes, and may be empty.
func (f *fixture) values() {
	key := f.key("a")
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	want := statestore.Fields{
		"all": all, "empty": {}, "zero": {0}, "newline": []byte("1\n"), "": []byte("no name"), "no\xffUTF-8\x00": []byte("\xff"),
		"large": bytes.Repeat([]byte("0123456789abcdef"), 4096),
	}
	f.set(key, want)
	f.wantsFields(key, want)
	if value, found, err := f.store.GetField(f.Context(), key, "empty"); err != nil || !found || value == nil || len(value) != 0 {
		f.Errorf("GetField of an empty value: got %q, %v and error %v, want an empty value that is not nil", value, found, err)
	}
	// The store keeps no reference to the arguments, and returns none to its own memory.
	f.get(key).Fields["all"][0] = 'x'
	want["zero"][0] = 'x'
	want["zero"] = []byte{0}
	f.wantsFields(key, want)
}

// deletes tests Delete, twice, and that a record written after it has no time-to-live.
func (f *fixture) deletes() {
	key := f.key("a")
	f.put(key, time.Hour, "state", "pending")
	for range 2 {
		if err := f.store.Delete(f.Context(), key); err != nil {
			f.Fatalf("Delete: %v", err)
		}
		f.wants(key)
	}
	f.wantsScan(nil)
	f.set(key, fields("n", "1"))
	f.wants(key, "n", "1")
	f.wantsTTL(key, 0)
	f.wantsScan(nil, "a")
}

// setFields tests that SetFields leaves the fields that it does not name.
func (f *fixture) setFields() {
	key := f.key("a")
	f.set(key, fields("state", "pending", "step", "1"))
	f.wants(key, "state", "pending", "step", "1")
	f.set(key, fields("step", "2", "worker", "w1"))
	f.wants(key, "state", "pending", "step", "2", "worker", "w1")
	f.set(key, statestore.Fields{})
	f.wants(key, "state", "pending", "step", "2", "worker", "w1")
	if err := statestore.SetField(f.Context(), f.store, key, "step", []byte("3")); err != nil {
		f.Fatalf("statestore.SetField: %v", err)
	}
	f.wants(key, "state", "pending", "step", "3", "worker", "w1")
}

// removedFields tests the removal of fields: the time-to-live stays while a field is left, and
// the record ends with its last field.
func (f *fixture) removedFields() {
	key := f.key("a")
	f.set(key, statestore.Fields{"never": nil})
	f.wants(key)
	f.wantsScan(nil)
	f.put(key, time.Hour, "state", "running", "worker", "w1", "timeout", "9")
	f.set(key, statestore.Fields{"worker": nil, "timeout": nil, "never": nil, "state": []byte("completed")})
	f.wants(key, "state", "completed")
	// All earlier fields are removed in a write that adds one: the time-to-live stays.
	f.set(key, statestore.Fields{"state": nil, "other": []byte("x")})
	f.wants(key, "other", "x")
	f.wantsTTL(key, time.Hour)
	f.set(key, statestore.Fields{"other": nil})
	f.wants(key)
	f.wantsScan(nil)
	f.set(key, fields("state", "new"))
	f.wantsTTL(key, 0)
}

// keysApart tests that similar keys are different.
func (f *fixture) keysApart() {
	keys := []string{"a", "A", "a:b", "a.b", "a:b:c", "a=2Eb", "a_b", "a-b", "a=3Ab", "a=b", "ab"}
	for _, k := range keys {
		f.put(f.key(k), 0, "key", k)
	}
	for _, k := range keys {
		f.wants(f.key(k), "key", k)
	}
	if err := f.store.Delete(f.Context(), f.key("a")); err != nil {
		f.Fatalf("Delete: %v", err)
	}
	for _, k := range keys[1:] {
		f.wants(f.key(k), "key", k)
	}
}

// oddKeys tests that a key may contain any character except white space and control characters.
func (f *fixture) oddKeys() {
	f.Run("each", func(t *testing.T) {
		g := *f
		g.T = t
		for _, k := range []string{
			"*", ">", "a*", "a>b", "?", "[a]", "a]b", `a\b`, "$KV", "ä", "日本", "=", "==", "=2E", ".", "..", "a.", ".a",
			"{", "}", "{}", "a{b}c", "%2E", "'", `"`, "/", "//", "-", "_", "+", "a,b", "#", "^", "(", "|", "~", "\U0001F9C2", "�",
		} {
			key := g.key(k)
			g.put(key, 0, "key", k)
			g.wants(key, "key", k)
			if found := g.scan(key, nil); len(found) == 0 || !slices.Contains(found, k) {
				t.Errorf("scan by %q: got %q, want it among them", k, found)
			}
			if !g.swap(key, fields("key", k), fields("key", "changed")) {
				t.Errorf("swap of %q: got false, want the stored field to match", k)
			}
			if err := g.store.Delete(t.Context(), key); err != nil {
				t.Fatalf("Delete: %v", err)
			}
			g.wants(key)
			g.wantsScan(nil)
		}
	})
	long := f.key(string(bytes.Repeat([]byte("."), statestore.MaxKeyBytes-len(f.root)-1)))
	f.put(long, 0, "n", "1")
	f.wants(long, "n", "1")
}
