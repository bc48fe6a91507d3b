package statestoretest

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/codesous/sous/storage/statestore"
)

// compare tests CompareAndSet on an existing record: every expected field must have its value,
// byte for byte, an empty value differs from an absent field, and a refused call changes
// nothing.
func (f *fixture) compare() {
	key := f.key("a")
	f.put(key, 0, "state", "pending", "step", "1", "empty", "")
	for name, expected := range map[string]statestore.Fields{
		"another value":       fields("state", "claimed"),
		"one of two":          fields("state", "pending", "step", "2"),
		"the other of two":    fields("state", "claimed", "step", "1"),
		"empty, not absent":   {"empty": nil},
		"absent, not empty":   fields("worker", ""),
		"a value's beginning": fields("state", "pend"),
		"another number":      fields("step", "01"),
		"present and absent":  {"state": []byte("pending"), "step": nil},
	} {
		if f.swap(key, expected, fields("state", "stolen")) {
			f.Errorf("CompareAndSet, %s: got true, want false", name)
		}
	}
	f.wants(key, "state", "pending", "step", "1", "empty", "")
	if !f.swap(key, statestore.Fields{"state": []byte("pending"), "step": []byte("1"), "empty": {}, "worker": nil}, fields("state", "claimed", "worker", "w1")) {
		f.Error("CompareAndSet with the stored values: got false, want true")
	}
	f.wants(key, "state", "claimed", "worker", "w1", "step", "1", "empty", "")
	if !f.swap(key, fields("step", "1"), nil) || f.swap(key, fields("step", "2"), nil) || !f.swap(key, nil, fields("step", "2")) {
		f.Error("CompareAndSet without new fields, or without expected ones: got another result than the comparison's")
	}
	f.wants(key, "state", "claimed", "worker", "w1", "step", "2", "empty", "")
	if was, err := statestore.CompareAndSwap(f.Context(), f.store, key, "step", []byte("2"), []byte("3")); err != nil || !was {
		f.Errorf("CompareAndSwap of one field: got %v and error %v, want true", was, err)
	}
	f.wants(key, "state", "claimed", "worker", "w1", "step", "3", "empty", "")
}

// compareAbsence tests CompareAndSet on a missing record: only an expectation of absent fields
// holds, and it holds for one caller.
func (f *fixture) compareAbsence() {
	key := f.key("a")
	if f.swap(key, fields("state", "pending"), fields("state", "claimed")) || f.swap(key, fields("state", ""), fields("state", "claimed")) {
		f.Error("CompareAndSet of a missing record with expected values succeeded, want false")
	}
	f.wants(key)
	if !f.swap(key, statestore.Fields{"state": nil}, nil) || !f.swap(key, statestore.Fields{"state": nil}, statestore.Fields{"state": nil}) {
		f.Error("CompareAndSet of an absent field without a new value: got false, want true")
	}
	f.wants(key)
	if !f.swap(key, statestore.Fields{"state": nil}, fields("state", "pending")) {
		f.Error("CompareAndSet of an absent field: got false, want true")
	}
	if f.swap(key, statestore.Fields{"state": nil}, fields("state", "again")) {
		f.Error("CompareAndSet of a field that is no longer absent: got true, want false")
	}
	f.wants(key, "state", "pending")
}

// compareAndRemove tests CompareAndSet with fields that are removed, down to the last one,
// which ends the record.
func (f *fixture) compareAndRemove() {
	key := f.key("a")
	f.put(key, 0, "state", "claimed", "worker", "w1")
	if f.swap(key, fields("worker", "w2"), statestore.Fields{"worker": nil}) {
		f.Error("CompareAndSet with another worker's name: got true, want false")
	}
	if !f.swap(key, fields("worker", "w1"), statestore.Fields{"worker": nil, "state": []byte("pending")}) {
		f.Error("CompareAndSet with the stored worker: got false, want true")
	}
	f.wants(key, "state", "pending")
	if !f.swap(key, fields("state", "pending"), statestore.Fields{"state": nil}) {
		f.Error("CompareAndSet with the stored state: got false, want true")
	}
	f.wants(key)
}

// together runs do n times at once, with 0 to n-1, and waits for all of them.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}

// oneClaimWins tests that of 32 concurrent claims of one record exactly one succeeds, and that
// the record has the winner.
func (f *fixture) oneClaimWins() {
	key := f.key("a")
	f.put(key, 0, "state", "pending")
	var winner atomic.Value
	var wins atomic.Int64
	together(32, func(i int) {
		worker := strconv.Itoa(i)
		won, err := f.store.CompareAndSet(f.Context(), key, fields("state", "pending"), fields("state", "claimed", "worker", worker))
		if err != nil {
			f.Errorf("CompareAndSet: %v", err)
		}
		if won {
			wins.Add(1)
			winner.Store(worker)
		}
	})
	if wins.Load() != 1 {
		f.Fatalf("got %d claims that succeeded, want 1", wins.Load())
	}
	worker, _ := winner.Load().(string)
	f.wants(key, "state", "claimed", "worker", worker)
}

// noIncrementIsLost tests that 64 concurrent increments by compare-and-set, each repeated
// until it succeeds, add up.
func (f *fixture) noIncrementIsLost() {
	key := f.key("a")
	together(64, func(int) {
		for {
			value, found, err := f.store.GetField(f.Context(), key, "n")
			if err != nil {
				f.Errorf("GetField: %v", err)
				return
			}
			n, expected := 0, []byte(nil)
			if found {
				n, _ = strconv.Atoi(string(value))
				expected = value
			}
			was, err := statestore.CompareAndSwap(f.Context(), f.store, key, "n", expected, []byte(strconv.Itoa(n+1)))
			if err != nil {
				f.Errorf("statestore.CompareAndSwap: %v", err)
				return
			}
			if was {
				return
			}
		}
	})
	f.wants(key, "n", "64")
}

// noFieldIsLost: writers of different fields do not undo each other.
func (f *fixture) noFieldIsLost() {
	key, want := f.key("a"), statestore.Fields{}
	const writers, writes = 8, 8
	together(writers, func(i int) {
		for n := range writes {
			err := f.store.SetFields(f.Context(), key, statestore.Fields{
				"last" + strconv.Itoa(i): []byte(strconv.Itoa(n)), strconv.Itoa(i*writes + n): {},
			})
			if err != nil {
				f.Errorf("SetFields: %v", err)
			}
		}
	})
	for i := range writers {
		want["last"+strconv.Itoa(i)] = []byte(strconv.Itoa(writes - 1))
		for n := range writes {
			want[strconv.Itoa(i*writes+n)] = []byte{}
		}
	}
	f.wantsFields(key, want)
}
