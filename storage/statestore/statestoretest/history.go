package statestoretest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/storage/statestore"
)

// history makes random calls and compares the store's answers with a model. It logs its seed.
func (f *fixture) history() {
	seed := rand.Uint64()
	f.Logf("seed %d", seed)
	Histories(f.T, f.store, f.root, seed, func(model map[string]statestore.Fields) {
		f.Helper()
		records := make([]statestore.Entry, 0, len(model))
		for key, fields := range model {
			records = append(records, statestore.Entry{Key: key, Record: statestore.Record{Fields: fields}})
			f.wantsFields(key, fields)
		}
		for _, filter := range HistoryFilters() {
			f.wantsScan(filter, f.expected(records, filter)...)
		}
		if found := f.scan(f.root+":", nil); len(found) != len(model) {
			f.Errorf("%d records, want %d: %v", len(found), len(model), found)
		}
	})
}

// The texts that a history draws from.
var (
	historyKeys   = []string{"a", "a:b", "b", "b.c", "c", "d", "e*", "f"}
	historyFields = []string{"n", "n", "n", "state", "state", "other"}
	historyValues = map[string][]string{
		"n": {
			"1", "2", "9", "10", "-3", "10", "0010", "text", "", "9007199254740993", "9007199254740992",
			"9223372036854775807", "9223372036854775808", "-9223372036854775809", "-9223372036854775808",
		},
		"state": {"pending", "running", "completed", "failed"},
		"other": {"x", ""},
	}
)

// historyException is what an index may leave out.
var historyException = statestore.Exception{Field: "state", Values: []string{"completed", "failed"}}

// HistoryException returns the exception of which the suite makes most use.
func HistoryException() statestore.Exception { return historyException }

// HistoryFilters returns filters of the field n, with and without HistoryException.
func HistoryFilters() []*statestore.Filter {
	var filters []*statestore.Filter
	for _, op := range []statestore.Op{statestore.Equal, statestore.Less, statestore.Greater} {
		for _, value := range []string{"10", "9007199254740993", "text"} {
			filters = append(filters, by(op, value), by(op, value))
			filters[len(filters)-1].Except = historyException
		}
	}
	return filters
}

// Histories makes 300 random calls of s on a few keys below root, one after another, and
// compares the result of each CompareAndSet with a model. After every 30 calls it passes the
// model to check, which compares the records. Equal seeds make equal calls.
func Histories(t testing.TB, s statestore.Store, root string, seed uint64, check func(model map[string]statestore.Fields)) {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 1))
	pick := func(from []string) string { return from[draw.IntN(len(from))] }
	model := map[string]statestore.Fields{}
	some := func() statestore.Fields {
		fields := statestore.Fields{}
		for range 1 + draw.IntN(3) {
			name := pick(historyFields)
			fields[name] = nil
			if draw.IntN(5) > 0 {
				fields[name] = []byte(pick(historyValues[name]))
			}
		}
		return fields
	}
	for i := range 300 {
		key := root + ":" + pick(historyKeys)
		switch draw.IntN(8) {
		case 0:
			fail(t, "Delete", s.Delete(t.Context(), key))
			delete(model, key)
		case 1, 2:
			record := statestore.Record{Fields: some(), TTL: time.Duration(draw.IntN(2)) * time.Hour}
			fail(t, "Put", s.Put(t.Context(), key, record))
			delete(model, key)
			apply(model, key, record.Fields)
		case 3, 4, 5:
			fields := some()
			fail(t, "SetFields", s.SetFields(t.Context(), key, fields))
			apply(model, key, fields)
		case 6:
			expected, fields := some(), some()
			if draw.IntN(2) == 0 {
				expected = maps.Clone(model[key])
			}
			was, err := s.CompareAndSet(t.Context(), key, expected, fields)
			fail(t, "CompareAndSet", err)
			if want := holds(model[key], expected); was != want {
				t.Fatalf("call %d: %s as expected: %v, want %v", i, key, was, want)
			}
			if was {
				apply(model, key, fields)
			}
		default:
			fail(t, "Expire", s.Expire(t.Context(), key, time.Duration(draw.IntN(2))*time.Hour))
		}
		if i%30 == 29 {
			check(model)
		}
	}
}

// fail ends the test if call returned an error.
func fail(t testing.TB, call string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: got error %v, want none", call, err)
	}
}

// apply makes the write of fields to key in the model.
func apply(model map[string]statestore.Fields, key string, fields statestore.Fields) {
	record := maps.Clone(model[key])
	if record == nil {
		record = statestore.Fields{}
	}
	for name, value := range fields {
		if value == nil {
			delete(record, name)
		} else {
			record[name] = value
		}
	}
	if len(record) == 0 {
		delete(model, key)
		return
	}
	model[key] = record
}

// holds reports whether record has the expected values; nil means absent.
func holds(record, expected statestore.Fields) bool {
	for name, value := range expected {
		held, ok := record[name]
		if ok != (value != nil) || !slices.Equal(held, value) {
			return false
		}
	}
	return true
}
