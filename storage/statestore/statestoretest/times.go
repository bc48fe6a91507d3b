package statestoretest

import (
	"time"

	"github.com/codesous/sous/storage/statestore"
)

const short = 100 * time.Millisecond

// timeToLive tests the time-to-live of Put: it is replaced with the record, and a short one
// ends the record.
func (f *fixture) timeToLive() {
	key := f.key("a")
	f.put(key, time.Hour, "n", "1")
	f.wantsTTL(key, time.Hour)
	for e, err := range f.store.Scan(f.Context(), f.root+":", nil) {
		if err != nil || e.TTL <= 59*time.Minute || e.TTL > time.Hour {
			f.Errorf("Scan: got a time-to-live of %s and error %v, want about %s", e.TTL, err, time.Hour)
		}
	}
	f.put(key, 2*time.Hour, "n", "1")
	f.wantsTTL(key, 2*time.Hour)
	f.put(key, 0, "n", "2")
	f.wantsTTL(key, 0)
	f.put(key, time.Hour, "n", "1")
	f.wantsTTL(key, time.Hour)
	f.put(key, time.Nanosecond, "n", "1") // rounded up to a millisecond: 0 would be none
	f.pass(time.Second)
	f.await("the record's end", func() bool { return f.get(key) == nil })
}

// timeToLiveKept tests that writes of fields leave the time-to-live.
func (f *fixture) timeToLiveKept() {
	key := f.key("a")
	f.put(key, time.Hour, "n", "1")
	f.set(key, statestore.Fields{"n": []byte("2"), "m": []byte("1")})
	f.wantsTTL(key, time.Hour)
	f.set(key, statestore.Fields{"m": nil})
	f.wantsTTL(key, time.Hour)
	if !f.swap(key, fields("n", "2"), fields("n", "3")) {
		f.Error("CompareAndSet with the stored value: got false, want true")
	}
	f.wantsTTL(key, time.Hour)
	f.wants(key, "n", "3")
}

// expire tests Expire on a record with a time-to-live, without one, and on a missing record.
func (f *fixture) expire() {
	key := f.key("a")
	expire := func(ttl time.Duration) {
		f.Helper()
		if err := f.store.Expire(f.Context(), key, ttl); err != nil {
			f.Fatalf("Expire: %v", err)
		}
	}
	expire(time.Hour)
	f.wants(key)
	f.put(key, 0, "n", "1")
	f.wantsTTL(key, 0)
	expire(time.Hour)
	f.wantsTTL(key, time.Hour)
	expire(0)
	f.wantsTTL(key, 0)
	expire(time.Hour)
	expire(short)
	f.pass(time.Second)
	f.await("the record's end", func() bool { return f.get(key) == nil })
	expire(0)
	f.wants(key)
}

// expiredRecords tests that no call sees an expired record, and that a write over one starts
// with a new record.
func (f *fixture) expiredRecords() {
	field, gone := &statestore.Filter{Field: "n", Op: statestore.Greater, Value: []byte("0")}, []string{"a", "b", "c", "d", "e", "f"}
	for _, k := range gone {
		f.put(f.key(k), short, "n", "1", "old", "x")
	}
	f.put(f.key("stays"), time.Hour, "n", "2")
	f.pass(time.Second)
	f.await("the records' end", func() bool { return len(f.scan(f.root+":", nil)) == 1 })
	f.wantsScan(field, "stays")
	if value, found, err := f.store.GetField(f.Context(), f.key("a"), "n"); found || err != nil {
		f.Errorf("GetField of an expired record: got %q and error %v, want none", value, err)
	}
	if f.swap(f.key("a"), fields("n", "1"), fields("n", "2")) {
		f.Error("CompareAndSet with the values of an expired record: got true, want false")
	}
	if !f.swap(f.key("b"), statestore.Fields{"n": nil}, fields("n", "3")) {
		f.Error("CompareAndSet with absent fields of an expired record: got false, want true")
	}
	f.set(f.key("c"), fields("n", "4"))
	f.put(f.key("d"), 0, "n", "5")
	if err := f.store.Expire(f.Context(), f.key("e"), time.Hour); err != nil {
		f.Fatalf("Expire: %v", err)
	}
	f.set(f.key("f"), statestore.Fields{"n": nil})
	for k, n := range map[string]string{"b": "3", "c": "4", "d": "5"} {
		f.wants(f.key(k), "n", n)
		f.wantsTTL(f.key(k), 0)
	}
	for _, k := range []string{"a", "e", "f"} {
		f.wants(f.key(k))
	}
	f.wantsScan(field, "stays", "b", "c", "d")
}
